"""A crash at any point of a refund's life ends as if there had been none: the story is run once per commit and call of
the bank, killed just before or just after it, and continued by a new process (ARCHITECTURE.md "Units and jobs"). The
payer gets the money at most once."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any
from uuid import UUID

import msgspec
import pytest

from cambist.adapters.script import Ending, Twist
from cambist.core.domain.money import Rub, Usdt
from cambist.core.domain.payments.suspense import Suspense
from cambist.core.domain.refunds.orders import RefundOrder
from cambist.core.domain.refunds.refunds import Refund
from cambist.core.usecases.notifications import on_notification
from cambist.core.usecases.operators.review import resolve_mismatch
from cambist.core.usecases.refunds.refunds import create_refund
from cambist.core.usecases.refunds.suspense_return import return_suspense
from cambist.ports.bank import RefundRequest, RefundState, RefundStatus
from cambist.ports.bank_routes import BankRoutes
from cambist.ports.bundle import Ports
from tests.crash_points import CrashPoint, Killed, fused
from tests.invariants import everything
from tests.refund_app import SETTLED_100, RefundApp, open_refund_app
from tests.stand_in import StandIn
from tests.tables import table

KEY = str(UUID(int=7))
LEASES_ARE_OVER = 90.0
"""Seconds after which no job of a dead process is held."""


class FusedBank(StandIn):
    """A bank whose calls blow the fuse as commits do; its own books do not."""

    def __init__(self, bank: Any, fuse: CrashPoint) -> None:
        self._bank = bank
        self._fuse = fuse

    def _original(self) -> Any:
        return self._bank

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bank, name)

    async def refund(self, request: RefundRequest) -> RefundState:
        found: RefundState = await self._called(self._bank.refund, request)
        return found

    async def find_refund(self, operation: str) -> RefundState | None:
        found: RefundState | None = await self._called(self._bank.find_refund, operation)
        return found

    async def _called(self, call: Callable[[Any], Awaitable[Any]], argument: Any) -> Any:
        self._fuse.commits += 1
        blown = self._fuse.commits == self._fuse.at
        if blown and not self._fuse.after:
            raise Killed
        found = await call(argument)
        if blown:
            raise Killed
        return found


def fused_throughout(ports: Ports, fuse: CrashPoint) -> Ports:
    """The ports of a process that will die at a commit or at a call of the bank."""
    banks: dict[str, Any] = {name: FusedBank(bank, fuse) for name, bank in ports.banks.banks.items()}
    return msgspec.structs.replace(fused(ports, fuse), banks=BankRoutes(banks=banks, order=ports.banks.order))


class Way(msgspec.Struct, frozen=True, kw_only=True):
    """A refund's life and its outcome."""

    settled: bool = False
    refused: bool = False

    async def story(self, refunds: RefundApp, ports: Ports, payment_id: str) -> None:
        """Create, execute, complete, reverse."""
        caller = await refunds.caller()
        made = await create_refund(ports, caller, KEY, lambda: RefundOrder(payment_id=payment_id))
        refunds.app.ports = ports
        await refunds.app.work(2)
        await refunds.app.work(5)
        if not self.refused:
            for notification in await refunds.bank().simulate_refund(made.resource.id, RefundStatus.REVERSED):
                await on_notification(ports, notification)
        await refunds.app.work()

    async def check(self, refunds: RefundApp, payment_id: str) -> None:
        [refund] = await everything(refunds.ports, Refund)
        end = ["failed"] if self.refused else ["completed", "reversed"]
        assert await refunds.said(refund.id) == end
        assert refund.status == end[-1]
        payment = await refunds.payment(payment_id)
        live = "settled" if self.settled else "paid"
        assert (payment.status, payment.refund_pending, payment.refund_taken) == (live, False, Rub(0))
        before = ["paid", "settled"] if self.settled else ["paid"]
        assert await refunds.said(payment_id) == (before if self.refused else [*before, "refunded", live])
        balance = await refunds.balance()
        expected = (Rub(0), Usdt(2 * SETTLED_100)) if self.settled else (Rub(100_00), Usdt(0))
        assert (balance.pending, balance.available) == expected
        assert await refunds.left_at_bank(payment_id) == 100_00

    async def run(self, at: int, *, after: bool) -> int:
        """Run the story with a crash at point `at`, recover, finish it, check everything. Returns the points seen."""
        async with open_refund_app() as refunds:
            payment_id = await refunds.paid()
            if self.settled:
                await refunds.paid()
                await refunds.app.clock.advance(1)
                await refunds.settle()
            await refunds.app.work()
            if self.refused:
                refunds.app.script.refund.extend([Twist(ending=Ending.REFUSED)] * 2)
            whole, fuse = refunds.ports, CrashPoint(at, after=after)
            with suppress(Killed):
                await self.story(refunds, fused_throughout(whole, fuse), payment_id)
            refunds.app.ports = whole
            # The new process: the dead one's leases expire, and the job resumes the work.
            await refunds.app.work(LEASES_ARE_OVER)
            await self.story(refunds, whole, payment_id)
            await refunds.app.work(LEASES_ARE_OVER)
            await self.check(refunds, payment_id)
            return fuse.commits


@pytest.mark.parametrize(
    ("way", "fewest"),
    [(Way(), 12), (Way(settled=True), 12), (Way(refused=True), 4)],
    ids=["before settlement", "after settlement", "refused"],
)
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_a_crash_at_any_point_ends_as_if_there_had_been_none(way: Way, fewest: int, after: bool) -> None:
    points = await way.run(0, after=after)
    assert points >= fewest
    for at in range(1, points + 1):
        await way.run(at, after=after)


async def _return(refunds: RefundApp, ports: Ports, payment_id: str) -> None:
    """Reject the received money. If the bank could not return it, try once more."""
    payment = await refunds.payment(payment_id)
    if payment.status == "amount_mismatch":
        await resolve_mismatch(ports, payment_id, "failed")
    refunds.app.ports = ports
    await refunds.app.work(6)
    [money] = await everything(refunds.ports, Suspense)
    if money.reason == "return_failed":
        await return_suspense(ports, money.id)
        await refunds.app.work(6)


@table(("after", "refused"), [(False, 0), (True, 0), (True, 1)], ids=["before", "after", "at the second attempt"])
async def test_a_crash_while_suspense_is_sent_back_sends_it_once(after: bool, refused: int) -> None:
    points, at = 1, 0
    while at <= points:
        async with open_refund_app() as refunds:
            payment_id = (await refunds.app.created())["id"]
            await refunds.app.simulate(payment_id, outcome="paid", actual_amount_rub="60.00")
            refunds.app.script.refund.extend([Twist(ending=Ending.REFUSED)] * refused)
            whole, fuse = refunds.ports, CrashPoint(at, after=after)
            with suppress(Killed):
                await _return(refunds, fused_throughout(whole, fuse), payment_id)
            refunds.app.ports = whole
            await refunds.app.work(LEASES_ARE_OVER)
            await _return(refunds, whole, payment_id)
            await refunds.app.work(LEASES_ARE_OVER)
            assert await refunds.left_at_bank(payment_id) == 0
            assert await refunds.said(payment_id) == ["amount_mismatch", "failed"]
            points = fuse.commits if at == 0 else points
        at += 1
    assert points >= (11 if refused else 6)
