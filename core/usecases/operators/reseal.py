"""Rotating the vault's keys: what an older key sealed or tagged is sealed and tagged anew with the current one.

It runs beside a working service: each record is read and saved in a unit, so whoever was changing it decides again, or
this does. Whatever was done stays done, so it may be broken off anywhere; another run writes only what is left.
Documents on the disk are encrypted anew, too.
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
from ...domain.kyc.kyc import Upload
from ..sealed import SEALED, TAGGED, SealedField, TaggedField
from ..units import retrying

AT_ONCE = 50
"""Records of one unit."""
NAMED = 100
"""Values that do not open and are named; further ones are counted."""

Progress = Callable[[str, int, int], None]
"""Is told a kind of record, how many of it were looked at, and how many sealed anew."""


class FieldSeals(msgspec.Struct, frozen=True, kw_only=True):
    """With which keys the values of one field are sealed."""

    field: str
    by_key: Mapping[int, int]


class Unopened(msgspec.Struct, frozen=True, kw_only=True):
    """A value that does not open, and why."""

    field: str
    record_id: str
    reason: str


class SealReport(msgspec.Struct, frozen=True, kw_only=True):
    """With what everything is sealed that is sealed."""

    current: int
    keys: tuple[int, ...]
    """The ids of all keys that the vault has."""
    fields: tuple[FieldSeals, ...]
    unopened: tuple[Unopened, ...]
    unopened_count: int
    resealed: int = 0
    """Records that were sealed anew."""

    @property
    def in_use(self) -> Mapping[int, int]:
        """How many values each key sealed."""
        counts: Counter[int] = Counter()
        for field in self.fields:
            counts.update(field.by_key)
        return dict(sorted(counts.items()))

    @property
    def old_in_use(self) -> tuple[int, ...]:
        """Keys other than the current one that are still needed."""
        return tuple(number for number in self.in_use if number != self.current)

    @property
    def droppable(self) -> tuple[int, ...]:
        """Keys that nothing in the storage needs any more."""
        return tuple(number for number in self.keys if number != self.current and number not in self.in_use)


DOCUMENTS = "Upload.content"
"""What a report calls the documents, which lie in files."""

Field = SealedField | TaggedField
_ALL: tuple[Field, ...] = (*SEALED, *TAGGED)


def _fields() -> dict[type[Any], list[Field]]:
    """What is sealed or tagged, by record."""
    fields: dict[type[Any], list[Field]] = {}
    for field in _ALL:
        fields.setdefault(field.record, []).append(field)
    return fields


def _nobody(_kind: str, _seen: int, _resealed: int) -> None:
    """Nobody wants to know how far it is."""


async def inspect_seals(ports: Ports, *, progress: Progress = _nobody) -> SealReport:
    """Open every sealed value, and count by which key it is sealed. Writes nothing; memory stays flat."""
    return await _walk(ports, progress, writes=False)


async def reseal(ports: Ports, *, progress: Progress = _nobody) -> SealReport:
    """Seal anew what is not sealed with the current key; the report is of a second look, after all was written.

    An older key can still be in use afterwards: a value of it did not open, or a process that still has it as its
    current key sealed something meanwhile.
    """
    done = await _walk(ports, progress, writes=True)
    report = await _walk(ports, _nobody, writes=False)
    return msgspec.structs.replace(report, resealed=done.resealed)


class _Seen:
    """What a walk has seen."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        self.by_key: dict[str, Counter[int]] = {}
        self.unopened: list[Unopened] = []
        self.unopened_count = 0

    def look(self, record: Any, fields: Sequence[Field]) -> bool:
        """Note a record's values. Whether one of them is to be sealed anew."""
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


async def _walk(ports: Ports, progress: Progress, *, writes: bool) -> SealReport:
    seen = _Seen(ports.vault)
    written = 0
    for record, fields in _fields().items():
        looked_at = resealed = 0
        async for batch in ports.storage.scan(record):
            old = [each.id for each in batch if seen.look(each, fields)]
            if writes:
                for start in range(0, len(old), AT_ONCE):
                    resealed += await _seal_anew(ports, record, old[start : start + AT_ONCE], fields)
            looked_at += len(batch)
            progress(record.__name__, looked_at, resealed)
        written += resealed
    written += await _walk_files(ports, seen, progress, writes=writes)
    return SealReport(
        current=ports.vault.current,
        keys=tuple(sorted(ports.vault.keys)),
        fields=tuple(FieldSeals(field=name, by_key=dict(counts)) for name, counts in seen.by_key.items()),
        unopened=tuple(seen.unopened),
        unopened_count=seen.unopened_count,
        resealed=written,
    )


async def _walk_files(ports: Ports, seen: _Seen, progress: Progress, *, writes: bool) -> int:
    """Do the same with the documents of a store that the vault encrypts. Returns how many were encrypted anew."""
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
    """Returns whether it was done. A document whose row went meanwhile is removed, because nobody else would."""
    try:
        await files.encrypt_anew(key)
    except (VaultError, Refused):
        return False
    if await ports.storage.get(Upload, key) is None:
        await files.remove(key)
    return True


async def _seal_anew(ports: Ports, record: type[Any], ids: Sequence[str], fields: Sequence[Field]) -> int:
    async def work(unit: Unit) -> int:
        count = 0
        for before in await unit[record].find(id=OneOf(tuple(ids)), limit=len(ids)):
            changes = _changes(ports.vault, before, fields)
            if changes:
                unit[record].save(msgspec.structs.replace(before, **changes))
                count += 1
        return count

    return await retrying(ports.storage, work)


def _changes(vault: Vault, record: Any, fields: Sequence[Field]) -> dict[str, bytes]:
    """The fields of a record that an older key sealed, sealed with the current one. What does not open stays."""
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
    """`Payment.private`."""
    return f"{field.record.__name__}.{field.name}"
