"""A refund that waits for money ends: 14 days after its approval it is tried a last time and else rejected, with its
event (docs/refunds.md "The money")."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import timedelta

import pytest

from cambist.core.domain.accounts.accounts import Account, Mode
from cambist.core.domain.errors import Refusal
from cambist.core.domain.installation import Because
from cambist.core.domain.money import Usdt
from cambist.core.domain.refunds.refunds import WAITS_FOR_MONEY, gives_up_at
from cambist.core.usecases.common.quarantine import hold
from cambist.core.usecases.installation.resume import resume
from cambist.core.usecases.jobs import WORKER_LEASE
from cambist.core.usecases.operators.settlement import settle_asked
from cambist.core.usecases.refunds.giving_up import give_up
from cambist.core.usecases.refunds.refunds import approve_refund
from cambist.core.usecases.refunds.steps import GIVE_UP
from cambist.core.usecases.refunds.waiting import kept_for_refunds
from cambist.core.usecases.settlement.withdrawals import every_withdrawal, pay_out_now
from cambist.ports.jobs import Job
from tests.crash_points import CrashPoint, Killed, fused
from tests.payout_kit import WALLET
from tests.refund_app import MARKET_100, SETTLED_100, RefundApp, open_refund_app

TICK = timedelta(microseconds=1)


@pytest.fixture
async def refunds() -> AsyncIterator[RefundApp]:
    async with open_refund_app() as opened:
        yield opened


async def waiting(refunds: RefundApp) -> str:
    """Return the id of a refund that its own payment's fee left uncovered."""
    refund_id = await refunds.apply(await refunds.settled())
    await refunds.app.work(60)
    assert (await refunds.refund(refund_id)).pending_reason == "insufficient_balance"
    return refund_id


async def until_its_time(refunds: RefundApp, refund_id: str, side: timedelta = timedelta(0)) -> None:
    await refunds.app.clock.advance_to(gives_up_at(await refunds.refund(refund_id)) + side)
    await refunds.app.work()


async def job_of(refunds: RefundApp, refund_id: str) -> Job | None:
    return await refunds.ports.storage.get(Job, GIVE_UP.id_of(refund_id))


@pytest.mark.parametrize(("side", "status"), [(-TICK, "pending"), (timedelta(0), "rejected"), (TICK, "rejected")])
async def test_14_days_after_its_approval_it_is_rejected(refunds: RefundApp, side: timedelta, status: str) -> None:
    refund_id = await waiting(refunds)
    refund = await refunds.refund(refund_id)
    assert refund.approved_at == refund.created_at
    assert gives_up_at(refund) == refund.created_at + WAITS_FOR_MONEY == refund.created_at + timedelta(days=14)
    await until_its_time(refunds, refund_id, side)
    assert await refunds.status(refund_id) == status
    assert await refunds.said(refund_id) == ["rejected"] * (status == "rejected")


async def test_the_job_asks_the_clock_itself(refunds: RefundApp) -> None:
    """A job that is run early, for example by an operator's tool, is rescheduled to its time."""
    refund_id = await waiting(refunds)
    job = await job_of(refunds, refund_id)
    assert job is not None
    end = gives_up_at(await refunds.refund(refund_id))
    assert job.due == end
    await refunds.app.clock.advance_to(end - TICK)
    await give_up(refunds.ports, job)
    again = await job_of(refunds, refund_id)
    assert (await refunds.status(refund_id), again and again.due) == ("pending", end)


async def test_abandoned_refund_took_no_money_and_may_be_requested_again(refunds: RefundApp) -> None:
    refund_id = await waiting(refunds)
    await until_its_time(refunds, refund_id)
    refund = await refunds.refund(refund_id)
    assert (refund.failure_reason, refund.pending_reason) == ("insufficient_balance", None)
    assert (refund.taken_rub, refund.taken_usdt) == (None, None)
    payment = await refunds.payment(refund.payment_id)
    assert (payment.status, payment.refund_pending) == ("settled", False)
    assert (await refunds.balance()).available == Usdt(SETTLED_100)
    assert await job_of(refunds, refund_id) is None
    await refunds.settled()
    assert await refunds.status(refund_id) == "rejected"
    again = await refunds.apply(refund.payment_id)
    await refunds.app.work(7)
    assert await refunds.status(again) == "completed"


async def test_refund_covered_by_a_settlement_in_time_is_not_abandoned(refunds: RefundApp) -> None:
    refund_id = await waiting(refunds)
    end = gives_up_at(await refunds.refund(refund_id))
    await refunds.settled()
    await refunds.app.work(5)
    assert await refunds.status(refund_id) == "completed"
    await refunds.app.clock.advance_to(end)
    await refunds.app.work()
    assert await refunds.said(refund_id) == ["completed"]
    assert await job_of(refunds, refund_id) is None


async def test_money_that_came_otherwise_is_taken_at_the_last_moment(refunds: RefundApp) -> None:
    refund_id = await waiting(refunds)
    await refunds.set(refund_overdraft_usdt="1")
    await until_its_time(refunds, refund_id)
    assert await refunds.status(refund_id) == "processing"
    await refunds.app.work(5)
    assert await refunds.said(refund_id) == ["completed"]


async def test_a_second_approval_gives_it_no_more_time(refunds: RefundApp) -> None:
    refund_id = await waiting(refunds)
    end = gives_up_at(await refunds.refund(refund_id))
    await refunds.app.clock.advance_to(end - timedelta(days=1))
    await approve_refund(refunds.ports, refund_id)
    await refunds.app.work(60)
    assert gives_up_at(await refunds.refund(refund_id)) == end
    await refunds.app.clock.advance_to(end)
    await refunds.app.work()
    assert await refunds.status(refund_id) == "rejected"


