"""Charges by a mandate over HTTP: the answers, the list, the window, the sandbox."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest

from cambist.adapters.script import Ending, Twist
from cambist.core.domain.accounts.accounts import Scheme
from cambist.core.domain.money import Rub
from cambist.core.domain.subscriptions.periods import Interval
from cambist.ports.mandates import ChargeStatus
from tests.charge_app import DAY, UNKNOWN, ChargeApp, open_charge_app, told
from tests.charge_app import due_subscription as due
from tests.subscription_app import bound, choose_calendar


@pytest.fixture
async def charges() -> AsyncIterator[ChargeApp]:
    async with open_charge_app() as opened:
        yield opened


class TestAnswers:
    async def test_charge_is_201_pending_and_its_end_is_an_event(self, charges: ChargeApp) -> None:
        """A charge is a payment, pending, by `recurring`, with subscription_id and period_ref
        (docs/subscriptions.md "Charging")."""
        subscription_id = await due(charges)
        before = await charges.window(subscription_id)
        response = await charges.post(subscription_id)
        made = response.json()
        assert response.status_code == 201
        assert "Idempotent-Replayed" not in response.headers
        assert (made["status"], made["amount_rub"], made["payment_method"]) == ("pending", "100.00", "recurring")
        assert (made["subscription_id"], made["period_ref"]) == (subscription_id, before["period_ref"])
        assert made["external_id"] == "tea-1"
        await charges.app.work(10)
        [event] = await charges.app.events(made["id"])
        assert (event["status"], event["previous_status"], event["actual_amount_rub"]) == ("paid", "pending", "100.00")
        assert (event["subscription_id"], event["period_ref"]) == (subscription_id, before["period_ref"])
        assert await charges.told(subscription_id) == [], "nothing of the subscription itself changed"
        paid = (await charges.app.get(f"/payments/{made['id']}")).json()
        assert paid["status"] == "paid"

    async def test_a_repeat_of_the_key_answers_the_original_whatever_it_says(self, charges: ChargeApp) -> None:
        """A repeat of the key gets the same charge (docs/concepts.md "Idempotency")."""
        subscription_id, key = await due(charges), str(uuid4())
        first = await charges.post(subscription_id, key=key)
        await charges.app.work(10)
        again = await charges.post(subscription_id, {"garbage": 1}, key=key)
        assert (first.status_code, again.status_code) == (201, 200)
        assert again.headers["Idempotent-Replayed"] == "true"
        assert (again.json()["id"], again.json()["status"]) == (first.json()["id"], "paid")

    async def test_a_key_of_another_subscriptions_charge_is_refused(self, charges: ChargeApp) -> None:
        """A documented decision: otherwise this subscription would seem to have been charged."""
        first, second, key = await due(charges), await due(charges), str(uuid4())
        assert (await charges.post(first, key=key)).status_code == 201
        assert told(await charges.post(second, key=key)) == (409, "IDEMPOTENCY_KEY_REUSED")

    async def test_a_key_of_another_kind_is_refused(self, charges: ChargeApp) -> None:
        """A key is one over all endpoints (docs/concepts.md "Idempotency")."""
        key = str(uuid4())
        assert (await charges.app.create(key=key)).status_code == 201
        assert told(await charges.post(await due(charges), key=key)) == (409, "IDEMPOTENCY_KEY_REUSED")

    async def test_a_pending_charge_blocks_with_200_and_calls_no_bank(self, charges: ChargeApp) -> None:
        """While one is pending, POST answers 200 with it and calls no bank
        (docs/subscriptions.md "Periods and attempts")."""
        subscription_id = await due(charges)
        await charges.next(subscription_id, "pending")
        first = await charges.charged(subscription_id)
        charges.app.script.charge.append(Twist(ending=Ending.REFUSED))
        second = await charges.post(subscription_id, key=(key := str(uuid4())))
        assert (second.status_code, second.json()["id"], second.json()["status"]) == (200, first, "pending")
        assert len(charges.app.script.charge) == 1, "the bank was not called"
        charges.app.script.charge.clear()
        assert (await charges.window(subscription_id))["reason"] == "CHARGE_PENDING"
        await charges.end(first, ChargeStatus.FAILED, "insufficient_funds")
        again = await charges.post(subscription_id, key=key)
        assert (again.status_code, again.json()["id"], again.json()["status"]) == (200, first, "failed")

    async def test_a_calendar_period_has_one_charge_whatever_the_key(self, charges: ChargeApp) -> None:
        """A second charge gets the first with 200 (docs/subscriptions.md "The calendar scheme"); the key of the
        period."""
        subscription_id = await charges.subscribed(Interval.DAY, scheme=Scheme.CALENDAR)
        first = await charges.charged(subscription_id)
        for _ in range(2):
            again = await charges.post(subscription_id)
            assert (again.status_code, again.json()["id"]) == (200, first)
            without = await charges.post(subscription_id, {"amount_rub": "100.00"})
            assert (without.status_code, without.json()["id"]) == (200, first)
            await charges.app.work(10)
        assert (await charges.payment(first)).period_ref == f"{charges.clock.now():%Y-%m-%d}"
        await charges.app.work(DAY.total_seconds())
        assert await charges.charged(subscription_id) != first

    async def test_extra_keys_are_ignored_in_silence(self, charges: ChargeApp) -> None:
        """The period cannot be set (docs/subscriptions.md "Charging")."""
        subscription_id = await due(charges)
        body = {"amount_rub": "100.00", "period_ref": "a20200101-month1", "shop_id": 7}
        made = await charges.post(subscription_id, body)
        assert made.status_code == 201
        assert made.json()["period_ref"] != "a20200101-month1"
        assert made.json()["external_id"] is None


class TestReads:
    async def test_charges_are_listed_newest_first(self, charges: ChargeApp) -> None:
        """All payments by `recurring`, the newest first (docs/subscriptions.md "Charging")."""
        subscription_id, other = await due(charges, Interval.DAY, 3), await due(charges)
        for result in ("declined_by_bank", "insufficient_funds", "paid"):
            await charges.next(subscription_id, result)
            await charges.post(subscription_id)
            await charges.app.work(60)
        await charges.charged(other)
        made = [payment.id for payment in await charges.payments(subscription_id)]
        first, second = [
            (await charges.app.get(f"/subscriptions/{subscription_id}/charges?per_page=2&page={page}")).json()
            for page in (1, 2)
        ]
        assert [each["id"] for each in (*first["data"], *second["data"])][:3] == made[::-1]
        assert first["pagination"] == {"page": 1, "per_page": 2, "total": 4, "total_pages": 2}
        assert {each["payment_method"] for each in (*first["data"], *second["data"])} == {"recurring"}
        assert second["data"][-1]["external_id"] is None, "it marks the binding"
        bad = await charges.app.get(f"/subscriptions/{subscription_id}/charges?per_page=101")
        assert told(bad) == (400, "VALIDATION_ERROR")

    @pytest.mark.parametrize("scheme", Scheme)
    async def test_null_marks_the_charge_that_the_binding_made(self, charges: ChargeApp, scheme: Scheme) -> None:
        """Whatever id the subscription has (docs/subscriptions.md "Charging"). So in the calendar scheme a charge with
        any id of the merchant's is another one than it ("The calendar scheme")."""
        if scheme is Scheme.CALENDAR:
            await choose_calendar(charges.app)
        subscription_id = (await bound(charges.app, external_id="club"))["id"]
        [first] = (await charges.app.get(f"/subscriptions/{subscription_id}/charges")).json()["data"]
        assert (first["status"], first["external_id"]) == ("paid", None)
        if scheme is Scheme.CALENDAR:
            occupied = await charges.post(subscription_id, {"amount_rub": "500.00", "external_id": "club"})
            assert told(occupied) == (409, "CHARGE_PERIOD_OCCUPIED")
            same = await charges.post(subscription_id, {"amount_rub": "500.00"})
            assert (same.status_code, same.json()["id"]) == (200, first["id"])

    async def test_window_shows_what_a_charge_would_be_answered(self, charges: ChargeApp) -> None:
        """Computed by the function that guards charges (docs/subscriptions.md "Charging")."""
        subscription_id = await charges.subscribed(Interval.DAY, 3)
        early = await charges.window(subscription_id)
        assert (early["can_charge"], early["reason"]) == (False, "CHARGE_BEFORE_WINDOW")
        assert early["next_allowed_at"] == early["opens_at"]
        await charges.open_next(subscription_id)
        free = await charges.window(subscription_id)
        assert free == {
            "period_ref": early["period_ref"],
            "opens_at": early["opens_at"],
            "closes_at": early["closes_at"],
            "attempts_used": 0,
            "attempts_max": 3,
            "window_ends_at": None,
            "can_charge": True,
            "reason": None,
            "next_allowed_at": None,
        }

    async def test_a_charge_has_no_payer_window(self, charges: ChargeApp) -> None:
        """It asks its payer nothing."""
        payment_id = await charges.charged(await due(charges))
        assert (await charges.app.http.get(f"/p/{payment_id}")).status_code == 404


