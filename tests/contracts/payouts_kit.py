"""Kit for tests of wallets: a world with a storage, a clock and a script, and a storage whose calls a test can
delay."""

import asyncio
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime

from cambist.adapters.clock import VirtualClock
from cambist.adapters.ids import SeededIds
from cambist.adapters.payouts.simulator import FINALITY, LIFETIME, SimulatedSender
from cambist.adapters.script import SenderScript
from cambist.adapters.storage.memory.memory import MemoryStorage
from cambist.core.domain.tron import tron_address
from cambist.ports.clock import Ids
from cambist.ports.faults import Fault
from cambist.ports.notes import ProviderNote
from cambist.ports.payouts import SignedTransfer, TransferState, UsdtSender
from cambist.ports.storage import Unit
from tests.race_barriers import OtherCommit

START = datetime(2026, 8, 8, 12, tzinfo=UTC)
OPERATION = "wd_1"
ADDRESS = tron_address(bytes(range(20)))
UNITS = 250_000_000_00
UNSEEN, IN_BLOCK = TransferState.UNSEEN, TransferState.IN_BLOCK
FINAL, FAILED = TransferState.FINAL, TransferState.FAILED
END = (LIFETIME + FINALITY).total_seconds()
"""Seconds after signing when a transfer that is in no block is proven absent."""


class World:
    """A storage, a clock, and the wallet over them; `sender()` again is the wallet after a restart."""

    def __init__(self, storage: MemoryStorage | None = None) -> None:
        self.clock = VirtualClock(START)
        self.storage = storage or MemoryStorage(self.clock)
        self.script = SenderScript()
        self.ids: Ids = SeededIds()

    def sender(self, name: str = "sim") -> SimulatedSender:
        return SimulatedSender(name, self.storage, self.clock, self.ids, script=self.script)

    async def notes(self) -> int:
        async with self.storage.unit() as unit:
            return await unit[ProviderNote].total()


async def signed_by(sender: UsdtSender, operation: str = OPERATION) -> SignedTransfer:
    return await sender.sign(operation, ADDRESS, UNITS)


class Held(MemoryStorage):
    """A storage whose next commit waits, or whose commits do not answer."""

    fault: Fault | None = None
    _gate: asyncio.Event | None = None

    def hold(self) -> asyncio.Event:
        """Let the next commit wait for the event."""
        self._gate = asyncio.Event()
        return self._gate

    def unit(self) -> AbstractAsyncContextManager[Unit]:
        return _HeldUnit(super().unit(), self)

    async def before_commit(self) -> None:
        if self.fault is not None:
            raise self.fault
        gate, self._gate = self._gate, None
        if gate is not None:
            await gate.wait()


class _HeldUnit(AbstractAsyncContextManager[Unit]):
    def __init__(self, inner: AbstractAsyncContextManager[Unit], storage: Held) -> None:
        self._inner, self._storage = inner, storage

    async def __aenter__(self) -> Unit:
        unit = await self._inner.__aenter__()

        async def commit() -> None:
            await self._storage.before_commit()
            await unit.commit()

        return OtherCommit(unit, commit)

    async def __aexit__(self, *caught: object) -> None:
        await self._inner.__aexit__(None, None, None)
