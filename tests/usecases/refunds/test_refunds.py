"""Refund applications: the sums, the balance, approval, operators (docs/refunds.md "Rules", "How it ends")."""

from collections.abc import AsyncIterator
from decimal import Decimal
from typing import Any

import pytest

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.errors import Refusal
from cambist.core.domain.money import Rub, Usdt
from cambist.core.usecases.refunds.waiting import retry_waiting
from cambist.core.usecases.settlement.withdrawals import pay_out_now
from cambist.ports.bank import RefundStatus
from cambist.ports.faults import Stale, Unavailable
from cambist.ports.jobs import Job
from cambist.ports.rates import RateSimulation, RateSimulator
from tests.invariants import everything
from tests.payout_kit import WALLET
from tests.refund_app import MARKET_100, SETTLED_100, RefundApp, open_refund_app


@pytest.fixture
async def refunds() -> AsyncIterator[RefundApp]:
    async with open_refund_app() as opened:
        yield opened


async def code(call: Any) -> str:
    with pytest.raises(Refusal) as refused:
        await call
    return refused.value.code


# --- the balance


async def test_refund_before_settlement_lowers_the_pending_rub(refunds: RefundApp) -> None:
    payment_id = await refunds.paid()
    await refunds.apply(payment_id, "40.00")
    assert (await refunds.balance()).pending == Rub(100_00), "an application touches no money"
    await refunds.app.work(2)
    assert (await refunds.balance()).pending == Rub(60_00)


@pytest.mark.parametrize(("amount", "market"), [(None, MARKET_100), ("40.00", 43_243_243), ("0.01", 10_810)])
async def test_refund_after_settlement_takes_the_market_value(
    refunds: RefundApp, amount: str | None, market: int
) -> None:
    payment_id = await refunds.settled()
    await refunds.settled()
    [source] = refunds.ports.rates.of_mode("test")
    assert isinstance(source, RateSimulator)
    # The rate of that payment's settlement counts, not the present one.
    await source.simulate(RateSimulation(rate=Decimal(80)))
    before = await refunds.balance()
    assert before.available == Usdt(2 * SETTLED_100)
    await refunds.apply(payment_id, amount)
    await refunds.app.work(7)
    after = await refunds.balance()
    assert before.available - after.available == Usdt(market)
    payment = await refunds.payment(payment_id)
    assert payment.status == ("refunded" if amount is None else "settled")
    assert payment.amount_usdt == Usdt(SETTLED_100), "the credit stays as it was"


async def test_uncovered_refund_is_retried_after_the_next_settlement(refunds: RefundApp) -> None:
    payment_id = await refunds.settled()
    refund_id = await refunds.apply(payment_id)
    await refunds.app.work(60)
    refund = await refunds.refund(refund_id)
    assert (refund.status, refund.pending_reason) == ("pending", "insufficient_balance")
    assert (await refunds.payment(payment_id)).refund_pending is True
    assert (await refunds.balance()).available == Usdt(SETTLED_100)
    assert [job for job in await everything(refunds.ports, Job) if job.kind == "refund.execute"] == []
    await refunds.settled()
    refund = await refunds.refund(refund_id)
    assert (refund.status, refund.pending_reason) == ("processing", None)
    await refunds.app.work(5)
    assert await refunds.status(refund_id) == "completed"
    assert (await refunds.balance()).available == Usdt(2 * SETTLED_100 - MARKET_100)


@pytest.mark.parametrize(("overdraft", "status"), [("0.03243243", "pending"), ("0.03243244", "processing")])
async def test_the_overdraft_limit_may_be_used_to_the_last_unit(
    refunds: RefundApp, overdraft: str, status: str
) -> None:
    """The missing amount is the fee: 1.08108108 - 1.04864864."""
    await refunds.set(refund_overdraft_usdt=overdraft)
    refund_id = await refunds.apply(await refunds.settled())
    await refunds.app.work(2)
    assert await refunds.status(refund_id) == status


