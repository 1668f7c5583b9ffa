"""Rotation of the vault's keys: encrypts and tags again, with the current key, every value of an older key.

It runs beside a working service. Each record is read and saved in a unit of work, so on a concurrent change either side
retries. It may be interrupted at any point: finished records stay, and the next run handles only the rest. Documents on
disk are encrypted again too.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from ....ports.bundle import Ports
from ....ports.faults import Refused
from ....ports.files import EncryptedFiles
from ....ports.storage import OneOf, Unit
from ....ports.vault import Vault, VaultError
from ...domain.installation import Installation
from ...domain.kyc.kyc import Upload
from ..common.encrypted import ENCRYPTED_FIELDS, TAGGED, EncryptedField, TaggedField
from ..common.units import unit_of_work

AT_ONCE = 50
"""Records per unit of work."""
NAMED = 100
"""Maximum number of values listed as not decrypting. Further ones are only counted."""

Progress = Callable[[str, int, int], None]
"""Receives a kind of record, the number of records read, and the number encrypted again."""


class FieldKeys(msgspec.Struct, frozen=True, kw_only=True):
    """Number of values of one field, by the key that encrypted them."""

    field: str
    by_key: Mapping[int, int]


class Unopened(msgspec.Struct, frozen=True, kw_only=True):
    """A value that does not decrypt, and the reason."""

    field: str
    record_id: str
    reason: str


class KeyReport(msgspec.Struct, frozen=True, kw_only=True):
    """Keys in use, over all encrypted and tagged values."""

    current: int
    keys: tuple[int, ...]
    """Ids of all keys in the vault."""
    fields: tuple[FieldKeys, ...]
    unopened: tuple[Unopened, ...]
    unopened_count: int
    reencrypted: int = 0
    """Number of records encrypted again."""

    @property
    def in_use(self) -> Mapping[int, int]:
        """Return the number of values by key."""
        counts: Counter[int] = Counter()
        for field in self.fields:
            counts.update(field.by_key)
        return dict(sorted(counts.items()))

    @property
    def old_in_use(self) -> tuple[int, ...]:
        """Return the keys that are still needed, without the current one."""
        return tuple(number for number in self.in_use if number != self.current)

    @property
    def droppable(self) -> tuple[int, ...]:
        """Return the keys that no stored value needs."""
        return tuple(number for number in self.keys if number != self.current and number not in self.in_use)


DOCUMENTS = "Upload.content"
"""Name of the documents in a report. They are stored in files."""

Field = EncryptedField | TaggedField
_ALL: tuple[Field, ...] = (*ENCRYPTED_FIELDS, *TAGGED)


def _fields() -> dict[type[Any], list[Field]]:
    """Return the encrypted and tagged fields by record type."""
    fields: dict[type[Any], list[Field]] = {}
    for field in _ALL:
        fields.setdefault(field.record, []).append(field)
    return fields


def _nobody(_kind: str, _seen: int, _reencrypted: int) -> None:
    """Ignore the progress."""


async def inspect_keys(ports: Ports, *, progress: Progress = _nobody) -> KeyReport:
    """Decrypt every encrypted value and count the values by key. Writes nothing. Memory use is constant."""
    return await _walk(ports, progress, writes=False)


async def reencrypt(ports: Ports, *, progress: Progress = _nobody) -> KeyReport:
    """Encrypt again every value that an older key encrypted. The report is from a second pass after all writes.

    An older key can still be in use afterwards, if one of its values did not decrypt, or if a process that still has it
    as its current key encrypted something meanwhile.
    """
    done = await _walk(ports, progress, writes=True)
    report = await _walk(ports, _nobody, writes=False)
    return msgspec.structs.replace(report, reencrypted=done.reencrypted)


class _Seen:
    """Counts of a pass."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        self.by_key: dict[str, Counter[int]] = {}
        self.unopened: list[Unopened] = []
        self.unopened_count = 0

    def look(self, record: Any, fields: Sequence[Field]) -> bool:
        """Count a record's values. Return whether an older key encrypted one of them."""
        is_old = False
        for field in fields:
            sealed = field.value(record)
            if sealed is None:
                continue
            name = field_name(field)
            try:
                number = self._vault.key_of(sealed)
                self.count(name, number)
                field.judge(self._vault, record)
            except VaultError as error:
                self.note(name, record.id, error)
            else:
                is_old = is_old or number != self._vault.current
        return is_old

    def count(self, name: str, number: int) -> None:
        """Count a value of this field that the key of this number encrypts."""
        self.by_key.setdefault(name, Counter())[number] += 1

    def note(self, name: str, record_id: str, error: Exception) -> None:
        """Note a value that does not decrypt."""
        self.unopened_count += 1
        if len(self.unopened) < NAMED:
            self.unopened.append(Unopened(field=name, record_id=record_id, reason=str(error)))


