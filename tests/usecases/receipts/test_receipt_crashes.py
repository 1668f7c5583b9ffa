"""A crash at any commit, or at any call of the cash register, leaves one receipt of a payment
(docs/receipts.md "State")."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import msgspec
import pytest

from cambist.adapters.receipts.simulator import SimulatedRegister
from cambist.adapters.storage.memory.memory import MemoryStorage
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.receipts.receipts import FiscalReceipt
from cambist.core.usecases.notifications import on_notification
from cambist.frontends.app.compose import Adapters
from cambist.ports.bank import InvoiceStatus
from cambist.ports.bank_simulator import Simulation
from cambist.ports.bundle import Ports
from cambist.ports.receipts import ReceiptNeed, ReceiptRequest, ReceiptState
from tests.apps import TestApp, open_test_app
from tests.crash_points import CrashPoint, Killed, fused
from tests.invariants import everything
from tests.usecases.payments.test_receipts import Till, configured

LEASES_ARE_OVER = 90.0
"""Seconds after which no job of a dead process is held."""
EMAIL = "payer@example.com"


class Cloud(SimulatedRegister):
    """A register that keeps every new document."""

    def __init__(self, clock: Any = None) -> None:
        super().__init__("cloud", MemoryStorage(clock), clock)
        self.documents: list[str] = []

    async def write_receipt(self, request: ReceiptRequest) -> ReceiptState:
        if await self._receipts.read(request.operation) is None:
            self.documents.append(request.operation)
        return await super().write_receipt(request)


class FusedRegister:
    """A register whose calls blow the fuse as commits do."""

    def __init__(self, register: Any, fuse: CrashPoint) -> None:
        self._register = register
        self._fuse = fuse
        self.name: str = register.name

    async def write_receipt(self, request: ReceiptRequest) -> ReceiptState:
        state: ReceiptState = await self._called(self._register.write_receipt, request)
        return state

    async def find_receipt(self, request: ReceiptRequest) -> ReceiptState | None:
        state: ReceiptState | None = await self._called(self._register.find_receipt, request)
        return state

    async def _called(self, call: Callable[[Any], Awaitable[Any]], request: ReceiptRequest) -> Any:
        self._fuse.commits += 1
        is_blown = self._fuse.commits == self._fuse.at
        if is_blown and not self._fuse.after:
            raise Killed
        found = await call(request)
        if is_blown:
            raise Killed
        return found


async def _story(app: TestApp, bank: Till, ports: Ports, payment_id: str) -> None:
    app.ports = ports
    payment = await app.payment(payment_id)
    if payment.paid_at is None:
        simulation = Simulation(status=InvoiceStatus.PAID)
        for notification in await bank.simulate(payment_id, simulation, reference=payment.bank_reference):
            await on_notification(ports, notification)
    await app.work(30)


async def _run(at: int, *, after: bool) -> int:
    bank, cloud = Till(ReceiptNeed.NONE), Cloud()
    async with open_test_app(adapters=Adapters(banks={Mode.LIVE: [bank]}, receipts=cloud)) as app:
        bank.at(app.clock)
        Cloud.__init__(cloud, app.clock)
        await configured(app, refunds="true", refund_approval="auto")
        whole = app.ports
        made = await app.create({"client_email": EMAIL}, mode="live")
        payment_id = made.json()["id"]
        fuse = CrashPoint(at, after=after)
        dying = msgspec.structs.replace(fused(whole, fuse), register=FusedRegister(whole.register, fuse))
        with suppress(Killed):
            await _story(app, bank, dying, payment_id)
        app.ports = whole
        await app.work(LEASES_ARE_OVER)
        await _story(app, bank, whole, payment_id)
        await app.work(LEASES_ARE_OVER)
        receipts = await everything(whole, FiscalReceipt)
        assert [(each.status, each.attempt, each.provider) for each in receipts] == [("succeeded", 1, "cloud")]
        assert cloud.documents == [receipts[0].operation]
        return fuse.commits


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_a_crash_at_any_point_leaves_one_receipt(after: bool) -> None:
    points = await _run(0, after=after)
    assert points >= 6
    for at in range(1, points + 1):
        await _run(at, after=after)