class TestSandbox:
    async def action(self, charges: ChargeApp, subscription_id: str, body: Any, mode: str = "test") -> Any:
        return await charges.app.http.post(
            f"/api/v1/sandbox/subscriptions/{subscription_id}/next-charge",
            json=body,
            headers=charges.app.headers(mode),
        )

    @pytest.mark.parametrize(
        ("result", "answer", "status"),
        [
            ("paid", 201, "paid"),
            ("pending", 201, "pending"),
            ("unavailable", 503, "paid"),
            ("insufficient_funds", 502, "failed"),
            ("mandate_revoked", 502, "failed"),
        ],
    )
    async def test_the_next_charge_meets_the_wish(
        self, charges: ChargeApp, result: str, answer: int, status: str
    ) -> None:
        """The wish sets the bank's answer (docs/sandbox.md "The calls")."""
        subscription_id = await due(charges)
        wished = await self.action(charges, subscription_id, {"result": result})
        assert (wished.status_code, wished.json()) == (200, {"result": result})
        assert (await charges.post(subscription_id)).status_code == answer
        await charges.app.work(60)
        assert await charges.statuses(subscription_id) == [status]

    async def test_impossible_charge_simulations_are_refused(self, charges: ChargeApp) -> None:
        subscription_id = await due(charges)
        assert (await self.action(charges, subscription_id, {})).json() == {"result": "paid"}
        assert told(await self.action(charges, UNKNOWN, {})) == (404, "SUBSCRIPTION_NOT_FOUND")
        assert told(await self.action(charges, subscription_id, {}, "live")) == (404, "NOT_FOUND")
        assert told(await self.action(charges, subscription_id, {"result": "maybe"})) == (400, "VALIDATION_ERROR")
        assert told(await self.action(charges, subscription_id, {"outcome": "paid"})) == (400, "VALIDATION_ERROR")
        await charges.change(subscription_id, mandate_bank=None, mandate_reference=None, mandate_token=None)
        assert told(await self.action(charges, subscription_id, {})) == (409, "INVALID_STATE")

    async def test_a_pending_charge_is_ended_as_a_payment_is(self, charges: ChargeApp) -> None:
        subscription_id = await due(charges, Interval.WEEK)
        await charges.next(subscription_id, "pending")
        payment_id = await charges.charged(subscription_id)
        refused = await charges.app.simulate(payment_id, outcome="expired")
        assert told(refused) == (400, "VALIDATION_ERROR")
        refused = await charges.app.simulate(payment_id, outcome="paid", actual_amount_rub="5.00")
        assert told(refused) == (400, "VALIDATION_ERROR")
        held = await charges.app.simulate(payment_id, outcome="processing")
        assert held.json()["status"] == "pending", "a charge in processing is pending"
        failed = await charges.app.simulate(payment_id, outcome="failed", failure_reason="insufficient_funds")
        assert (failed.json()["status"], failed.json()["failure_reason"]) == ("failed", "insufficient_funds")
        await charges.next(subscription_id, "pending")
        payment_id = await charges.charged(subscription_id)
        paid = await charges.app.simulate(payment_id, outcome="paid", payer_name="A. Payer")
        assert (paid.json()["status"], paid.json()["payer_name"]) == ("paid", "A. Payer")

    @pytest.mark.parametrize(
        ("amount", "answer", "code"),
        [("404.01", 502, "insufficient_funds"), ("404.02", 502, "declined_by_bank"), ("404.04", 503, None)],
    )
    async def test_exact_amounts_action(self, charges: ChargeApp, amount: str, answer: int, code: str | None) -> None:
        """Amounts that act without a call (docs/sandbox.md "Amounts that act by themselves")."""
        subscription_id = await due(charges, amount=Rub(500_00), cap_amount=Rub(500_00))
        response = await charges.post(subscription_id, {"amount_rub": amount})
        assert response.status_code == answer
        assert response.json()["error"].get("details", {}).get("failure_reason") == code


async def test_charging_is_in_the_money_bucket_and_reading_is_not(charges: ChargeApp) -> None:
    """`POST /subscriptions/{id}/charges` is one of the four (docs/limits.md "Requests")."""
    subscription_id = await due(charges)
    assert (await charges.post(subscription_id)).headers["X-RateLimit-Limit"] == "120"
    for path in ("charges", "charge-window"):
        response = await charges.app.get(f"/subscriptions/{subscription_id}/{path}")
        assert response.headers["X-RateLimit-Limit"] == "60"
