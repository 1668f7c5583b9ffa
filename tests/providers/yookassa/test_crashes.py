"""A crash at any commit, or at any call of YooKassa, loses nothing and does nothing twice: the story is run once for
each, killed after it, and continued by a new process (ARCHITECTURE.md "Units and jobs")."""

from contextlib import suppress
from typing import Any
from uuid import UUID

import msgspec

from cambist.core.domain.accounts.accounts import Account, Caller, Mode
from cambist.core.domain.payments.orders import PaymentOrder
from cambist.core.domain.payments.payments import Payment
from cambist.core.domain.refunds.orders import RefundOrder
from cambist.core.domain.refunds.refunds import Refund
from cambist.core.usecases.jobs import LEASE
from cambist.core.usecases.payments.payments import create_payment
from cambist.core.usecases.refunds.refunds import create_refund
from cambist.frontends.layers.wrapping import Call, wrapped
from cambist.ports.bank_routes import BankRoutes
from cambist.ports.bundle import Ports
from tests.apps import TestApp
from tests.crash_points import CrashPoint, Killed, fused
from tests.invariants import everything
from tests.providers.bank_app import Cabinet
from tests.tables import table

from .app import open_yookassa_app
from .fake import YooKassaFake

PAY, BACK = str(UUID(int=7)), str(UUID(int=8))
CALLS = ("create_invoice", "search_invoice", "invoice_state", "refund", "search_refund")
POINTS = 23
"""Commits and calls of the story; a test compares it with the actual number."""


def fused_throughout(ports: Ports, fuse: CrashPoint) -> Ports:
    """The ports of a process that will die at a commit, or at a call of the bank."""

    def around(_name: str, call: Call) -> Call:
        async def called(*told: Any) -> Any:
            fuse.commits += 1
            blown = fuse.commits == fuse.at
            if blown and not fuse.after:
                raise Killed
            said = await call(*told)
            if blown:
                raise Killed
            return said

        return called

    banks = {
        name: wrapped(bank, CALLS, around) if name == "yookassa" else bank for name, bank in ports.banks.banks.items()
    }
    return msgspec.structs.replace(fused(ports, fuse), banks=BankRoutes(banks=banks, order=ports.banks.order))


async def story(app: TestApp, fake: YooKassaFake, cabinet: Cabinet, ports: Ports) -> None:
    """Create a payment, pay it, and refund a part. The outside world does not repeat a step that is already done."""
    app.ports = ports
    async with ports.storage.unit() as unit:
        account = await unit[Account].get(app.account.account_id)
    assert account is not None
    who = Caller(account=account, mode=Mode.LIVE, key_id="a-key")
    made = await create_payment(ports, who, PAY, lambda: PaymentOrder(amount_rub="100.00"))
    payment_id = made.resource.id
    for thing in fake.books.of_kind("payment"):
        if thing["status"] == "pending":
            fake.books.pay(thing["id"])
    await tell(fake, cabinet)
    await app.work(30)
    order = RefundOrder(payment_id=payment_id, amount_rub="40.00")
    await create_refund(ports, who, BACK, lambda: order)
    await app.work(30)
    for thing in fake.books.pending_refunds():
        fake.books.finish_refund(thing["id"])
    await tell(fake, cabinet)
    await app.work(30)


async def tell(fake: YooKassaFake, cabinet: Cabinet) -> None:
    told = list(fake.told)
    fake.told.clear()
    for notification in told:
        assert (await cabinet.post(notification)).status_code == 200


async def run_with_crash(at: int, *, after: bool) -> int:
    """Run the story with a crash at point `at`, recover, finish it, check everything. Returns the points seen."""
    async with open_yookassa_app() as (app, fake, cabinet):
        whole, fuse = app.ports, CrashPoint(at, after=after)
        with suppress(Killed):
            await story(app, fake, cabinet, fused_throughout(whole, fuse))
        app.ports = whole
        # The new process: the dead one's leases expire, and the watch resumes the work.
        await app.work(LEASE + 30)
        await story(app, fake, cabinet, whole)
        await app.work(LEASE)
        await check(app, fake)
        return fuse.commits


async def check(app: TestApp, fake: YooKassaFake) -> None:
    [payment] = await everything(app.ports, Payment)
    [refund] = await everything(app.ports, Refund)
    assert (payment.status, refund.status) == ("paid", "completed")
    [paid] = [thing for thing in fake.books.of_kind("payment") if thing["status"] == "succeeded"]
    assert (paid["metadata"]["operation"], paid["refunded_amount"]["value"]) == (payment.id, "40.00")
    assert [thing["status"] for thing in fake.books.of_kind("refund")] == ["succeeded"]
    said = {webhook.headers["X-Webhook-Id"]: msgspec.json.decode(webhook.body) for webhook in app.postman.webhooks}
    told = sorted((body["event"], body["status"]) for body in said.values())
    assert told == [("payment.status_changed", "paid"), ("refund.completed", "completed")]


async def test_the_story_has_as_many_points_as_are_swept() -> None:
    assert await run_with_crash(0, after=False) == POINTS


@table("at", range(1, POINTS + 1))
async def test_a_crash_at_any_point_loses_nothing_and_does_nothing_twice(at: int) -> None:
    """Crash after each call. Only these calls write lasting state, so a crash just before the next one is the same."""
    await run_with_crash(at, after=True)
