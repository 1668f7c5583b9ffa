"""Approval of refunds, and the operator actions on them (docs/refunds.md "Rules")."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from cambist.adapters.script import Ending, Twist
from cambist.core.domain.errors import Refusal
from cambist.core.domain.refunds.orders import REASON_LONGEST
from cambist.core.domain.refunds.refunds import RefundStatus
from cambist.core.usecases.refunds.contradictions import settle_contradiction
from cambist.core.usecases.refunds.list import list_all_refunds
from cambist.core.usecases.refunds.refunds import approve_refund, create_refund_for, reject_refund
from tests.refund_app import RefundApp, open_refund_app


@pytest.fixture
async def refunds() -> AsyncIterator[RefundApp]:
    async with open_refund_app() as opened:
        yield opened


async def code(call: Any) -> str:
    with pytest.raises(Refusal) as refused:
        await call
    return refused.value.code


# --- approval


@pytest.mark.parametrize(
    ("setting", "mode", "reason"),
    [
        ("", "test", None),
        ("", "live", "awaiting_approval"),
        ("auto", "live", None),
        ("manual", "test", "awaiting_approval"),
    ],
)
async def test_approval_setting_decides_whether_an_operator_approves(
    refunds: RefundApp, setting: str, mode: str, reason: str | None
) -> None:
    """`auto` is the default in test mode, `manual` in live mode (docs/refunds.md "Rules")."""
    await refunds.set(refund_approval=setting)
    refund_id = await refunds.apply(await refunds.paid(mode=mode), mode=mode)
    assert (await refunds.refund(refund_id)).pending_reason == reason
    await refunds.app.work(60)
    if reason is not None:
        assert (await refunds.refund(refund_id)).pending_reason == reason
        await approve_refund(refunds.ports, refund_id)
        await refunds.app.work(5)
    assert await refunds.status(refund_id) == "completed"


async def test_approving_twice_is_one_refund_and_approving_what_ended_is_refused(refunds: RefundApp) -> None:
    payment_id = await refunds.paid(mode="live")
    refund_id = await refunds.apply(payment_id, mode="live")
    await asyncio.gather(*(approve_refund(refunds.ports, refund_id) for _ in range(5)))
    await refunds.app.work()
    assert await refunds.said(refund_id) == ["completed"]
    assert await code(approve_refund(refunds.ports, refund_id)) == "INVALID_STATE"
    for unknown in ("ref_00000000-0000-4000-8000-000000000000", "ref_x", payment_id, ""):
        assert await code(approve_refund(refunds.ports, unknown)) == "REFUND_NOT_FOUND"


async def test_approving_one_that_waits_for_money_tries_it_now(refunds: RefundApp) -> None:
    refund_id = await refunds.apply(await refunds.settled())
    await refunds.app.work(2)
    await approve_refund(refunds.ports, refund_id)
    await refunds.app.work()
    assert (await refunds.refund(refund_id)).pending_reason == "insufficient_balance"
    await refunds.set(refund_overdraft_usdt="1")
    await approve_refund(refunds.ports, refund_id)
    await refunds.app.work()
    assert await refunds.status(refund_id) == "processing"


async def test_rejected_by_an_operator_no_money_moved(refunds: RefundApp) -> None:
    payment_id = await refunds.paid(mode="live")
    refund_id = await refunds.apply(payment_id, mode="live")
    rejected = await reject_refund(refunds.ports, refund_id, " goods were delivered ")
    assert (rejected.status, rejected.failure_reason, rejected.pending_reason) == (
        "rejected",
        "goods were delivered",
        None,
    )
    payment = await refunds.payment(payment_id)
    assert (payment.status, payment.refund_pending) == ("paid", False)
    [event] = await refunds.app.events(refund_id)
    assert (event["event"], event["status"]) == ("refund.rejected", "rejected")
    assert await code(reject_refund(refunds.ports, refund_id, "again")) == "INVALID_STATE"
    assert await code(approve_refund(refunds.ports, refund_id)) == "INVALID_STATE"
    await refunds.app.work(60)
    assert await refunds.left_at_bank(payment_id, "live") == 100_00


@pytest.mark.parametrize("reason", ["", " ", "x" * 256, "a\nb", "a\0b"])
async def test_a_rejection_has_a_reason(refunds: RefundApp, reason: str) -> None:
    refund_id = await refunds.apply(await refunds.paid())
    assert await code(reject_refund(refunds.ports, refund_id, reason)) == "VALIDATION_ERROR"
    assert await code(reject_refund(refunds.ports, "ref_x", "reason")) == "REFUND_NOT_FOUND"


async def test_a_reason_is_taken_from_one_character_to_the_longest(refunds: RefundApp) -> None:
    for reason in ("x", "x" * REASON_LONGEST):
        refund_id = await refunds.apply(await refunds.paid())
        assert (await reject_refund(refunds.ports, refund_id, reason)).failure_reason == reason


async def test_only_a_refund_that_there_is_is_settled(refunds: RefundApp) -> None:
    """The operator's decision on a refund that the bank contradicts."""
    for unknown in ("ref_00000000-0000-4000-8000-000000000000", "ref_x", ""):
        assert await code(settle_contradiction(refunds.ports, unknown)) == "REFUND_NOT_FOUND"


