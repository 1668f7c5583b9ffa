"""Crashes at a chosen commit: a storage whose units die just before or just after they take effect."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from cambist.ports.bundle import Ports
from cambist.ports.storage import Unit


class Killed(BaseException):
    """The process is gone: nothing may catch it."""


class Fuse:
    """Kills at one commit of many, before or after it takes effect."""

    def __init__(self, at: int, *, after: bool) -> None:
        self.at = at
        self.after = after
        self.commits = 0


class FusedUnit:
    def __init__(self, unit: Unit, fuse: Fuse) -> None:
        self._unit = unit
        self._fuse = fuse

    def __getitem__(self, kind: Any) -> Any:
        return self._unit[kind]

    async def commit(self) -> None:
        self._fuse.commits += 1
        blown = self._fuse.commits == self._fuse.at
        if blown and not self._fuse.after:
            raise Killed
        await self._unit.commit()
        if blown:
            raise Killed


class FusedStorage:
    """A storage whose units blow the fuse; everything else is the storage's own."""

    def __init__(self, storage: Any, fuse: Fuse) -> None:
        self._storage = storage
        self._fuse = fuse

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    @asynccontextmanager
    async def unit(self) -> AsyncIterator[FusedUnit]:
        async with self._storage.unit() as unit:
            yield FusedUnit(unit, self._fuse)


def fused(ports: Ports, fuse: Fuse) -> Ports:
    """The ports of a process that will die."""
    return msgspec.structs.replace(ports, storage=FusedStorage(ports.storage, fuse))
