"""Charges are refunded as any payment is (docs/refunds.md "Rules", "How it ends")."""

from collections.abc import AsyncIterator
from uuid import uuid4

import httpx
import pytest

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.subscriptions.periods import Interval
from cambist.core.usecases.settlement.settlement import settle_own
from tests.charge_app import ChargeApp, open_charge_app, told


@pytest.fixture
async def charges() -> AsyncIterator[ChargeApp]:
    """At its end the books are held against the objects."""
    async with open_charge_app() as opened:
        await opened.set(refunds="true", refund_overdraft_usdt="100")
        yield opened


@pytest.fixture
async def due(charges: ChargeApp) -> str:
    subscription_id = await charges.subscribed(Interval.WEEK)
    await charges.open_next(subscription_id)
    return subscription_id


async def paid(charges: ChargeApp, subscription_id: str) -> str:
    payment_id = await charges.charged(subscription_id)
    await charges.app.work(10)
    assert (await charges.payment(payment_id)).status == "paid"
    return payment_id


async def refund(charges: ChargeApp, payment_id: str, amount: str | None = None) -> httpx.Response:
    body = {"payment_id": payment_id, **({} if amount is None else {"amount_rub": amount})}
    sent = charges.app.headers(Idempotency_Key=str(uuid4()))
    return await charges.app.http.post("/api/v1/refunds", json=body, headers=sent)


async def test_a_charge_is_refunded_in_parts_and_its_period_stays_paid(charges: ChargeApp, due: str) -> None:
    """Only successful payments move the anchor. A refund neither moves it nor frees the period."""
    payment_id = await paid(charges, due)
    before = await charges.subscription(due)
    for amount, status in (("40.00", "paid"), (None, "refunded")):
        assert (await refund(charges, payment_id, amount)).status_code == 201
        await charges.app.work(30)
        assert (await charges.payment(payment_id)).status == status
    events = await charges.events(payment_id)
    moves = [event["status"] for event in events if event["event"] == "payment.status_changed"]
    assert moves == ["paid", "refunded"]
    assert await charges.subscription(due) == before
    assert told(await charges.post(due)) == (409, "CHARGE_BEFORE_WINDOW")


async def test_a_settled_charge_is_refunded(charges: ChargeApp, due: str) -> None:
    payment_id = await paid(charges, due)
    await settle_own(charges.ports, await charges.caller(Mode.TEST))
    assert (await charges.payment(payment_id)).status == "settled"
    assert (await refund(charges, payment_id)).status_code == 201
    await charges.app.work(30)
    assert (await charges.payment(payment_id)).status == "refunded"


async def test_a_reversed_refund_touches_no_subscription(charges: ChargeApp, due: str) -> None:
    """The payment is live again; it is no second success."""
    payment_id = await paid(charges, due)
    refund_id = (await refund(charges, payment_id)).json()["id"]
    await charges.app.work(30)
    await charges.open_next(due)
    before = await charges.subscription(due)
    response = await charges.app.http.post(
        f"/api/v1/sandbox/refunds/{refund_id}/simulate", json={"outcome": "reversed"}, headers=charges.app.headers()
    )
    assert response.status_code == 200
    assert (await charges.payment(payment_id)).status == "paid"
    assert await charges.subscription(due) == before


async def test_unpaid_charge_is_not_refunded(charges: ChargeApp, due: str) -> None:
    await charges.next(due, "pending")
    assert told(await refund(charges, await charges.charged(due))) == (409, "INVALID_STATUS")
