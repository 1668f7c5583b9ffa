"""A typed operation log of a provider in the storage: simulators keep their state in it, adapters their references; and
numbers that are given out once (docs/adapters.md "Notes of an adapter")."""

from collections.abc import Callable
from datetime import datetime
from typing import Generic, TypeVar

import msgspec

from .clock import Clock
from .faults import Conflict, Stale, Unavailable
from .notes import ProviderNote
from .storage import Between, Storage

P = TypeVar("P")

_TRIES = 20
_LARGEST = 65_536
"""Largest page of an adapter, in bytes."""


class MayBeWritten(Unavailable):
    """The storage did not answer a write."""


class OperationLog(Generic[P]):
    """Pages of one provider, each a struct stored as JSON under a key. Each page is written immediately and durably."""

    def __init__(self, provider: str, page: type[P], storage: Storage, clock: Clock) -> None:
        if not provider or ":" in provider:
            raise ValueError("a provider's name is not empty and has no colon")
        self.provider = provider
        self._page = page
        self._storage = storage
        self._clock = clock

    def page_id(self, key: str) -> str:
        """Return the id of a page's note. It includes the provider, so it also serves as a reference."""
        return f"{self.provider}:{key}"

    def note(self, key: str, page: P) -> ProviderNote:
        """Return the page as a note ready to be written."""
        body = msgspec.json.encode(page)
        return ProviderNote(id=self.page_id(key), provider=self.provider, body=body, created_at=self._clock.now())

    async def below(self, prefix: str) -> list[P]:
        """Return all pages whose keys are `prefix`, a slash and something more, ordered by key."""
        ids = Between(self.page_id(f"{prefix}/"), self.page_id(f"{prefix}0"))  # 0 follows the slash
        async with self._storage.unit() as unit:
            return [self._open(note) for note in await unit[ProviderNote].find(id=ids, order="id")]

    async def since(self, moment: datetime) -> list[tuple[str, bytes]]:
        """Return keys and contents of all pages of the provider that were created since that moment."""
        ids = Between(self.page_id(""), f"{self.provider};")  # ; follows the colon
        return [
            (note.id.removeprefix(self.page_id("")), note.body)
            async for batch in self._storage.scan(ProviderNote, id=ids)
            for note in batch
            if note.created_at >= moment
        ]

    async def read(self, key: str) -> P | None:
        """Return the page, or None. Raises: Unavailable."""
        async with self._storage.unit() as unit:
            note = await unit[ProviderNote].get(self.page_id(key))
        return None if note is None else self._open(note)

    async def start(self, key: str, page: P, *beside: ProviderNote, durable: bool = True) -> tuple[P, bool]:
        """Write a new page, or return the existing one; True when it is new. The notes `beside` it are written in the
        same step, and must be new, too. `durable`: as for Unit.commit.

        Raises: MayBeWritten; Unavailable, when certainly nothing was written.
        """
        async with self._storage.unit() as unit:
            # Without a read first: nearly always the page is new.
            unit[ProviderNote].add(self.note(key, page))
            for note in beside:
                unit[ProviderNote].add(note)
            try:
                await unit.commit(durable=durable)
            except Conflict:
                # It existed before, or another process created it at the same moment.
                present = await self.read(key)
                if present is None:
                    raise MayBeWritten(f"{self.provider}: a page was there and is gone") from None
                return present, False
            except Unavailable as fault:
                raise MayBeWritten(f"{self.provider}: {fault}") from fault
        return page, True

    async def change(self, key: str, turn: Callable[[P], P]) -> P | None:
        """Replace the page by `turn(page)`, and return the new one; None: there is no such page. `turn` is called again
        after a concurrent write. Raises: the exceptions of `turn`; Unavailable."""
        for _ in range(_TRIES):
            async with self._storage.unit() as unit:
                note = await unit[ProviderNote].get(self.page_id(key))
                if note is None:
                    return None
                before = self._open(note)
                after = turn(before)
                if after == before:
                    return before
                unit[ProviderNote].save(msgspec.structs.replace(note, body=msgspec.json.encode(after)))
                try:
                    await unit.commit()
                except Stale:
                    continue
                return after
        raise Unavailable(f"{self.provider}: a page is being changed by too many at once")

    async def put(self, key: str, page: P) -> None:
        """Write the page, replacing any other. Raises: Unavailable."""
        _, is_new = await self.start(key, page)
        if not is_new:
            await self.change(key, lambda _: page)

    async def remember(self, operation: str, page: P, *, reference: str | None = None) -> None:
        """Store the state of an operation, which can also be found by the provider's `reference`. A repeat, at once or
        after a crash, replaces it; use `change` where several processes write.

        Raises: Unavailable; ValueError for a page of more than 64 KB, or a reference that belongs to another operation.
        """
        if len(msgspec.json.encode(page)) > _LARGEST:
            raise ValueError("a page of an operation log is of 64 KB at most")
        if reference is not None:
            await self._refer(reference, operation)
        await self.put(operation, page)

    async def operation_of(self, reference: str) -> str | None:
        """Return the operation with this reference, for a notification that contains nothing else. Raises:
        Unavailable."""
        async with self._storage.unit() as unit:
            note = await unit[ProviderNote].get(self.page_id(_reference(reference)))
        return None if note is None else msgspec.json.decode(note.body, type=str)

    async def _refer(self, reference: str, operation: str) -> None:
        body = msgspec.json.encode(operation)
        note = ProviderNote(
            id=self.page_id(_reference(reference)),
            provider=self.provider,
            body=body,
            created_at=self._clock.now(),
        )
        if not await _added(self._storage, note) and await self.operation_of(reference) != operation:
            raise ValueError("the reference is another operation's")

    def _open(self, note: ProviderNote) -> P:
        return msgspec.json.decode(note.body, type=self._page)


