"""Random histories of a merchant's money, over HTTP and with crashes at any commit: after every step the ledger sums to
zero and proves itself, balances equal the journal and follow from the objects, statements equal their credit, refunded
never exceeds paid, and nothing is paid out twice (ARCHITECTURE.md "Money"; tests/invariants.py says it row by row)."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from decimal import Decimal
from typing import Any
from uuid import UUID

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cambist.adapters.payouts.simulator import SimulatedSender
from cambist.adapters.script import Ending, Twist
from cambist.core.domain.refunds.refunds import Refund, holds_money
from cambist.core.domain.settlement.withdrawals import Withdrawal, WithdrawalStatus
from cambist.core.usecases.accounts import shops
from cambist.core.usecases.accounts.accounts import set_settings
from cambist.core.usecases.ledger.balance import read_balance
from cambist.core.usecases.recurring_jobs import start_recurring_jobs
from cambist.core.usecases.settlement.settlement import settle_own
from cambist.ports.rates import RateSimulation, RateSimulator
from tests.apps import TestApp, open_test_app
from tests.crash_points import CrashPoint, Killed, fused
from tests.invariants import check_books, everything
from tests.usecases.settlement.test_settlement import caller

WALLET = "TP2XF6cQrytbPzkiympYZe7ptUkDacptok"

amounts = st.integers(30_00, 500_000_00).filter(lambda kopecks: kopecks != 404_04)
"""The amount that is left out answers 502 by design (docs/sandbox.md)."""
some = st.integers(0, 99)
pauses = st.sampled_from([0, 0, 3, 3, 8, 3600])
"""Nothing; until a refund is at the bank; until the bank has sent it; an hour."""
refund = st.tuples(st.just("refund"), some, st.tuples(st.sampled_from([1, 20, 33, 50, 99, 100, 120]), pauses))
play = st.tuples(st.just("play"), some, st.sampled_from(["completed", "rejected", "failed", "reversed", "reversed"]))
settle = st.tuples(st.just("settle"), st.integers(0, 12), st.booleans())
crossing = st.tuples(
    st.just("cross"),
    some,
    st.tuples(st.sampled_from([1, 50, 99]), st.booleans(), st.sampled_from(["failed", "reversed", "completed"])),
)
"""A refund of which a part lies before a settlement and its end after it."""
steps = st.one_of(
    crossing,
    st.tuples(st.just("pay"), amounts, st.booleans()),
    st.tuples(st.just("mismatch"), amounts, st.sampled_from(["paid", "failed"])),
    refund,
    refund,
    play,
    play,
    settle,
    settle,
    st.tuples(st.just("cancel"), some, st.just(0)),
    st.tuples(st.just("rate"), st.integers(70_000, 120_000), st.just(0)),
    st.tuples(st.just("wallet"), st.booleans(), st.just(0)),
    st.tuples(st.just("overdraft"), st.integers(0, 500), st.just(0)),
    st.tuples(st.just("fault"), st.sampled_from(["refund", "sign", "broadcast"]), st.integers(0, 9)),
    st.tuples(st.just("wait"), st.sampled_from([1, 3, 60, 3600, 90_000]), st.just(0)),
)


class History:
    """One merchant's story. Every step may be refused, and none may make the books inconsistent."""

    def __init__(self, app: TestApp) -> None:
        self.app = app
        self.payments: list[str] = []
        self.refunds: list[str] = []
        self.keys = 0
        self.shops: list[str] = []

    async def begin(self) -> None:
        await set_settings(self.app.ports, self.app.account.account_id, {"refunds": "true"})
        further = await shops.create_shop(self.app.ports, self.app.account.account_id, "Further", "0.0175")
        self.shops = [self.app.account.default_shop_id, further.id]
        await start_recurring_jobs(self.app.ports)
        for kopecks in (100_00, 333_33, 7_777_77):
            await self.pay(kopecks, kopecks == 333_33)

    async def post(self, path: str, body: Any = None) -> Any:
        self.keys += 1
        headers = self.app.headers(Idempotency_Key=str(UUID(int=self.keys)))
        answered = await self.app.http.post(f"/api/v1{path}", json=body or {}, headers=headers)
        assert answered.status_code < 500 or answered.status_code == 503, answered.text
        return answered.json()

    async def pay(self, kopecks: int, further: bool) -> None:
        amount = f"{Decimal(kopecks) / 100:.2f}"
        made = await self.post("/payments", {"amount_rub": amount, "shop_id": self.shops[further]})
        await self.post(f"/sandbox/payments/{made['id']}/simulate", {"outcome": "paid"})
        self.payments.append(made["id"])

    async def mismatch(self, kopecks: int, outcome: str) -> None:
        made = await self.post("/payments", {"amount_rub": f"{Decimal(kopecks) / 100:.2f}"})
        await self.post(f"/sandbox/payments/{made['id']}/simulate", {"outcome": "amount_mismatch"})
        await self.post(f"/sandbox/payments/{made['id']}/resolve", {"outcome": outcome})
        self.payments.append(made["id"])

    async def refund(self, which: int, how: tuple[int, int]) -> None:
        percent, pause = how
        payment_id = self.payments[which % len(self.payments)]
        paid = (await self.app.get(f"/payments/{payment_id}")).json()
        body: dict[str, Any] = {"payment_id": payment_id}
        if percent < 100:
            part = Decimal(paid["actual_amount_rub"] or "0") * percent / 100
            body["amount_rub"] = f"{part:.2f}"
        made = await self.post("/refunds", body)
        if "refund_id" in made:
            self.refunds.append(made["refund_id"])
        await self.app.work(pause)

    async def play(self, which: int, outcome: str) -> None:
        if self.refunds:
            await self.post(
                f"/sandbox/refunds/{self.refunds[which % len(self.refunds)]}/simulate", {"outcome": outcome}
            )

    async def cross(self, which: int, how: tuple[int, bool, str]) -> None:
        percent, is_done, ending = how
        await self.pay(10_000_00 + which, False)
        await self.refund(len(self.payments) - 1, (percent, 3))
        if is_done:
            await self.play(len(self.refunds) - 1, "completed")
        await self.settle(0, False)
        await self.play(len(self.refunds) - 1, ending)

    async def cancel(self, which: int, _: int) -> None:
        if self.refunds:
            await self.post(f"/refunds/{self.refunds[which % len(self.refunds)]}/cancel")

    async def settle(self, at: int, after: bool) -> None:
        """Settle, killed at some commit on the way; the next process continues."""
        who = await caller(self.app)
        with suppress(Killed):
            await settle_own(fused(self.app.ports, CrashPoint(at, after=after)), who)

    async def rate(self, thousandths: int, _: int) -> None:
        [source] = self.app.ports.rates.of_mode("test")
        assert isinstance(source, RateSimulator)
        await source.simulate(RateSimulation(rate=Decimal(thousandths) / 1000))
        # Past the jump guard's patience, so that the level is believed.
        await self.app.work(4000)

    async def wallet(self, on: bool, _: int) -> None:
        await set_settings(self.app.ports, self.app.account.account_id, {"payout_wallet": WALLET if on else ""})

    async def overdraft(self, usdt: int, _: int) -> None:
        await set_settings(self.app.ports, self.app.account.account_id, {"refund_overdraft_usdt": str(usdt)})

    async def fault(self, what: str, which: int) -> None:
        sender = self.app.ports.senders.of_mode("test")
        assert isinstance(sender, SimulatedSender)
        if what == "refund":
            endings = [ending for ending in Ending if ending is not Ending.NORMAL]
            self.app.script.refund.append(Twist(ending=endings[which % len(endings)]))
        else:
            endings_of_sender = [ending for ending in Ending if ending is not Ending.NORMAL]
            twists = sender.script.sign if what == "sign" else sender.script.broadcast
            ending = endings_of_sender[which % len(endings_of_sender)]
            if what == "sign" and ending is Ending.REFUSED:
                return
            twists.append(Twist(ending=ending))

    async def wait(self, seconds: int, _: int) -> None:
        await self.app.work(seconds)


