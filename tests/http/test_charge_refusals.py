"""Every row of docs/subscriptions.md "When a charge is refused", over HTTP."""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any
from uuid import uuid4

import pytest

from cambist.adapters.script import Ending, Twist
from cambist.core.domain.accounts.accounts import Mode, Scheme
from cambist.core.domain.money import Rub
from cambist.core.domain.subscriptions.periods import Interval
from cambist.core.domain.subscriptions.subscriptions import SubscriptionStatus
from tests.charge_app import UNKNOWN, ChargeApp, open_charge_app, told
from tests.charge_app import due_subscription as due


@pytest.fixture
async def charges() -> AsyncIterator[ChargeApp]:
    async with open_charge_app() as opened:
        yield opened


async def test_missing_and_malformed_key(charges: ChargeApp) -> None:
    subscription_id = await due(charges)
    bare = charges.app.headers()
    assert told(await charges.post(subscription_id, headers=bare)) == (400, "MISSING_IDEMPOTENCY_KEY")
    assert told(await charges.post(subscription_id, key="no-uuid")) == (400, "VALIDATION_ERROR")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"amount_rub": 100},
        {"amount_rub": "100.001"},
        {"amount_rub": "ten"},
        {"amount_rub": "1.00", "external_id": "x" * 257},
    ],
)
async def test_invalid_body(charges: ChargeApp, body: dict[str, Any]) -> None:
    assert told(await charges.post(await due(charges), body)) == (400, "VALIDATION_ERROR")


async def test_zero(charges: ChargeApp) -> None:
    assert told(await charges.post(await due(charges), {"amount_rub": "0.00"})) == (400, "INVALID_AMOUNT")


async def test_unknown_or_foreign_subscription_is_not_found(charges: ChargeApp) -> None:
    """Also of another account or mode (docs/subscriptions.md "Making one"). It comes before the key and the body."""
    subscription_id = await due(charges)
    bare, live = charges.app.headers(), charges.app.headers("live")
    assert told(await charges.post(UNKNOWN, {}, headers=bare)) == (404, "SUBSCRIPTION_NOT_FOUND")
    assert told(await charges.post("garbage", {}, headers=bare)) == (404, "SUBSCRIPTION_NOT_FOUND")
    assert told(await charges.post(subscription_id, headers=live)) == (404, "SUBSCRIPTION_NOT_FOUND")
    await charges.change(subscription_id, account_id="acc_another")
    assert told(await charges.post(subscription_id)) == (404, "SUBSCRIPTION_NOT_FOUND")
    for path in ("charges", "charge-window"):
        response = await charges.app.get(f"/subscriptions/{subscription_id}/{path}")
        assert told(response) == (404, "SUBSCRIPTION_NOT_FOUND")
    await charges.change(subscription_id, account_id=charges.app.account.account_id)  # as its tags say


@pytest.mark.parametrize(
    "fields",
    [
        {"status": SubscriptionStatus.PENDING_BINDING, "mandate_token": None, "anchor": None},
        {"status": SubscriptionStatus.PAUSED, "rebind_required": True},
        {"status": SubscriptionStatus.CANCELLED},
        {"status": SubscriptionStatus.EXPIRED},
    ],
    ids=lambda fields: fields["status"],
)
async def test_mandate_inactive(charges: ChargeApp, fields: dict[str, Any]) -> None:
    subscription_id = await due(charges)
    await charges.change(subscription_id, **fields)
    assert told(await charges.post(subscription_id)) == (409, "CHARGE_MANDATE_INACTIVE")
    assert (await charges.window(subscription_id))["reason"] == "CHARGE_MANDATE_INACTIVE"


async def test_charge_before_the_window_is_refused(charges: ChargeApp) -> None:
    """`details.next_allowed_at` is in Moscow time, and then it passes."""
    subscription_id = await charges.subscribed(Interval.DAY, 3)
    refused = await charges.post(subscription_id)
    assert told(refused) == (409, "CHARGE_BEFORE_WINDOW")
    next_allowed_at = refused.json()["error"]["details"]["next_allowed_at"]
    assert next_allowed_at.endswith("T00:00:00.000+03:00")
    wait = (datetime.fromisoformat(next_allowed_at) - charges.clock.now()).total_seconds()
    await charges.app.work(wait - 1)
    assert told(await charges.post(subscription_id)) == (409, "CHARGE_BEFORE_WINDOW")
    await charges.app.work(1)
    await charges.charged(subscription_id)


async def test_exhausted(charges: ChargeApp) -> None:
    subscription_id = await due(charges, Interval.DAY, 1)
    for _ in range(2):
        await charges.next(subscription_id, "insufficient_funds")
        assert told(await charges.post(subscription_id)) == (502, "PROVIDER_ERROR")
    refused = await charges.post(subscription_id)
    assert told(refused) == (409, "RECURRING_CHARGE_EXHAUSTED")
    window = await charges.window(subscription_id)
    shown = refused.json()["error"]["details"]["next_allowed_at"]
    assert datetime.fromisoformat(shown) == datetime.fromisoformat(window["closes_at"])
    assert shown.endswith("+03:00")
    assert await charges.told(subscription_id) == ["exhausted"]


async def test_period_occupied(charges: ChargeApp) -> None:
    """In the calendar scheme; the key is not locked by it."""
    subscription_id, key = await charges.subscribed(scheme=Scheme.CALENDAR), str(uuid4())
    first = await charges.charged(subscription_id)
    other = {"amount_rub": "100.00", "external_id": "tea-2"}
    assert told(await charges.post(subscription_id, other, key=key)) == (409, "CHARGE_PERIOD_OCCUPIED")
    assert (await charges.post(subscription_id, key=key)).json()["id"] == first