@pytest.mark.parametrize("end", ["cancel", "reject", "fail"])
async def test_refund_that_ended_without_money_frees_the_remainder(refunds: RefundApp, end: str) -> None:
    payment_id = await refunds.paid()
    refund_id = await refunds.apply(payment_id)
    assert await code(refunds.make(payment_id)) == "OVER_REMAINING"
    if end == "cancel":
        await refunds.action(f"/refunds/{refund_id}/cancel")
    elif end == "reject":
        await reject_refund(refunds.ports, refund_id, "no")
    else:
        refunds.app.script.refund.append(Twist(ending=Ending.REFUSED))
        await refunds.app.work(2)
    again = await refunds.apply(payment_id)
    await refunds.app.work(7)
    assert await refunds.status(again) == "completed"
    assert await refunds.said(payment_id) == ["paid", "refunded"]


# --- operators


async def test_an_operators_refund_is_the_same_application_whatever_the_switch(refunds: RefundApp) -> None:
    """It is the same application, even if an operator makes it (docs/refunds.md "Asking for one")."""
    await refunds.set(refunds="false")
    payment_id = await refunds.paid(mode="live")
    refund = await create_refund_for(refunds.ports, payment_id, amount_rub="40.00", reason="by phone")
    assert (refund.status, refund.pending_reason, refund.reason, refund.key_id) == (
        "pending",
        "awaiting_approval",
        "by phone",
        None,
    )
    assert (await refunds.payment(payment_id)).refund_pending is True
    await approve_refund(refunds.ports, refund.id)
    await refunds.app.work()
    assert await refunds.said(refund.id) == ["completed"]


@pytest.mark.parametrize(
    ("payment_id", "amount", "expected"),
    [
        ("pay_00000000-0000-4000-8000-000000000000", None, "PAYMENT_NOT_FOUND"),
        ("ref_x", None, "PAYMENT_NOT_FOUND"),
        ("", None, "PAYMENT_NOT_FOUND"),
        (None, "1e3", "VALIDATION_ERROR"),
        (None, "0", "INVALID_AMOUNT"),
        (None, "100.01", "OVER_REMAINING"),
    ],
)
async def test_an_operator_is_refused_by_the_same_rules(
    refunds: RefundApp, payment_id: str | None, amount: str | None, expected: str
) -> None:
    mine = await refunds.paid()
    wanted = mine if payment_id is None else payment_id
    assert await code(create_refund_for(refunds.ports, wanted, amount_rub=amount)) == expected


@pytest.mark.parametrize("text", ["a\udcffb", "a\0b"])
async def test_text_that_no_storage_takes_is_refused(refunds: RefundApp, text: str) -> None:
    """A shell hands on bytes that are no UTF-8 so."""
    mine = await refunds.paid()
    assert await code(create_refund_for(refunds.ports, mine, reason=text)) == "VALIDATION_ERROR"
    assert await code(create_refund_for(refunds.ports, mine, external_id=text)) == "VALIDATION_ERROR"


async def test_operators_see_all_refunds_the_newest_first(refunds: RefundApp) -> None:
    made = []
    for mode in ("test", "live", "test"):
        made.append(await refunds.apply(await refunds.paid(mode=mode), mode=mode))
        await refunds.app.clock.advance(1)
    account_id = refunds.app.account.account_id
    for asked in (None, account_id):
        found = await list_all_refunds(refunds.ports, account_id=asked)
        assert [refund.id for refund in found] == made[::-1]
    assert [refund.id for refund in await list_all_refunds(refunds.ports, limit=2)] == made[:0:-1]
    await refunds.action(f"/refunds/{made[0]}/cancel")
    found = await list_all_refunds(refunds.ports, status=RefundStatus.CANCELLED)
    assert [refund.id for refund in found] == made[:1]
    assert await code(list_all_refunds(refunds.ports, account_id="acc_x")) == "ACCOUNT_NOT_FOUND"
