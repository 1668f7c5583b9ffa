"""Units that all read before one of them writes: the race that is hard to meet by chance."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from cambist.ports.storage import Unit


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


class GatedUnit:
    """A unit that commits only when all the others are about to, or have."""

    def __init__(self, unit: Unit, gate: Gate) -> None:
        self._unit = unit
        self._gate = gate

    def __getitem__(self, kind: Any) -> Any:
        return self._unit[kind]

    async def commit(self) -> None:
        await self._gate.pass_through()
        await self._unit.commit()


class GatedStorage:
    """A storage whose units all read before one of them writes."""

    def __init__(self, storage: Any, parties: int) -> None:
        self._storage = storage
        self._gate = Gate(parties)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    @asynccontextmanager
    async def unit(self) -> AsyncIterator[GatedUnit]:
        async with self._storage.unit() as unit:
            yield GatedUnit(unit, self._gate)
