"""Any history of payments, refunds, settlements and banks' answers ends with books that agree with the objects and the
bank (ARCHITECTURE.md "Money")."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from itertools import pairwise

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cambist.adapters.script import Ending, Twist
from cambist.core.domain.errors import Refusal
from cambist.core.domain.money import Rub
from cambist.core.domain.payments.payments import Payment, PaymentStatus
from cambist.core.domain.refunds.refunds import Refund, RefundStatus
from cambist.core.usecases.refunds.refunds import approve_refund, cancel_refund, reject_refund
from cambist.ports.bank import RefundStatus as AtBank
from cambist.ports.faults import Refused
from tests.invariants import everything
from tests.refund_app import RefundApp, open_refund_app, send

OperatorAction = Callable[[int, int], Awaitable[None]]


class History:
    """Two payments and the events of their refunds."""

    def __init__(self, refunds: RefundApp, payments: list[str]) -> None:
        self.refunds = refunds
        self.payments = payments
        self.made: list[str] = []
        self.actions: Mapping[str, OperatorAction] = {
            "apply": self.apply,
            "cancel": self.cancel,
            "reject": self.reject,
            "approve": self.approve,
            "tell": self.tell,
            "twist": self.twist,
            "settle": self.settle,
            "work": self.work,
        }

    def one(self, which: int) -> str:
        return self.made[which % len(self.made)] if self.made else "ref_none"

    async def apply(self, which: int, much: int) -> None:
        amount = None if much % 5 == 0 else str(Rub(much * 100 + which))
        self.made.append((await self.refunds.make(self.payments[which % 2], amount)).id)
        if much % 3:
            await send(self.refunds.ports, self.made[-1])

    async def cancel(self, which: int, _: int) -> None:
        await cancel_refund(self.refunds.ports, await self.refunds.caller(), self.one(which))

    async def reject(self, which: int, _: int) -> None:
        await reject_refund(self.refunds.ports, self.one(which), "no")

    async def approve(self, which: int, _: int) -> None:
        await approve_refund(self.refunds.ports, self.one(which))

    async def tell(self, which: int, much: int) -> None:
        await self.refunds.tell(self.one(which), (AtBank.DONE, AtBank.FAILED, AtBank.REVERSED)[much % 3])

    async def twist(self, _: int, much: int) -> None:
        self.refunds.app.script.refund.append(Twist(ending=list(Ending)[much % len(Ending)]))

    async def settle(self, _: int, much: int) -> None:
        await self.refunds.set(refund_overdraft_usdt="0" if much % 2 else "0.1")
        await self.refunds.app.clock.advance(1)
        await self.refunds.settle()

    async def work(self, _: int, much: int) -> None:
        await self.refunds.app.work((1, 2, 5, 60)[much % 4])

    async def check(self) -> None:
        """Check that we and the bank agree once everything has ended; the app checks the books itself."""
        await self.refunds.app.work(24 * 3600)
        for payment in await everything(self.refunds.ports, Payment):
            mine = [each for each in await everything(self.refunds.ports, Refund) if each.payment_id == payment.id]
            assert not [refund for refund in mine if refund.status is RefundStatus.PROCESSING]
            sent = sum(refund.amount.kopecks for refund in mine if refund.status is RefundStatus.COMPLETED)
            assert await self.refunds.left_at_bank(payment.id) == 100_00 - sent
            assert (payment.status is PaymentStatus.REFUNDED) == (sent == 100_00)
            told = await self.refunds.said(payment.id)
            assert all(before != after for before, after in pairwise(told)), "a status is told once"
            for refund in mine:
                ends = await self.refunds.said(refund.id)
                assert ends in ([], ["rejected"], ["failed"], ["completed"], ["completed", "reversed"])


STEPS = st.lists(
    st.tuples(
        st.sampled_from(("apply", "tell", "tell", "cancel", "reject", "approve", "twist", "settle", "work")),
        st.integers(0, 5),
        st.integers(0, 60),
    ),
    min_size=5,
    max_size=40,
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STEPS)
def test_books_objects_and_bank_agree_after_any_history(steps: list[tuple[str, int, int]]) -> None:
    async def live() -> None:
        async with open_refund_app(receiver=False) as refunds:
            history = History(refunds, [await refunds.paid(), await refunds.paid()])
            for action, which, much in steps:
                with suppress(Refusal, Refused):
                    await history.actions[action](which, much)
            refunds.app.script.refund.clear()
            await history.check()

    asyncio.run(live())
