"""The review of a mismatch and the money that waits for an operator (docs/payments.md "How it ends")."""

import asyncio
from typing import Any

import pytest

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.errors import Refusal
from cambist.core.domain.money import Rub
from cambist.core.domain.payments.payments import Payment, PaymentStatus
from cambist.core.domain.payments.reports import Arrival, Report
from cambist.core.usecases.operators.review import list_suspense, resolve_mismatch
from cambist.core.usecases.payments.moves import apply
from tests.apps import TestApp


async def mismatch(app: TestApp, came: str = "60.00") -> str:
    payment = await app.created()
    await app.simulate(payment["id"], outcome="paid", actual_amount_rub=came)
    found: str = payment["id"]
    return found


async def shown(app: TestApp, payment_id: str) -> dict[str, Any]:
    found: dict[str, Any] = (await app.get(f"/payments/{payment_id}")).json()
    return found


async def test_resolved_to_paid_the_credit_is_what_came(app: TestApp) -> None:
    payment_id = await mismatch(app)
    await app.clock.advance(3600)
    await resolve_mismatch(app.ports, payment_id, "paid")
    payment = await shown(app, payment_id)
    assert (payment["status"], payment["amount_rub"], payment["actual_amount_rub"]) == ("paid", "100.00", "60.00")
    assert payment["paid_at"] == app.clock.now().strftime("%Y-%m-%dT%H:%M:%S.000Z")
    assert [event["status"] for event in await app.events(payment_id)] == ["amount_mismatch", "paid"]
    assert await list_suspense(app.ports) == []


async def test_mismatch_resolved_to_failed_credits_nothing_and_returns_the_money(app: TestApp) -> None:
    payment_id = await mismatch(app)
    await resolve_mismatch(app.ports, payment_id, "failed")
    payment = await shown(app, payment_id)
    assert (payment["status"], payment["failure_reason"], payment["paid_at"]) == ("failed", "unknown", None)
    [money] = await list_suspense(app.ports, app.account.account_id)
    assert (money.payment_id, str(money.amount), money.reason) == (payment_id, "60.00", "mismatch_rejected")
    assert await list_suspense(app.ports, "acc_other") == []


@pytest.mark.parametrize("status", [None, "paid", "failed", "expired", "processing"])
async def test_only_a_mismatch_is_resolved(app: TestApp, status: str | None) -> None:
    payment = await app.created()
    if status is not None:
        await app.simulate(payment["id"], outcome=status)
    with pytest.raises(Refusal, match="not amount_mismatch") as refused:
        await resolve_mismatch(app.ports, payment["id"], "paid")
    assert (refused.value.code, refused.value.status) == ("INVALID_STATUS", 409)


@pytest.mark.parametrize("payment_id", ["pay_x", "", "pay_00000000-0000-0000-0000-000000000000"])
async def test_an_unknown_payment_is_not_found(app: TestApp, payment_id: str) -> None:
    with pytest.raises(Refusal) as refused:
        await resolve_mismatch(app.ports, payment_id, "paid")
    assert refused.value.code == "PAYMENT_NOT_FOUND"


async def unconfirmed(app: TestApp) -> str:
    """A payment that the bank calls paid without saying how much."""
    payment = await app.created()
    await apply(app.ports, payment["id"], Report(status=PaymentStatus.PAID))
    found: str = payment["id"]
    return found


async def test_an_amount_that_could_not_be_confirmed_is_given_by_the_operator(app: TestApp) -> None:
    payment_id = await unconfirmed(app)
    assert (await shown(app, payment_id))["actual_amount_rub"] is None
    with pytest.raises(Refusal, match="give it"):
        await resolve_mismatch(app.ports, payment_id, "paid")
    with pytest.raises(Refusal, match="above zero"):
        await resolve_mismatch(app.ports, payment_id, "paid", amount=Rub(0))
    await resolve_mismatch(app.ports, payment_id, "paid", amount=Rub(100_00))
    assert (await shown(app, payment_id))["actual_amount_rub"] == "100.00"


async def test_the_operator_cannot_contradict_the_bank(app: TestApp) -> None:
    payment_id = await mismatch(app)
    with pytest.raises(Refusal, match=r"reports 60\.00 as received"):
        await resolve_mismatch(app.ports, payment_id, "paid", amount=Rub(100_00))


async def test_amount_confirmed_during_the_review_is_stored_without_an_event(app: TestApp) -> None:
    payment_id = await unconfirmed(app)
    now = app.clock.now()
    arrivals = (Arrival(id="t1", amount=Rub(70_00), at=now), Arrival(id="t2", amount=Rub(30_00), at=now))
    for _ in range(2):
        await apply(app.ports, payment_id, Report(status=PaymentStatus.PAID, arrivals=arrivals))
    payment = await shown(app, payment_id)
    assert (payment["status"], payment["actual_amount_rub"]) == ("amount_mismatch", "70.00")
    assert len(await app.events(payment_id)) == 1
    assert [(str(money.amount), money.reason) for money in await list_suspense(app.ports)] == [
        ("30.00", "second_transfer")
    ]


async def test_two_operators_at_once_have_one_winner_and_one_refusal(app: TestApp) -> None:
    payment_id = await mismatch(app)
    results = await asyncio.gather(
        resolve_mismatch(app.ports, payment_id, "paid"),
        resolve_mismatch(app.ports, payment_id, "failed"),
        return_exceptions=True,
    )
    assert sum(isinstance(result, Payment) for result in results) == 1
    [refusal] = [result for result in results if isinstance(result, Refusal)]
    assert refusal.code == "INVALID_STATUS"


RESOLVED = [({"outcome": "paid"}, 200, "paid"), ({"outcome": "failed"}, 200, "failed")]


@pytest.mark.parametrize(("body", "status", "after"), RESOLVED)
async def test_the_sandbox_plays_the_review(app: TestApp, body: dict[str, str], status: int, after: str) -> None:
    payment_id = await mismatch(app)
    path = f"/api/v1/sandbox/payments/{payment_id}/resolve"
    response = await app.http.post(path, json=body, headers=app.headers())
    assert (response.status_code, response.json()["status"]) == (status, after)
    again = await app.http.post(path, json=body, headers=app.headers())
    assert (again.status_code, again.json()["error"]["code"]) == (409, "INVALID_STATUS")
    wrong = await app.http.post(path, json={"outcome": "maybe"}, headers=app.headers())
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (400, "VALIDATION_ERROR")
    live = await app.http.post(path, json=body, headers=app.headers(Mode.LIVE))
    assert (live.status_code, live.json()["error"]["code"]) == (404, "NOT_FOUND")
