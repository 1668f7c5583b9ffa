"""Copies of an account's rows in another cell: written where they are missing or differ, and compared."""

import re
from base64 import b32decode
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

import msgspec

from ....ports.notes import ProviderNote
from ....ports.storage import Unit
from ....ports.vault import Vault, VaultError
from ...domain.accounts.accounts import Account
from ...domain.errors import Refusal
from ...domain.operators.audit import AuditEntry
from ...domain.people.notifications import Notification, NotificationPreferences, NotificationQueue, TelegramChat
from ...domain.people.people import Membership, Passkey, User, membership_id
from ...domain.people.views import SavedViews
from ...domain.settlement.settlement import Settlement
from ..common.encrypted import ENCRYPTED_FIELDS, TAGGED, EncryptedField, TaggedField
from ..common.units import retrying
from .cell import Cell
from .plan import AT_ONCE, ROWS, Found, note, present

_ENCRYPTED: dict[type[Any], list[EncryptedField]] = {}
_TAGGED: dict[type[Any], list[TaggedField]] = {}
for _field in ENCRYPTED_FIELDS:
    _ENCRYPTED.setdefault(_field.record, []).append(_field)
for _tag in TAGGED:
    _TAGGED.setdefault(_tag.record, []).append(_tag)

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.ASCII)
_PACKED = re.compile(r"(?<![a-z2-7])[a-z]{0,4}?([a-z2-7]{26})(?![a-z2-7])", re.ASCII)


class Walk(msgspec.Struct):
    """One walk over an account's rows."""

    found: Found
    objects: set[bytes] = set()
    """UUIDs of the account and its objects, by which jobs and adapters' notes are recognised."""
    keys: set[str] = set()
    """Ids of rows without a UUID."""
    rows: dict[str, int] = {}
    """Number of rows by table."""
    written: int = 0
    people: dict[str, str] = {}
    """Persons that the other cell knows by another id."""

    def owns(self, text: str) -> bool:
        """Return whether a text names the account or one of its objects."""
        return (
            any(UUID(each).bytes in self.objects for each in _UUID.findall(text))
            or any(_unpacked(each) in self.objects for each in _PACKED.findall(text))
            or text in self.keys
        )


def _unpacked(text: str) -> bytes:
    return b32decode(f"{text.upper()}======")


async def copy_rows(source: Cell, target: Cell, account_id: str) -> Walk:
    """Bring all rows of the account in the target up to date. Raises: Unavailable; Unreadable; Refusal for rows that
    cannot be there."""
    walk = Walk(Found(account_id))
    recognise(walk, Account, [account_id])
    await _people(source, target, walk)
    for rows in ROWS:
        async for batch in rows.find(source.storage, walk.found):
            note(walk.found, rows.record, batch)
            recognise(walk, rows.record, [row.id for row in batch])
            await _write(source, target, walk, rows.record, batch)
            name = rows.record.__name__
            walk.rows[name] = walk.rows.get(name, 0) + len(batch)
    return walk


_SHARED = frozenset((Membership, SavedViews, NotificationPreferences, NotificationQueue, Notification, AuditEntry))
"""Tables whose ids also name persons. A person may be in other accounts."""


def recognise(walk: Walk, record: type[Any], ids: Iterable[str]) -> None:
    """Remember the ids of rows as those of the account's objects."""
    if record in _SHARED:
        return
    for each in ids:
        found = _UUID.findall(each)
        walk.objects.update(UUID(uuid).bytes for uuid in found)
        if not found:
            walk.keys.add(each)


async def _people(source: Cell, target: Cell, walk: Walk) -> None:
    """Copy the persons of the account. A person with the address of one in the target gets that one's id."""
    async for members in source.storage.scan(Membership, account_id=walk.found.account_id):
        users = await present(source.storage, User, [member.user_id for member in members])
        for user in users:
            async with target.storage.unit() as unit:
                same = await unit[User].find(email_digest=user.email_digest, limit=1)
            if same and same[0].id != user.id:
                walk.people[user.id] = same[0].id
                continue
            await _write(source, target, walk, User, [user])
            chats = await present(source.storage, TelegramChat, [user.id])
            await _write(source, target, walk, TelegramChat, chats)
            async for passkeys in source.storage.scan(Passkey, user_id=user.id):
                await _write(source, target, walk, Passkey, passkeys)


async def _write(source: Cell, target: Cell, walk: Walk, record: type[Any], rows: Sequence[Any]) -> None:
    """Write those rows that the target lacks or has otherwise. Written rows have the versions of their originals."""
    here, there = source.ports.vault, target.ports.vault
    wanted = [each for row in rows if (each := _arriving(row, walk)) is not None]
    if not wanted:
        return

    async def work(unit: Unit) -> int:
        found = {row.id: row for row in await present(target.storage, record, [row.id for row in wanted])}
        changed = 0
        for row in wanted:
            known = found.get(row.id)
            if known is not None and is_same(here, row, there, known):
                continue
            if known is not None:
                if record in _KEPT:
                    continue
                unit[record].remove(known)
            unit[record].add(sealed_for(here, row, there))
            changed += 1
        return changed

    walk.written += await retrying(target.storage, work)


