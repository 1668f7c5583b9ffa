"""Crashes at a chosen commit: a storage whose units die just before or just after they take effect."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from cambist.ports.bundle import Ports
from cambist.ports.forwarding import ForwardingStorage
from cambist.ports.storage import Storage, Unit


class Killed(BaseException):
    """The process is gone: nothing may catch it."""


class CrashPoint:
    """Kills at one commit of many, before or after it takes effect."""

    def __init__(self, at: int, *, after: bool) -> None:
        self.at = at
        self.after = after
        self.commits = 0


class CrashingUnit:
    def __init__(self, unit: Unit, fuse: CrashPoint) -> None:
        self._unit = unit
        self._fuse = fuse

    def __getitem__(self, kind: Any) -> Any:
        return self._unit[kind]

    async def commit(self, *, durable: bool = True) -> None:
        self._fuse.commits += 1
        blown = self._fuse.commits == self._fuse.at
        if blown and not self._fuse.after:
            raise Killed
        await self._unit.commit(durable=durable)
        if blown:
            raise Killed


class CrashingStorage(ForwardingStorage):
    """A storage whose units blow the fuse; everything else is the storage's own."""

    def __init__(self, storage: Storage, fuse: CrashPoint) -> None:
        super().__init__(storage)
        self._fuse = fuse

    @asynccontextmanager
    async def unit(self) -> AsyncIterator[Unit]:
        async with self.inner.unit() as unit:
            yield CrashingUnit(unit, self._fuse)


def fused(ports: Ports, fuse: CrashPoint) -> Ports:
    """The ports of a process that will die."""
    return msgspec.structs.replace(ports, storage=CrashingStorage(ports.storage, fuse))
