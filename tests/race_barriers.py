"""Units that all read before one of them writes: the race that is hard to meet by chance."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Generic

from cambist.ports.forwarding import ForwardingRepository, ForwardingStorage
from cambist.ports.storage import R, Repository, Storage, Unit


class Barrier:
    """Opens when so many have come, and stays open."""

    def __init__(self, parties: int) -> None:
        self._missing = parties
        self._open = asyncio.Event()

    async def pass_through(self) -> None:
        self._missing -= 1
        if self._missing <= 0:
            self._open.set()
        await self._open.wait()


class OtherCommit:
    """A unit whose commit is a function of the test's, which may wait, fail, or do something before the unit's own."""

    def __init__(self, unit: Unit, commit: Callable[[], Awaitable[None]]) -> None:
        self._unit = unit
        self._commit = commit

    def __getitem__(self, kind: type[R], /) -> Repository[R]:
        return self._unit[kind]

    async def commit(self, *, durable: bool = True) -> None:
        await self._commit()


class BarrierStorage(ForwardingStorage):
    """A storage whose units all read before one of them writes."""

    def __init__(self, storage: Storage, parties: int) -> None:
        super().__init__(storage)
        self._gate = Barrier(parties)

    @asynccontextmanager
    async def unit(self) -> AsyncIterator[Unit]:
        async with self.inner.unit() as unit:

            async def commit() -> None:
                await self._gate.pass_through()
                await unit.commit()

            yield OtherCommit(unit, commit)


class Interrupted(ForwardingStorage):
    """A storage that runs `happens` once, right after a unit has read its first record of `kind`, so that the unit's
    later reads see newer data. With `finding`, it runs after the first search with results."""

    def __init__(
        self, storage: Storage, kind: type[Any], happens: Callable[[], Awaitable[Any]], *, finding: bool = False
    ) -> None:
        super().__init__(storage)
        self._kind = kind
        self._happens: Callable[[], Awaitable[Any]] | None = happens
        self.finding = finding

    @property
    def happened(self) -> bool:
        return self._happens is None

    @asynccontextmanager
    async def unit(self) -> AsyncIterator[Unit]:
        async with self.inner.unit() as unit:
            yield _InterruptedUnit(unit, self)

    async def interrupt(self) -> None:
        if self._happens is not None:
            happens, self._happens = self._happens, None
            await happens()

    def repository(self, repository: Repository[R], kind: type[R]) -> Repository[R]:
        return _InterruptedRepository(repository, self) if kind is self._kind else repository


class _InterruptedUnit:
    def __init__(self, unit: Unit, by: Interrupted) -> None:
        self._unit = unit
        self._by = by

    def __getitem__(self, kind: type[R], /) -> Repository[R]:
        return self._by.repository(self._unit[kind], kind)

    async def commit(self, *, durable: bool = True) -> None:
        await self._unit.commit(durable=durable)


class _InterruptedRepository(ForwardingRepository[R], Generic[R], eq=False):
    _by: Interrupted

    async def get(self, record_id: str, /) -> R | None:
        found = await self.inner.get(record_id)
        if not self._by.finding:
            await self._by.interrupt()
        return found

    async def find(self, **asked: Any) -> list[R]:
        found = await self.inner.find(**asked)
        if found and self._by.finding:
            await self._by.interrupt()
        return found