_KEPT = frozenset((User, TelegramChat, Passkey, AuditEntry))
"""Tables whose present rows stay: the other cell's own are newer, or they never change."""


def _arriving(row: Any, walk: Walk) -> Any:
    """Return a row as the target has it, without its seals; None if it is of no use there."""
    if isinstance(row, AuditEntry):
        return msgspec.structs.replace(row, number=None, seal=None, version=0)
    if isinstance(row, Settlement) and "@" not in row.batch_id and walk.found.account_id not in row.batch_id:
        # The other cell has its own batch of this day, with its own rate.
        return msgspec.structs.replace(row, batch_id=f"{row.batch_id}@{walk.found.account_id}")
    if not walk.people:
        return row
    if isinstance(row, Membership | NotificationPreferences) and row.user_id in walk.people:
        user_id = walk.people[row.user_id]
        return msgspec.structs.replace(row, id=membership_id(row.account_id, user_id), user_id=user_id)
    if isinstance(row, SavedViews | NotificationQueue | Notification):
        return None if any(each in row.id for each in walk.people) else row
    return row


def is_same(here: Vault, row: Any, there: Vault, copy: Any) -> bool:
    """Return whether a row and its copy say the same, and the copy's vault can read it."""
    kind = type(row)
    encrypted, tagged = _ENCRYPTED.get(kind, ()), _TAGGED.get(kind, ())
    if isinstance(row, AuditEntry):
        return bool(row == msgspec.structs.replace(copy, number=None, seal=None, version=0))
    if not encrypted and not tagged:
        return bool(row == copy)
    bare = {field.name: None for field in (*encrypted, *tagged)}
    if msgspec.structs.replace(row, **bare) != msgspec.structs.replace(copy, **bare):
        return False
    return all(_same_secret(field, here, row, there, copy) for field in encrypted) and all(
        _same_tag(tag, there, row, copy) for tag in tagged
    )


def _same_secret(field: EncryptedField, here: Vault, row: Any, there: Vault, copy: Any) -> bool:
    ours, theirs = getattr(row, field.name), getattr(copy, field.name)
    if ours is None or theirs is None or field.value(row) is None:
        return bool(ours == theirs)
    aad = field.aad(row.id)
    try:
        copied = there.decrypt(field.value(copy) or b"", aad)
    except VaultError:
        return False
    return bool(ours == theirs) or here.decrypt(field.value(row) or b"", aad) == copied


def _same_tag(tag: TaggedField, there: Vault, row: Any, copy: Any) -> bool:
    if (tag.value(row) is None) is not (tag.value(copy) is None):
        return False
    return tag.value(copy) is None or there.fits(tag.value(copy) or b"", tag.said(copy), tag.aad(copy))


def sealed_for(here: Vault, row: Any, there: Vault) -> Any:
    """Return a row whose encrypted fields and tags are of another vault. Raises: Refusal INVALID_STATE for a value that
    its own vault does not accept."""
    changes: dict[str, Any] = {}
    try:
        for field in _ENCRYPTED.get(type(row), ()):
            value = field.value(row)
            if value is None:
                continue
            aad = field.aad(row.id)
            changes[field.name] = _kept(there, value, aad, field.mark) or field.mark + there.encrypt(
                here.decrypt(value, aad), aad
            )
        for tag in _TAGGED.get(type(row), ()):
            if tag.value(row) is not None:
                tag.judge(here, row)
                changes[tag.name] = there.tag(tag.said(row), tag.aad(row))
    except VaultError as fault:
        raise Refusal(
            "INVALID_STATE", f"{type(row).__name__} {row.id} is not sealed by its cell's vault: {fault}"
        ) from None
    return msgspec.structs.replace(row, **changes) if changes else row


def _kept(there: Vault, value: bytes, aad: str, mark: bytes) -> bytes | None:
    """Return a value that the other vault decrypts, as it is: cells may share their keys."""
    try:
        there.decrypt(value, aad)
    except VaultError:
        return None
    return mark + value


async def copy_notes(source: Cell, target: Cell, walk: Walk) -> int:
    """Copy the notes that adapters keep about the account's objects, where the target lacks them or has others. Return
    how many were written."""
    before = walk.written
    async for batch in source.storage.scan(ProviderNote, batch=AT_ONCE):
        mine = [each for each in batch if walk.owns(each.id)]
        await _write(source, target, walk, ProviderNote, mine)
    return walk.written - before
