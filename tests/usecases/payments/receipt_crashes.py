"""A payment and its refund with receipts, killed at one commit or at one call of the register, and continued by a new
process. The register loses some answers as well."""

import random
from contextlib import suppress
from typing import Any

import msgspec

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.receipts.receipts import FiscalReceipt
from cambist.core.usecases.jobs import LEASE
from cambist.core.usecases.notifications import on_notification
from cambist.core.usecases.refunds.refunds import create_refund_for
from cambist.frontends.app.compose import Adapters
from cambist.ports.bank import InvoiceStatus
from cambist.ports.bank_simulator import Simulation
from cambist.ports.bundle import Ports
from cambist.ports.faults import OutcomeUnknown
from cambist.ports.receipts import ReceiptNeed, ReceiptRequest, ReceiptState
from tests.apps import TestApp, open_test_app
from tests.crash_points import CrashPoint, Killed, fused
from tests.usecases.payments.test_receipt_progress import Book, Cloud, Register
from tests.usecases.payments.test_receipts import EMAIL, Till, configured

NEVER = CrashPoint(0, after=False)


class Doomed:
    """A register whose calls are crash points, too."""

    def __init__(self, book: Book, fuse: CrashPoint) -> None:
        self._book = book
        self._fuse = fuse

    def __getattr__(self, name: str) -> Any:
        return getattr(self._book, name)

    async def find_receipt(self, request: ReceiptRequest) -> ReceiptState | None:
        self._die(at_the_end=False)
        found = await self._book.find_receipt(request)
        self._die(at_the_end=True)
        return found

    async def write_receipt(self, request: ReceiptRequest) -> ReceiptState:
        self._die(at_the_end=False)
        state = await self._book.write_receipt(request)
        self._die(at_the_end=True)
        return state

    def _die(self, *, at_the_end: bool) -> None:
        self._fuse.commits += not at_the_end
        if self._fuse.commits == self._fuse.at and self._fuse.after is at_the_end:
            raise Killed


def doomed(ports: Ports, book: Book, fuse: CrashPoint) -> Ports:
    """Return the ports of a process that will die at this point."""
    ports = fused(ports, fuse)
    dying: Any = Doomed(book, fuse)
    if ports.register is not None:
        return msgspec.structs.replace(ports, register=dying)
    banks = msgspec.structs.replace(ports.banks, banks={**ports.banks.banks, book.name: dying})  # type: ignore[attr-defined]
    return msgspec.structs.replace(ports, banks=banks)


async def live_through(app: TestApp, ports: Ports, bank: Till, payment_id: str) -> None:
    """Pay, write the receipt, refund a part, write its receipt. What has happened already is not repeated."""
    payment = await app.payment(payment_id)
    simulation = Simulation(status=InvoiceStatus.PAID)
    for notification in await bank.simulate(payment_id, simulation, reference=payment.bank_reference):
        await on_notification(ports, notification)
    app.ports = ports
    await app.work(15)
    if not (await app.payment(payment_id)).refund_taken.kopecks:
        await create_refund_for(ports, payment_id, amount_rub="30.00")
    await app.work(15)


async def check_crashes(seed: int, count: int) -> int:
    """Die at `count` points, half of them with a bank that gets receipts apart and half with a register. Return the
    number of processes that died."""
    died = 0
    for kind in ("bank", "register"):
        book: Book = Register() if kind == "bank" else Cloud()
        bank = book if isinstance(book, Till) else Till(ReceiptNeed.NONE)
        async with open_test_app(receiver=False, adapters=Adapters(banks={Mode.LIVE: [bank]})) as app:
            if kind == "register":
                app.connect(register=book)
            bank.at(app.clock)
            await configured(app, refunds="true", refund_approval="auto")
            chance = random.Random(f"{seed}/{kind}")
            died += sum([await _die_once(app, bank, book, chance) for _ in range(count // 2)])
    return died


async def _die_once(app: TestApp, bank: Till, book: Book, chance: random.Random) -> bool:
    payment_id = (await app.create({"amount_rub": "100.00", "client_email": EMAIL}, mode="live")).json()["id"]
    whole, fuse = app.ports, CrashPoint(chance.randint(1, POINTS), after=chance.random() < 0.5)
    book.words.extend([OutcomeUnknown("cut")] * chance.choice((0, 0, 1, 2)))
    book.takes_anyway = chance.random() < 0.5
    died = True
    with suppress(Killed):
        await live_through(app, doomed(whole, book, fuse), bank, payment_id)
        died = False
    app.ports = whole
    await app.work(LEASE + 30)
    await live_through(app, whole, bank, payment_id)
    await app.work(900)
    async with whole.storage.unit() as unit:
        receipts = await unit[FiscalReceipt].find(payment_id=payment_id)
    causes = {receipt.refund_id or payment_id for receipt in receipts}
    assert len(receipts) == len(causes) == 2, (fuse.at, fuse.after, receipts)
    assert {receipt.status.value for receipt in receipts} == {"succeeded"}, (fuse.at, fuse.after)
    written = sorted(each.of for each in book.written.values() if each.of in causes)
    assert written == sorted(causes), (fuse.at, fuse.after, "each has one receipt")
    return died


POINTS = 14
"""Commits and calls of the story, about."""