class NumberedOperations:
    """Numbers from 0 on, without gaps: each operation has exactly one, however often and by how many processes it is
    requested at once. For an adapter whose provider counts, for example a wallet that derives an address from each
    number."""

    def __init__(self, provider: str, name: str, storage: Storage, clock: Clock) -> None:
        from asyncio import Lock

        self._given = OperationLog(provider, int, storage, clock)
        self._name = name
        self._storage = storage
        self._turn = Lock()

    async def number(self, operation: str) -> int:
        """Return the operation's number. Raises: Unavailable."""
        mine, last = f"#{self._name}/{operation}", f"#{self._name}"
        async with self._turn:
            for _ in range(_TRIES):
                given = await self._given.read(mine)
                if given is not None:
                    return given
                await self._give(mine, last)
        raise Unavailable(f"{self._given.provider}: {self._name} is being counted by too many at once")

    async def next_number(self) -> int:
        """Return the number that the next new operation will get, unless another takes it first. Raises:
        Unavailable."""
        last = await self._given.read(f"#{self._name}")
        return 0 if last is None else last + 1

    async def _give(self, mine: str, last: str) -> None:
        """Take the next number, in one step with the operation's page. After a lost race the caller reads again."""
        async with self._storage.unit() as unit:
            note = await unit[ProviderNote].get(self._given.page_id(last))
            number = 0 if note is None else msgspec.json.decode(note.body, type=int) + 1
            unit[ProviderNote].add(self._given.note(mine, number))
            if note is None:
                unit[ProviderNote].add(self._given.note(last, number))
            else:
                unit[ProviderNote].save(msgspec.structs.replace(note, body=msgspec.json.encode(number)))
            try:
                await unit.commit()
            except (Stale, Conflict):
                return


def _reference(reference: str) -> str:
    return f"={reference}"


async def _added(storage: Storage, note: ProviderNote) -> bool:
    """Return False if the note existed before."""
    async with storage.unit() as unit:
        unit[ProviderNote].add(note)
        try:
            await unit.commit()
        except Conflict:
            return False
    return True
