"""Refunds that are rolled back: the payment is paid again (docs/payments.md "How it ends"; docs/refunds.md "How it
ends")."""

from collections.abc import AsyncIterator

import pytest

from cambist.core.domain.ledger import EntryKind, JournalEntry
from cambist.core.domain.money import Rub
from cambist.core.usecases.refunds.bank_refunds import REVERSAL_POLLS
from cambist.ports.bank import RefundStatus
from cambist.ports.jobs import Job
from tests.invariants import everything
from tests.refund_app import RefundApp, open_refund_app

S = RefundStatus


@pytest.fixture
async def refunds() -> AsyncIterator[RefundApp]:
    async with open_refund_app() as opened:
        yield opened


async def jobs(refunds: RefundApp) -> list[Job]:
    return [job for job in await everything(refunds.ports, Job) if job.kind == "refund.execute"]


@pytest.mark.parametrize("full", [True, False])
async def test_reversed_before_settlement_the_payment_lives_again(refunds: RefundApp, full: bool) -> None:
    payment_id, refund_id = await refunds.completed(None if full else "40.00")
    await refunds.tell(refund_id, S.REVERSED)
    refund, payment = await refunds.refund(refund_id), await refunds.payment(payment_id)
    assert (refund.status, refund.completed_at is not None) == ("reversed", True)
    assert (payment.status, payment.refund_pending, payment.refund_taken) == ("paid", False, Rub(0))
    assert await refunds.said(refund_id) == ["completed", "reversed"]
    assert await refunds.said(payment_id) == (["paid", "refunded", "paid"] if full else ["paid"])
    assert (await refunds.balance()).pending == Rub(100_00)
    await refunds.settle()
    assert (await refunds.payment(payment_id)).status == "settled"


async def test_a_bank_that_says_reversed_at_once_is_completed_and_then_reversed(refunds: RefundApp) -> None:
    """With rare polls we may never have seen it DONE (ports/bank.py)."""
    payment_id, refund_id = await refunds.processing()
    for status in (S.DONE, S.REVERSED):
        await refunds.bank().simulate_refund(refund_id, status)
    await refunds.notification(refund_id)
    refund = await refunds.refund(refund_id)
    assert (refund.status, refund.sequence, refund.completed_at) == ("reversed", 2, refunds.app.clock.now())
    assert await refunds.said(refund_id) == ["completed", "reversed"]
    assert await refunds.said(payment_id) == ["paid", "refunded", "paid"]
    kinds = [entry.kind for entry in await everything(refunds.ports, JournalEntry) if entry.object_id == refund_id]
    assert sorted(kinds) == [EntryKind.REFUND_PAID, EntryKind.REFUND_REVERSED, EntryKind.REFUND_TAKEN]
    again = await refunds.apply(payment_id)
    await refunds.app.work(7)
    assert await refunds.status(again) == "completed"


@pytest.mark.parametrize("which", range(len(REVERSAL_POLLS)))
async def test_a_reversal_whose_notification_was_lost_is_found_by_looking(refunds: RefundApp, which: int) -> None:
    _, refund_id = await refunds.completed()
    if which:
        await refunds.app.work(REVERSAL_POLLS[which - 1].total_seconds() + 60)
    await refunds.bank().simulate_refund(refund_id, S.REVERSED)
    await refunds.app.work(REVERSAL_POLLS[which].total_seconds())
    assert await refunds.status(refund_id) == "reversed"
    assert await jobs(refunds) == []


async def test_only_a_notification_counts_after_the_last_poll(refunds: RefundApp) -> None:
    _, refund_id = await refunds.completed()
    await refunds.app.work(REVERSAL_POLLS[-1].total_seconds())
    assert await jobs(refunds) == []
    await refunds.tell(refund_id, S.REVERSED)
    assert await refunds.status(refund_id) == "reversed"


async def test_two_full_parts_of_which_one_is_reversed(refunds: RefundApp) -> None:
    payment_id, first = await refunds.completed("60.00")
    await refunds.apply(payment_id)
    await refunds.app.work(7)
    assert (await refunds.payment(payment_id)).status == "refunded"
    await refunds.tell(first, S.REVERSED)
    payment = await refunds.payment(payment_id)
    assert (payment.status, payment.refund_taken) == ("paid", Rub(40_00))