async def live_through(history: list[tuple[Any, ...]]) -> None:
    async with open_test_app() as app:
        story = History(app)
        await story.begin()
        for name, first, second in history:
            step: Callable[[Any, Any], Awaitable[None]] = getattr(story, name)
            await step(first, second)
            await check_books(app.ports)
        # Faults have ended and time passes: everything comes to an end.
        app.script.refund.clear()
        await app.work(3 * 86_400)
        await check_books(app.ports)
        balance = await read_balance(app.ports, await caller(app))
        assert balance.reserved.units == 0
        refunds = [refund for refund in await everything(app.ports, Refund) if holds_money(refund)]
        refunded = sum(refund.taken_usdt.units for refund in refunds if refund.taken_usdt is not None)
        assert (balance.available + balance.withdrawn).units + refunded == balance.settled.units
        ends = {withdrawal.status for withdrawal in await everything(app.ports, Withdrawal)}
        assert ends <= {WithdrawalStatus.COMPLETED, WithdrawalStatus.FAILED, WithdrawalStatus.CANCELLED}
        for payment_id in story.payments:
            payment = (await app.get(f"/payments/{payment_id}")).json()
            assert payment["status"] in ("settled", "refunded", "failed"), payment


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.lists(steps, min_size=8, max_size=24))
def test_books_agree_after_any_history(history: list[tuple[Any, ...]]) -> None:
    asyncio.run(live_through(history))


async def test_refund_before_settlement_lowers_the_pending_sum_without_a_fee(app: TestApp) -> None:
    """Before settlement a refund lowers `pending_rub` (docs/refunds.md "The money")."""
    story = History(app)
    await story.begin()
    await story.refund(0, (100, 0))
    await story.play(0, "completed")
    balance = await read_balance(app.ports, await caller(app))
    assert (str(balance.pending), str(balance.available)) == ("8111.10", "0.00000000")
    await story.settle(0, False)
    balance = await read_balance(app.ports, await caller(app))
    assert str(balance.pending) == "0.00"


async def test_the_fee_stays_when_a_payment_is_refunded_after_its_settlement(app: TestApp) -> None:
    """The fee is not given back (docs/refunds.md "The money"). 100 RUB were credited as 1.04864864 USDT and leave as
    1.08108108."""
    story = History(app)
    await story.begin()
    await story.settle(0, False)
    before = await read_balance(app.ports, await caller(app))
    await story.refund(0, (100, 8))
    after = await read_balance(app.ports, await caller(app))
    assert str(before.available - after.available) == "1.08108108"
    assert (await app.get(f"/payments/{story.payments[0]}")).json()["status"] == "refunded"