async def test_waiting_refund_without_a_deadline_gets_one_at_the_next_settlement(refunds: RefundApp) -> None:
    """Such a refund is from a version without this limit."""
    refund_id = await waiting(refunds)
    async with refunds.ports.storage.unit() as unit:
        await GIVE_UP.drop(unit, refund_id)
        await unit.commit()
    await refunds.app.clock.advance(20 * 86_400)
    await refunds.app.work()
    assert await refunds.status(refund_id) == "pending"
    await refunds.settle()
    await refunds.app.work()
    assert await refunds.status(refund_id) == "rejected"


async def test_refund_in_a_quarantined_copy_keeps_waiting() -> None:
    async with open_refund_app() as refunds:
        await refunds.set(refund_approval="auto")
        payment_id = await refunds.paid(mode="live")
        await refunds.app.clock.advance(1)
        await settle_asked(refunds.ports, Mode.LIVE, refunds.ports.clock.now(), lambda _: None)
        await refunds.app.work(0)
        refund_id = await refunds.apply(payment_id, mode="live")
        await refunds.app.work(60)
        assert (await refunds.refund(refund_id)).pending_reason == "insufficient_balance"
        await hold(refunds.ports, Because.BY_HAND)
        await until_its_time(refunds, refund_id, timedelta(days=1))
        assert await refunds.status(refund_id) == "pending"
        await resume(refunds.ports)
        await refunds.app.work(3600)
        assert await refunds.status(refund_id) == "rejected"


async def test_a_settlement_at_the_same_moment_and_it_agree(refunds: RefundApp) -> None:
    refund_id = await waiting(refunds)
    job = await job_of(refunds, refund_id)
    assert job is not None
    await refunds.paid()
    await refunds.app.clock.advance_to(gives_up_at(await refunds.refund(refund_id)))
    await asyncio.gather(give_up(refunds.ports, job), refunds.settle(), give_up(refunds.ports, job))
    await refunds.app.work(60)
    status = await refunds.status(refund_id)
    assert status in ("rejected", "completed")
    assert await refunds.said(refund_id) == [status]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("at", [1, 2, 3])
async def test_a_crash_rejects_it_once(refunds: RefundApp, at: int, after: bool) -> None:
    refund_id = await waiting(refunds)
    await refunds.app.clock.advance_to(gives_up_at(await refunds.refund(refund_id)))
    [job] = [job for job in await refunds.ports.storage.claim(10, WORKER_LEASE) if job.kind == GIVE_UP.kind]
    with suppress(Killed):
        await give_up(fused(refunds.ports, CrashPoint(at, after=after)), job)
    await refunds.app.clock.advance(WORKER_LEASE + 1)
    await refunds.app.work()
    assert await refunds.said(refund_id) == ["rejected"]


class TestTheReserve:
    """Payouts leave what refunds need that wait for money, where the account is set so."""

    async def poor(self, refunds: RefundApp, **settings: str) -> str:
        """Return the id of a refund whose money was paid out, and which no settlement of 30 RUB can cover."""
        payment_id = await refunds.settled()
        await refunds.set(payout_wallet=WALLET, **settings)
        await pay_out_now(refunds.ports, refunds.app.account.account_id, Mode.TEST)
        refund_id = await refunds.apply(payment_id)
        await refunds.app.work(60)
        return refund_id

    async def test_refund_waits_and_settlements_are_paid_out_without_a_reserve(self, refunds: RefundApp) -> None:
        refund_id = await self.poor(refunds)
        for _ in range(5):
            await refunds.settled("30.00")
        assert await refunds.status(refund_id) == "pending"
        assert (await refunds.balance()).available < Usdt(100)

    async def test_several_settlements_serve_it_together_and_the_rest_is_paid_out(self, refunds: RefundApp) -> None:
        refund_id = await self.poor(refunds, refund_reserve="true")
        account_id = refunds.app.account.account_id
        for settled in (1, 2, 3):
            await refunds.settled("30.00")
            assert await refunds.status(refund_id) == "pending"
            assert len(await every_withdrawal(refunds.ports, account_id=account_id)) == 1
            assert (await refunds.balance()).available >= Usdt(settled * SETTLED_100 * 3 // 10 - 3)
            with pytest.raises(Refusal, match="kept for no refund"):
                await pay_out_now(refunds.ports, account_id, Mode.TEST)
        await refunds.settled("30.00")
        await refunds.app.work(5)
        assert await refunds.status(refund_id) == "completed"
        assert (await refunds.balance()).available < Usdt(100)
        assert len(await every_withdrawal(refunds.ports, account_id=account_id)) == 2

    @pytest.mark.parametrize("overdraft", ["0", "0.5", "1.08", "2"])
    async def test_part_covered_by_the_overdraft_is_not_reserved(self, refunds: RefundApp, overdraft: str) -> None:
        refund_id = await self.poor(refunds, refund_reserve="true")
        await refunds.set(refund_overdraft_usdt=overdraft)
        refund = await refunds.refund(refund_id)
        account = await refunds.ports.storage.get(Account, refund.account_id)
        assert account is not None
        async with refunds.ports.storage.unit() as unit:
            kept = await kept_for_refunds(unit, account, Mode.TEST)
        assert kept == max(Usdt(MARKET_100) - Usdt.parse(overdraft), Usdt(0))

    async def test_once_it_is_given_up_nothing_is_kept(self, refunds: RefundApp) -> None:
        refund_id = await self.poor(refunds, refund_reserve="true")
        await refunds.settled("30.00")
        await until_its_time(refunds, refund_id)
        assert await refunds.status(refund_id) == "rejected"
        await pay_out_now(refunds.ports, refunds.app.account.account_id, Mode.TEST)
        assert (await refunds.balance()).available < Usdt(100)