async def _walk(ports: Ports, progress: Progress, *, writes: bool) -> KeyReport:
    seen = _Seen(ports.vault)
    written = 0
    for record, fields in _fields().items():
        looked_at = reencrypted = 0
        # An unreadable installation is held by itself, and must prevent no backup.
        async for batch in ports.storage.scan(record, readable=record is Installation):
            old = [each.id for each in batch if seen.look(each, fields)]
            if writes:
                for start in range(0, len(old), AT_ONCE):
                    reencrypted += await _reencrypt_records(ports, record, old[start : start + AT_ONCE], fields)
            looked_at += len(batch)
            progress(record.__name__, looked_at, reencrypted)
        written += reencrypted
    written += await _walk_files(ports, seen, progress, writes=writes)
    return KeyReport(
        current=ports.vault.current,
        keys=tuple(sorted(ports.vault.keys)),
        fields=tuple(FieldKeys(field=name, by_key=dict(counts)) for name, counts in seen.by_key.items()),
        unopened=tuple(seen.unopened),
        unopened_count=seen.unopened_count,
        reencrypted=written,
    )


async def _walk_files(ports: Ports, seen: _Seen, progress: Progress, *, writes: bool) -> int:
    """Handle the documents of a store that the vault encrypts in the same way. Return how many were encrypted again."""
    files = ports.files
    if not isinstance(files, EncryptedFiles):
        return 0
    looked_at = written = 0
    async for batch in ports.storage.scan(Upload):
        for upload in batch:
            try:
                number = await files.key_of(upload.id)
                if number is None:
                    continue
                seen.count(DOCUMENTS, number)
                async for _ in files.read(upload.id):
                    pass
            except (VaultError, Refused) as error:
                seen.note(DOCUMENTS, upload.id, error)
                continue
            if writes and number != ports.vault.current:
                written += await _encrypt_anew(ports, files, upload.id)
        looked_at += len(batch)
        progress(DOCUMENTS, looked_at, written)
    return written


async def _encrypt_anew(ports: Ports, files: EncryptedFiles, key: str) -> bool:
    """Encrypt a document again and return whether that succeeded. If its row was deleted meanwhile, delete the
    document, because no other process would."""
    try:
        await files.encrypt_anew(key)
    except (VaultError, Refused):
        return False
    if await ports.storage.get(Upload, key) is None:
        await files.remove(key)
    return True


@unit_of_work()
async def _reencrypt_records(
    ports: Ports, unit: Unit, record: type[Any], ids: Sequence[str], fields: Sequence[Field]
) -> int:
    count = 0
    for before in await unit[record].find(id=OneOf(tuple(ids)), limit=len(ids)):
        changes = _changes(ports.vault, before, fields)
        if changes:
            unit[record].save(msgspec.structs.replace(before, **changes))
            count += 1
    return count


def _changes(vault: Vault, record: Any, fields: Sequence[Field]) -> dict[str, bytes]:
    """Return a record's fields that an older key encrypted, now encrypted by the current one. A value that does not
    decrypt stays as it is."""
    changes: dict[str, bytes] = {}
    for field in fields:
        sealed = field.value(record)
        try:
            if sealed is not None and vault.key_of(sealed) != vault.current:
                changes[field.name] = field.anew(vault, record)
        except VaultError:
            continue
    return changes


def field_name(field: Field) -> str:
    """Return the name of a field, such as `Payment.private`."""
    return f"{field.record.__name__}.{field.name}"
