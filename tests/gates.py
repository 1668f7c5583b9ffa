"""Units that all read before one of them writes: the race that is hard to meet by chance."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from cambist.ports.storage import R, Shelf, Unit


class Gate:
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

    def __getitem__(self, kind: type[R], /) -> Shelf[R]:
        return self._unit[kind]

    async def commit(self) -> None:
        await self._commit()


class GatedStorage:
    """A storage whose units all read before one of them writes."""

    def __init__(self, storage: Any, parties: int) -> None:
        self._storage = storage
        self._gate = Gate(parties)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    @asynccontextmanager
    async def unit(self) -> AsyncIterator[Unit]:
        async with self._storage.unit() as unit:

            async def commit() -> None:
                await self._gate.pass_through()
                await unit.commit()

            yield OtherCommit(unit, commit)
