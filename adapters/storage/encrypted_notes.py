"""Storage for the adapters of providers, with encrypted notes, because a note may contain personal data.

The core's own notes (the health of gateways, the list of banks) contain no personal data, and bypass this layer.
"""

from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Self, cast

import msgspec

from ...ports.faults import Unavailable
from ...ports.forwarding import ForwardingRepository, ForwardingStorage
from ...ports.notes import ENCRYPTED, ProviderNote, note_aad
from ...ports.storage import R, Repository, Storage, Unit
from ...ports.vault import Vault, VaultError


class EncryptedNotes(ForwardingStorage):
    """Storage (ports/storage.py) over another one.

    It encrypts the bodies of notes on write and decrypts them on read.
    """

    def __init__(self, storage: Storage, vault: Vault) -> None:
        super().__init__(storage)
        self._vault = vault

    def unit(self) -> AbstractAsyncContextManager[Unit]:
        return _Unit(self.inner.unit(), self._vault)

    def get(self, kind: type[R], record_id: str, /) -> Coroutine[Any, Any, R | None]:
        """Return the record, with a note decrypted."""
        if kind is ProviderNote:
            return cast("Coroutine[Any, Any, R | None]", self._note(record_id))
        return self.inner.get(kind, record_id)

    async def _note(self, record_id: str) -> ProviderNote | None:
        note = await self.inner.get(ProviderNote, record_id)
        return None if note is None else _opened(self._vault, note)

    def scan(
        self, kind: type[R], *, batch: int = 1000, readable: bool = False, **criteria: Any
    ) -> AsyncIterator[Sequence[R]]:
        """Yield the records, with notes decrypted."""
        found = self.inner.scan(kind, batch=batch, readable=readable, **criteria)
        if kind is ProviderNote:
            notes = cast("AsyncIterator[Sequence[ProviderNote]]", found)
            return cast("AsyncIterator[Sequence[R]]", self._scanned(notes))
        return found

    async def _scanned(self, batches: AsyncIterator[Sequence[ProviderNote]]) -> AsyncIterator[Sequence[ProviderNote]]:
        async for batch in batches:
            yield [_opened(self._vault, note) for note in batch]


class _Unit(msgspec.Struct, eq=False):
    """Unit that forwards everything but the repository of notes."""

    _opening: AbstractAsyncContextManager[Unit]
    _vault: Vault
    _unit: Unit = msgspec.UNSET  # type: ignore[assignment] # until it is entered

    async def __aenter__(self) -> Self:
        self._unit = await self._opening.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._opening.__aexit__(kind, fault, trace)

    def __getitem__(self, kind: type[R], /) -> Repository[R]:
        if kind is ProviderNote:
            notes: Repository[ProviderNote] = _Notes(self._unit[ProviderNote], self._vault)
            return cast("Repository[R]", notes)
        return self._unit[kind]

    def commit(self, *, durable: bool = True) -> Coroutine[Any, Any, None]:
        return self._unit.commit(durable=durable)


class _Notes(ForwardingRepository[ProviderNote], eq=False):
    """Repository of notes, decrypted for its user."""

    _vault: Vault

    async def get(self, record_id: str, /) -> ProviderNote | None:
        note = await self.inner.get(record_id)
        return None if note is None else _opened(self._vault, note)

    async def find(self, **asked: Any) -> list[ProviderNote]:
        return [_opened(self._vault, note) for note in await self.inner.find(**asked)]

    async def page(self, number: int, size: int, /, **asked: Any) -> list[ProviderNote]:
        return [_opened(self._vault, note) for note in await self.inner.page(number, size, **asked)]

    def add(self, record: ProviderNote, /) -> ProviderNote:
        self.inner.add(_encrypted(self._vault, record))
        return record

    def save(self, record: ProviderNote, /) -> ProviderNote:
        saved = self.inner.save(_encrypted(self._vault, record))
        return msgspec.structs.replace(saved, body=record.body)

    def change(self, record: ProviderNote, /, **changes: Any) -> ProviderNote:
        return self.save(msgspec.structs.replace(record, **changes))


def _encrypted(vault: Vault, note: ProviderNote) -> ProviderNote:
    return msgspec.structs.replace(note, body=ENCRYPTED + vault.encrypt(note.body, note_aad(note.id)))


def _opened(vault: Vault, note: ProviderNote) -> ProviderNote:
    """Decrypt a note.

    Raises: Unavailable if the body does not decrypt, because the provider's result is then unknown.
    """
    if not note.body.startswith(ENCRYPTED):
        return note
    try:
        body = vault.decrypt(note.body.removeprefix(ENCRYPTED), note_aad(note.id))
    except VaultError as error:
        raise Unavailable(f"the note {note.id} does not decrypt: {error}") from None
    return msgspec.structs.replace(note, body=body)
