"""A simulated bank over a storage in memory and a virtual clock, for the tests of what banks must do."""

import asyncio
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cambist.adapters.bank.simulator.simulator import SimulatedBank
from cambist.adapters.clock import VirtualClock
from cambist.adapters.ids import SeededIds
from cambist.adapters.script import Script
from cambist.adapters.storage.memory.memory import MemoryStorage
from cambist.ports.bank import (
    Bank,
    BankCapabilities,
    InvoiceRequest,
    InvoiceState,
    InvoiceStatus,
    RefundRequest,
    RefundState,
    RefundStatus,
)
from cambist.ports.bank_simulator import Simulation
from cambist.ports.faults import Fault, Refused
from cambist.ports.storage import Unit
from tests.race_barriers import OtherCommit

START = datetime(2026, 8, 8, 12, tzinfo=UTC)
LIFETIME = timedelta(minutes=15)
OPERATION = "pay_1"
PAID = Simulation(status=InvoiceStatus.PAID)
REFUND = "ref_1"
DONE = RefundState(status=RefundStatus.DONE)
PROCESSING = RefundState(status=RefundStatus.PROCESSING)


class World:
    """A storage, a clock, and the bank over them; `bank()` again is the bank after a restart."""

    def __init__(self) -> None:
        self.clock = VirtualClock(START)
        self.storage = MemoryStorage(self.clock)
        self.script = Script()

    def bank(
        self,
        name: str = "sim",
        *,
        refunds_hold: timedelta | None = timedelta(0),
        links_after: timedelta | None = timedelta(0),
        capabilities: BankCapabilities | None = None,
        asked: bool = False,
    ) -> SimulatedBank:
        return SimulatedBank(
            name,
            self.storage,
            self.clock,
            SeededIds(),
            script=self.script,
            refunds_hold=refunds_hold,
            links_after=links_after,
            capabilities=capabilities,
            asked=asked,
        )

    def request(self, kopecks: int = 100_00, operation: str = OPERATION) -> InvoiceRequest:
        return InvoiceRequest(
            operation=operation, amount_kopecks=kopecks, purpose="Order 1", expires_at=self.clock.now() + LIFETIME
        )

    async def paid(self, bank: SimulatedBank, kopecks: int = 100_00, operation: str = OPERATION) -> None:
        """An invoice that is paid."""
        await bank.create_invoice(self.request(kopecks, operation))
        await bank.simulate(operation, PAID)

    async def state(self, bank: Bank, operation: str = OPERATION) -> InvoiceState:
        invoice = await bank.find_invoice(operation)
        assert invoice is not None
        return await bank.invoice_state(invoice.reference)


def back(kopecks: int = 100_00, operation: str = REFUND, **more: Any) -> RefundRequest:
    """Send 100 RUB of the one invoice back."""
    fields: dict[str, Any] = {"reference": f"sim:{OPERATION}", **more}
    return RefundRequest(operation=operation, amount_kopecks=kopecks, **fields)


async def sent(bank: Bank, *requests: RefundRequest) -> list[str]:
    """Send the requests at once. Return for each its status or the reason of its refusal, in the order of these
    words."""

    async def send(request: RefundRequest) -> str:
        try:
            return (await bank.refund(request)).status
        except Refused as refused:
            return refused.reason

    return sorted(await asyncio.gather(*(send(request) for request in requests)))


async def is_refused(bank: Bank, request: RefundRequest, reason: str) -> None:
    with pytest.raises(Refused) as refused:
        await bank.refund(request)
    assert refused.value.reason == reason
    assert await bank.find_refund(request.operation) is None


async def left(bank: Bank, most: int = 100_00) -> int:
    """Return how many kopecks the bank would still refund. It finds out by refunds that are executed."""
    total = 0
    for number in range(most // 1_00):
        if await sent(bank, back(1_00, f"ref_left_{number}")) == ["amount"]:
            break
        total += 1_00
    return total


class Busy(MemoryStorage):
    """A storage in which somebody else is always quicker, or which does not answer a commit."""

    fault: Fault | None = None
    spared = 0
    """How many commits still succeed before all fail."""

    def unit(self) -> AbstractAsyncContextManager[Unit]:
        return _Failing(super().unit(), self)


class _Failing(AbstractAsyncContextManager[Unit]):
    def __init__(self, inner: AbstractAsyncContextManager[Unit], storage: Busy) -> None:
        self._inner, self._storage = inner, storage

    async def __aenter__(self) -> Unit:
        unit = await self._inner.__aenter__()

        async def commit() -> None:
            storage = self._storage
            if storage.fault is None:
                return await unit.commit()
            if storage.spared:
                storage.spared -= 1
                return await unit.commit()
            raise storage.fault

        return OtherCommit(unit, commit)

    async def __aexit__(self, *caught: object) -> None:
        await self._inner.__aexit__(None, None, None)