@pytest.mark.parametrize(
    ("older", "younger", "overdraft", "goes"),
    [
        # A refund that is still not covered does not block the next one.
        ("15.00", "10.00", "0.05", (False, True)),
        # Enough for one of two: the older one.
        ("12.50", "12.50", "0.1", (True, False)),
        ("15.00", "10.00", "1", (True, True)),
    ],
)
async def test_waiting_refunds_are_retried_oldest_first(
    refunds: RefundApp, older: str, younger: str, overdraft: str, goes: tuple[bool, bool]
) -> None:
    first, second = await refunds.settled("500.00"), await refunds.settled("100.00")
    rests = [str(Rub.parse(whole) - Rub.parse(rest)) for whole, rest in (("500", older), ("100", younger))]
    for payment_id, amount in zip((first, second), rests, strict=True):
        await refunds.apply(payment_id, amount)
    await refunds.app.work(7)
    assert (await refunds.balance()).available == Usdt(7_567_567), "less than any of the two needs"
    waiting = []
    for payment_id in (first, second):
        waiting.append(await refunds.apply(payment_id))
        await refunds.app.work(3)
    for refund_id in waiting:
        assert (await refunds.refund(refund_id)).pending_reason == "insufficient_balance"
    await refunds.set(refund_overdraft_usdt=overdraft)
    await retry_waiting(refunds.ports, refunds.app.account.account_id, Mode.LIVE)
    await retry_waiting(refunds.ports, refunds.app.account.account_id, Mode.TEST)
    found = [await refunds.status(refund_id) for refund_id in waiting]
    assert found == ["processing" if each else "pending" for each in goes]


@pytest.mark.parametrize(
    ("fault", "tries"), [(Unavailable("the storage is away"), 1), (Stale("others were quicker"), 1), (ValueError(), 2)]
)
async def test_retry_ends_if_the_storage_is_away_but_not_if_one_refund_fails(
    refunds: RefundApp, monkeypatch: pytest.MonkeyPatch, fault: Exception, tries: int
) -> None:
    """A payout would take the money that the refunds wait for."""
    settled = [await refunds.settled() for _ in range(2)]
    await refunds.set(payout_wallet=WALLET)
    await pay_out_now(refunds.ports, refunds.app.account.account_id, Mode.TEST)
    for payment_id in settled:
        await refunds.apply(payment_id)
    await refunds.app.work(7)
    tried = []

    async def begin(_operations: object, _ports: object, refund_id: str) -> None:
        tried.append(refund_id)
        raise fault

    monkeypatch.setattr("cambist.core.usecases.refunds.waiting.begin", begin)
    told: list[Exception] = []
    try:
        await retry_waiting(refunds.ports, refunds.app.account.account_id, Mode.TEST)
    except (Unavailable, Stale) as ended:
        told.append(ended)
    assert (len(tried), told) == (tries, [fault] * (tries == 1))


async def test_reversed_after_settlement_the_payment_is_settled_again(refunds: RefundApp) -> None:
    payment_id = await refunds.settled()
    await refunds.settled()
    refund_id = await refunds.apply(payment_id)
    await refunds.app.work(7)
    assert (await refunds.payment(payment_id)).status == "refunded"
    await refunds.tell(refund_id, RefundStatus.REVERSED)
    assert (await refunds.payment(payment_id)).status == "settled"
    assert await refunds.said(payment_id) == ["paid", "settled", "refunded", "settled"]
    assert (await refunds.balance()).available == Usdt(2 * SETTLED_100)


async def test_refund_before_settlement_reversed_after_it_comes_back_in_rub(refunds: RefundApp) -> None:
    payment_id = await refunds.paid()
    refund_id = await refunds.apply(payment_id, "40.00")
    await refunds.app.work(7)
    await refunds.settle()
    assert (await refunds.payment(payment_id)).amount_usdt == Usdt(62_918_918)
    await refunds.tell(refund_id, RefundStatus.REVERSED)
    assert (await refunds.balance()).pending == Rub(40_00)
    await refunds.app.clock.advance(1)
    await refunds.settle()
    balance = await refunds.balance()
    assert (balance.pending, balance.available) == (Rub(0), Usdt(62_918_918 + 41_945_945))


async def test_a_refund_of_a_mismatch_that_was_accepted_is_of_what_came(refunds: RefundApp) -> None:
    payment = await refunds.app.created()
    await refunds.app.simulate(payment["id"], outcome="paid", actual_amount_rub="60.00")
    await refunds.action(f"/sandbox/payments/{payment['id']}/resolve", {"outcome": "paid"})
    refund_id = await refunds.apply(payment["id"])
    assert (await refunds.refund(refund_id)).amount == Rub(60_00)
    await refunds.app.work(7)
    assert (await refunds.payment(payment["id"])).status == "refunded"