async def test_cap_of_a_charge_and_of_a_period(charges: ChargeApp) -> None:
    subscription_id = await due(charges)
    assert told(await charges.post(subscription_id, {"amount_rub": "100.01"})) == (409, "CAP_EXCEEDED")
    await charges.change(subscription_id, cap_window=Rub(50_00))
    assert told(await charges.post(subscription_id, {"amount_rub": "50.01"})) == (409, "CAP_EXCEEDED")
    assert (await charges.post(subscription_id, {"amount_rub": "50.00"})).status_code == 201


async def test_recurring_off(charges: ChargeApp) -> None:
    """501, and no payment was created."""
    subscription_id = await due(charges)
    await charges.set(recurring="false")
    assert told(await charges.post(subscription_id)) == (501, "RECURRING_NOT_SUPPORTED")
    assert await charges.payments(subscription_id) == []


async def test_provider_not_configured_in_live_mode(charges: ChargeApp) -> None:
    """Where no bank charges, every live charge gets it, and no payment is made
    (docs/subscriptions.md "When a charge is refused")."""
    subscription_id = await charges.subscribed(mode=Mode.LIVE)
    assert told(await charges.post(subscription_id, mode="live")) == (503, "PROVIDER_NOT_CONFIGURED")
    assert await charges.payments(subscription_id) == []


@pytest.mark.parametrize(
    "ending", [Ending.UNKNOWN_DONE, Ending.UNKNOWN_NOT_DONE, Ending.UNAVAILABLE], ids=lambda each: each.value
)
async def test_provider_unavailable(charges: ChargeApp, ending: Ending) -> None:
    """It may have gone through: it stays pending, and the same request is repeated
    (docs/subscriptions.md "When a charge is refused")."""
    subscription_id, key = await due(charges), str(uuid4())
    charges.app.script.charge.append(Twist(ending=ending))
    response = await charges.post(subscription_id, key=key)
    assert told(response) == (503, "PROVIDER_UNAVAILABLE")
    assert response.headers["Retry-After"] == "10"
    assert await charges.statuses(subscription_id) == ["pending"]
    other = await charges.post(subscription_id)
    assert (other.status_code, other.json()["status"]) == (200, "pending")
    again = await charges.post(subscription_id, key=key)
    assert (again.status_code, again.json()["status"]) == (200, "pending")
    await charges.app.work(10)
    assert await charges.statuses(subscription_id) == ["paid"]
    assert sum((await charges.debits()).values()) == 1


async def test_provider_unavailable_as_long_as_nobody_knows(charges: ChargeApp) -> None:
    subscription_id, key = await due(charges), str(uuid4())
    charges.app.script.charge.extend([Twist(ending=Ending.UNKNOWN_NOT_DONE)] * 2)
    for _ in range(2):
        assert told(await charges.post(subscription_id, key=key)) == (503, "PROVIDER_UNAVAILABLE")
    charges.app.script.find_charge.append(Twist(ending=Ending.UNAVAILABLE))
    assert told(await charges.post(subscription_id, key=key)) == (503, "PROVIDER_UNAVAILABLE")
    assert (await charges.post(subscription_id, key=key)).status_code == 200


@pytest.mark.parametrize("reason", ["insufficient_funds", "declined_by_bank", "cancelled_by_bank", "unknown"])
async def test_provider_error(charges: ChargeApp, reason: str) -> None:
    """The charge is failed with its reason, and the period is free
    (docs/subscriptions.md "When a charge is refused")."""
    subscription_id, key = await due(charges), str(uuid4())
    await charges.next(subscription_id, reason)
    response = await charges.post(subscription_id, key=key)
    assert told(response) == (502, "PROVIDER_ERROR")
    again = await charges.post(subscription_id, key=key)
    assert (again.status_code, again.json()["status"], again.json()["failure_reason"]) == (200, "failed", reason)
    assert again.json()["id"] == response.json()["error"]["details"]["payment_id"]
    [event] = await charges.app.events(again.json()["id"])
    assert (event["status"], event["failure_reason"], event["actual_amount_rub"]) == ("failed", reason, None)
    assert (await charges.window(subscription_id))["can_charge"] is True
    retried = await charges.post(subscription_id)
    assert retried.status_code == 201
    assert retried.json()["period_ref"] == again.json()["period_ref"], "all attempts share it"


async def test_a_revoked_mandate_pauses(charges: ChargeApp) -> None:
    """502 with `mandate_revoked` (docs/subscriptions.md "When a charge is refused"); then paused with rebind_required
    (docs/subscriptions.md "When the mandate is lost")."""
    subscription_id = await due(charges)
    await charges.next(subscription_id, "mandate_revoked")
    assert told(await charges.post(subscription_id)) == (502, "PROVIDER_ERROR")
    [event] = await charges.events(subscription_id)
    assert (event["status"], event["previous_status"], event["rebind_required"]) == ("paused", "active", True)
    assert told(await charges.post(subscription_id)) == (409, "CHARGE_MANDATE_INACTIVE")


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("not_found", "mandate_revoked"),
        ("cancelled_by_bank", "cancelled_by_bank"),
        ("some word", "declined_by_bank"),
        ("unknown", "declined_by_bank"),
    ],
)
async def test_a_refusal_of_the_bank_is_a_failed_charge(charges: ChargeApp, word: str, reason: str) -> None:
    subscription_id = await due(charges)
    charges.app.script.charge.append(Twist(ending=Ending.REFUSED, reason=word))
    response = await charges.post(subscription_id)
    assert told(response) == (502, "PROVIDER_ERROR")
    assert response.json()["error"]["details"]["failure_reason"] == reason
    assert await charges.statuses(subscription_id) == ["failed"]
