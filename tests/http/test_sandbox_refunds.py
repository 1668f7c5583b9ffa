"""POST /sandbox/refunds/{id}/simulate (docs/sandbox.md "The calls")."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from cambist.adapters.script import Ending, Twist
from tests.refund_app import RefundApp, open_refund_app, told


@pytest.fixture
async def refunds() -> AsyncIterator[RefundApp]:
    async with open_refund_app() as opened:
        yield opened


WAYS = [
    ("pending", "completed", 200),
    ("pending", "rejected", 200),
    ("pending", "failed", 200),
    ("pending", "reversed", 409),
    ("processing", "completed", 200),
    ("processing", "rejected", 409),
    ("processing", "failed", 200),
    ("processing", "reversed", 409),
    ("completed", "completed", 200),
    ("completed", "rejected", 409),
    ("completed", "failed", 409),
    ("completed", "reversed", 200),
    ("rejected", "rejected", 200),
    ("rejected", "completed", 409),
    ("failed", "failed", 200),
    ("failed", "completed", 409),
    ("reversed", "reversed", 200),
    ("reversed", "completed", 409),
    ("cancelled", "completed", 409),
    ("cancelled", "rejected", 409),
]


@pytest.mark.parametrize(("status", "outcome", "answered"), WAYS)
async def test_the_sandbox_plays_each_way_there_is(
    refunds: RefundApp, status: str, outcome: str, answered: int
) -> None:
    payment_id = await refunds.paid()
    refund_id = await refunds.apply(payment_id)
    if status == "processing":
        await refunds.app.work(2)
    elif status == "cancelled":
        await refunds.action(f"/refunds/{refund_id}/cancel")
    elif status == "reversed":
        await refunds.simulate(refund_id, "completed")
    if status not in ("pending", "processing", "cancelled"):
        await refunds.simulate(refund_id, status)
    assert await refunds.status(refund_id) == status
    response = await refunds.simulate(refund_id, outcome)
    if answered == 200:
        assert (response.status_code, response.json()["status"]) == (200, outcome)
    else:
        assert told(response) == (409, "INVALID_STATE")
    end = outcome if answered == 200 else status
    assert await refunds.status(refund_id) == end
    said = await refunds.said(refund_id)
    await refunds.app.work(60)
    assert await refunds.status(refund_id) == ("completed" if end in ("pending", "processing") else end)
    assert await refunds.said(refund_id) in (said, ["completed"]), "the worker adds nothing"


async def test_the_sandbox_approves_on_the_way(refunds: RefundApp) -> None:
    await refunds.set(refund_approval="manual")
    payment_id = await refunds.paid()
    for outcome in ("failed", "completed"):
        refund_id = await refunds.apply(payment_id)
        assert (await refunds.simulate(refund_id, outcome)).json()["status"] == outcome
    assert (await refunds.payment(payment_id)).status == "refunded"
    reversed_ = await refunds.simulate(refund_id, "reversed")
    assert reversed_.json()["status"] == "reversed"
    assert await refunds.said(payment_id) == ["paid", "refunded", "paid"]


async def test_the_sandbox_takes_no_money_that_is_not_there(refunds: RefundApp) -> None:
    payment_id = await refunds.paid()
    await refunds.settle()
    refund_id = await refunds.apply(payment_id)
    for _ in range(2):
        assert told(await refunds.simulate(refund_id, "completed")) == (409, "INVALID_STATE")
    assert (await refunds.refund(refund_id)).pending_reason == "insufficient_balance"
    await refunds.set(refund_overdraft_usdt="1")
    assert (await refunds.simulate(refund_id, "completed")).json()["status"] == "completed"


async def test_sandbox_reports_a_silent_bank_and_the_worker_finds_the_outcome(refunds: RefundApp) -> None:
    refund_id = await refunds.apply(await refunds.paid())
    refunds.app.script.refund.append(Twist(ending=Ending.UNKNOWN_NOT_DONE))
    assert told(await refunds.simulate(refund_id, "failed")) == (503, "PROVIDER_UNAVAILABLE")
    assert await refunds.status(refund_id) == "processing"
    await refunds.app.work(60)
    assert await refunds.status(refund_id) == "completed"


@pytest.mark.parametrize("status", ["processing", "completed", "rejected"])
async def test_refund_that_is_not_pending_cannot_await_approval(refunds: RefundApp, status: str) -> None:
    refund_id = await refunds.apply(await refunds.paid())
    await refunds.simulate(refund_id, status)
    response = await refunds.action(f"/sandbox/refunds/{refund_id}/simulate", {"outcome": "awaiting_approval"})
    assert told(response) == (409, "INVALID_STATE")
    assert await refunds.status(refund_id) == status


@pytest.mark.parametrize("body", [{}, {"outcome": "done"}, {"outcome": "pending"}, {"outcome": None}, {"x": 1}])
async def test_an_outcome_that_is_none_is_a_validation_error(refunds: RefundApp, body: Any) -> None:
    refund_id = await refunds.apply(await refunds.paid())
    assert told(await refunds.action(f"/sandbox/refunds/{refund_id}/simulate", body)) == (400, "VALIDATION_ERROR")


async def test_live_keys_have_no_sandbox(refunds: RefundApp) -> None:
    refund_id = await refunds.apply(await refunds.paid(mode="live"), mode="live")
    response = await refunds.action(f"/sandbox/refunds/{refund_id}/simulate", {"outcome": "completed"}, mode="live")
    assert told(response) == (404, "NOT_FOUND")
