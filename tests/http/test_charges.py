"""Charges by a mandate over HTTP: every row of SPEC "Charge errors", the answers, the list, the window, the sandbox."""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any
from uuid import uuid4

import pytest

from cambist.adapters.bank.script import Ending, Twist
from cambist.core.domain.accounts import Mode
from cambist.core.domain.money import Rub
from cambist.core.domain.periods import Interval, Scheme
from cambist.core.domain.subscriptions import SubscriptionStatus
from cambist.ports.mandates import ChargeStatus
from tests.charge_house import DAY, ChargeHouse, open_charge_house, told

UNKNOWN = "sub_00000000-0000-4000-8000-000000000001"


@pytest.fixture
async def charges() -> AsyncIterator[ChargeHouse]:
    async with open_charge_house() as opened:
        yield opened


async def due(charges: ChargeHouse, interval: Interval = Interval.MONTH, count: int = 1, **more: Any) -> str:
    """A subscription whose second period has just opened; its id."""
    subscription_id = await charges.subscribed(interval, count, **more)
    await charges.open_next(subscription_id)
    return subscription_id


class TestAnswers:
    async def test_a_charge_is_201_pending_and_its_end_is_told_by_event(self, charges: ChargeHouse) -> None:
        """SPEC: "201 payment object with status pending"; "for a subscription binding or charge: payment_method is
        recurring with subscription_id and period_ref"."""
        subscription_id = await due(charges)
        before = await charges.window(subscription_id)
        response = await charges.post(subscription_id)
        made = response.json()
        assert response.status_code == 201
        assert "Idempotent-Replayed" not in response.headers
        assert (made["status"], made["amount_rub"], made["payment_method"]) == ("pending", "100.00", "recurring")
        assert (made["subscription_id"], made["period_ref"]) == (subscription_id, before["period_ref"])
        assert made["external_id"] == "tea-1"
        await charges.house.work(10)
        [event] = await charges.house.events(made["id"])
        assert (event["status"], event["previous_status"], event["actual_amount_rub"]) == ("paid", "pending", "100.00")
        assert (event["subscription_id"], event["period_ref"]) == (subscription_id, before["period_ref"])
        assert await charges.told(subscription_id) == [], "nothing of the subscription itself changed"
        paid = (await charges.house.get(f"/payments/{made['id']}")).json()
        assert paid["status"] == "paid"

    async def test_a_repeat_of_the_key_answers_the_original_whatever_it_says(self, charges: ChargeHouse) -> None:
        """SPEC "Authentication", 5; DECISIONS 1.7."""
        subscription_id, key = await due(charges), str(uuid4())
        first = await charges.post(subscription_id, key=key)
        await charges.house.work(10)
        again = await charges.post(subscription_id, {"nonsense": 1}, key=key)
        assert (first.status_code, again.status_code) == (201, 200)
        assert again.headers["Idempotent-Replayed"] == "true"
        assert (again.json()["id"], again.json()["status"]) == (first.json()["id"], "paid")

    async def test_a_key_of_another_subscriptions_charge_is_refused(self, charges: ChargeHouse) -> None:
        """Decided: it would else look as if this one had been charged."""
        first, second, key = await due(charges), await due(charges), str(uuid4())
        assert (await charges.post(first, key=key)).status_code == 201
        assert told(await charges.post(second, key=key)) == (409, "IDEMPOTENCY_KEY_REUSED")

    async def test_a_key_of_another_kind_is_refused(self, charges: ChargeHouse) -> None:
        """DECISIONS 1: a key is one over all endpoints."""
        key = str(uuid4())
        assert (await charges.house.create(key=key)).status_code == 201
        assert told(await charges.post(await due(charges), key=key)) == (409, "IDEMPOTENCY_KEY_REUSED")

    async def test_a_pending_charge_blocks_with_200_and_calls_no_bank(self, charges: ChargeHouse) -> None:
        """SPEC: "POST /charges returns 200 with the same last attempt and does not call the bank"."""
        subscription_id = await due(charges)
        await charges.next(subscription_id, "pending")
        first = await charges.charged(subscription_id)
        charges.house.script.charge.append(Twist(ending=Ending.REFUSED))
        second = await charges.post(subscription_id, key=(key := str(uuid4())))
        assert (second.status_code, second.json()["id"], second.json()["status"]) == (200, first, "pending")
        assert len(charges.house.script.charge) == 1, "the bank was not called"
        charges.house.script.charge.clear()
        assert (await charges.window(subscription_id))["reason"] == "CHARGE_PENDING"
        await charges.end(first, ChargeStatus.FAILED, "insufficient_funds")
        again = await charges.post(subscription_id, key=key)
        assert (again.status_code, again.json()["id"], again.json()["status"]) == (200, first, "failed")

    async def test_a_calendar_period_has_one_charge_whatever_the_key(self, charges: ChargeHouse) -> None:
        """SPEC, old scheme: "returns the same charge with HTTP 200"; the key of the period."""
        subscription_id = await charges.subscribed(Interval.DAY, scheme=Scheme.CALENDAR)
        first = await charges.charged(subscription_id)
        for _ in range(2):
            again = await charges.post(subscription_id)
            assert (again.status_code, again.json()["id"]) == (200, first)
            without = await charges.post(subscription_id, {"amount_rub": "100.00"})
            assert (without.status_code, without.json()["id"]) == (200, first)
            await charges.house.work(10)
        assert (await charges.payment(first)).period_ref == f"{charges.clock.now():%Y-%m-%d}"
        await charges.house.work(DAY.total_seconds())
        assert await charges.charged(subscription_id) != first

    async def test_extra_keys_are_ignored_in_silence(self, charges: ChargeHouse) -> None:
        """SPEC "Behavior", 6: the period cannot be set."""
        subscription_id = await due(charges)
        body = {"amount_rub": "100.00", "period_ref": "a20200101-month1", "shop_id": 7}
        made = await charges.post(subscription_id, body)
        assert made.status_code == 201
        assert made.json()["period_ref"] != "a20200101-month1"
        assert made.json()["external_id"] is None


class TestRefusals:
    """SPEC "Charge errors", row by row."""

    async def test_missing_and_malformed_key(self, charges: ChargeHouse) -> None:
        subscription_id = await due(charges)
        bare = charges.house.headers()
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
    async def test_invalid_body(self, charges: ChargeHouse, body: dict[str, Any]) -> None:
        assert told(await charges.post(await due(charges), body)) == (400, "VALIDATION_ERROR")

    async def test_zero(self, charges: ChargeHouse) -> None:
        assert told(await charges.post(await due(charges), {"amount_rub": "0.00"})) == (400, "INVALID_AMOUNT")

    async def test_not_found_foreign_or_of_the_other_mode(self, charges: ChargeHouse) -> None:
        """Also SPEC "Behavior", 7. It comes before the key and the body."""
        subscription_id = await due(charges)
        bare, live = charges.house.headers(), charges.house.headers("live")
        assert told(await charges.post(UNKNOWN, {}, headers=bare)) == (404, "SUBSCRIPTION_NOT_FOUND")
        assert told(await charges.post("nonsense", {}, headers=bare)) == (404, "SUBSCRIPTION_NOT_FOUND")
        assert told(await charges.post(subscription_id, headers=live)) == (404, "SUBSCRIPTION_NOT_FOUND")
        await charges.change(subscription_id, account_id="acc_another")
        assert told(await charges.post(subscription_id)) == (404, "SUBSCRIPTION_NOT_FOUND")
        for path in ("charges", "charge-window"):
            response = await charges.house.get(f"/subscriptions/{subscription_id}/{path}")
            assert told(response) == (404, "SUBSCRIPTION_NOT_FOUND")

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
    async def test_mandate_inactive(self, charges: ChargeHouse, fields: dict[str, Any]) -> None:
        subscription_id = await due(charges)
        await charges.change(subscription_id, **fields)
        assert told(await charges.post(subscription_id)) == (409, "CHARGE_MANDATE_INACTIVE")
        assert (await charges.window(subscription_id))["reason"] == "CHARGE_MANDATE_INACTIVE"

    async def test_before_the_window(self, charges: ChargeHouse) -> None:
        """`details.next_allowed_at` is in Moscow time, and then it passes."""
        subscription_id = await charges.subscribed(Interval.DAY, 3)
        refused = await charges.post(subscription_id)
        assert told(refused) == (409, "CHARGE_BEFORE_WINDOW")
        next_allowed_at = refused.json()["error"]["details"]["next_allowed_at"]
        assert next_allowed_at.endswith("T00:00:00.000+03:00")
        wait = (datetime.fromisoformat(next_allowed_at) - charges.clock.now()).total_seconds()
        await charges.house.work(wait - 1)
        assert told(await charges.post(subscription_id)) == (409, "CHARGE_BEFORE_WINDOW")
        await charges.house.work(1)
        await charges.charged(subscription_id)

    async def test_exhausted(self, charges: ChargeHouse) -> None:
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

    async def test_period_occupied(self, charges: ChargeHouse) -> None:
        """In the calendar scheme; the key is not locked by it."""
        subscription_id, key = await charges.subscribed(scheme=Scheme.CALENDAR), str(uuid4())
        first = await charges.charged(subscription_id)
        other = {"amount_rub": "100.00", "external_id": "tea-2"}
        assert told(await charges.post(subscription_id, other, key=key)) == (409, "CHARGE_PERIOD_OCCUPIED")
        assert (await charges.post(subscription_id, key=key)).json()["id"] == first

    async def test_cap_of_a_charge_and_of_a_period(self, charges: ChargeHouse) -> None:
        subscription_id = await due(charges)
        assert told(await charges.post(subscription_id, {"amount_rub": "100.01"})) == (409, "CAP_EXCEEDED")
        await charges.change(subscription_id, cap_window=Rub(50_00))
        assert told(await charges.post(subscription_id, {"amount_rub": "50.01"})) == (409, "CAP_EXCEEDED")
        assert (await charges.post(subscription_id, {"amount_rub": "50.00"})).status_code == 201

    async def test_recurring_off(self, charges: ChargeHouse) -> None:
        """501, and no payment was created."""
        subscription_id = await due(charges)
        await charges.set(recurring="false")
        assert told(await charges.post(subscription_id)) == (501, "RECURRING_NOT_SUPPORTED")
        assert await charges.payments(subscription_id) == []

    async def test_provider_not_configured_in_live_mode(self, charges: ChargeHouse) -> None:
        """SPEC: "at present any charge on an active subscription in live mode gets it; no payment created"."""
        subscription_id = await charges.subscribed(mode=Mode.LIVE)
        assert told(await charges.post(subscription_id, mode="live")) == (503, "PROVIDER_NOT_CONFIGURED")
        assert await charges.payments(subscription_id) == []

    @pytest.mark.parametrize(
        "ending", [Ending.UNKNOWN_DONE, Ending.UNKNOWN_NOT_DONE, Ending.UNAVAILABLE], ids=lambda each: each.value
    )
    async def test_provider_unavailable(self, charges: ChargeHouse, ending: Ending) -> None:
        """SPEC: "the debit may have passed; payment stays pending; repeat the same request"."""
        subscription_id, key = await due(charges), str(uuid4())
        charges.house.script.charge.append(Twist(ending=ending))
        response = await charges.post(subscription_id, key=key)
        assert told(response) == (503, "PROVIDER_UNAVAILABLE")
        assert response.headers["Retry-After"] == "10"
        assert await charges.statuses(subscription_id) == ["pending"]
        other = await charges.post(subscription_id)
        assert (other.status_code, other.json()["status"]) == (200, "pending")
        again = await charges.post(subscription_id, key=key)
        assert (again.status_code, again.json()["status"]) == (200, "pending")
        await charges.house.work(10)
        assert await charges.statuses(subscription_id) == ["paid"]
        assert sum((await charges.debits()).values()) == 1

    async def test_provider_unavailable_as_long_as_nobody_knows(self, charges: ChargeHouse) -> None:
        subscription_id, key = await due(charges), str(uuid4())
        charges.house.script.charge.extend([Twist(ending=Ending.UNKNOWN_NOT_DONE)] * 2)
        for _ in range(2):
            assert told(await charges.post(subscription_id, key=key)) == (503, "PROVIDER_UNAVAILABLE")
        charges.house.script.find_charge.append(Twist(ending=Ending.UNAVAILABLE))
        assert told(await charges.post(subscription_id, key=key)) == (503, "PROVIDER_UNAVAILABLE")
        assert (await charges.post(subscription_id, key=key)).status_code == 200

    @pytest.mark.parametrize("reason", ["insufficient_funds", "declined_by_bank", "cancelled_by_bank", "unknown"])
    async def test_provider_error(self, charges: ChargeHouse, reason: str) -> None:
        """SPEC: "charge marked failed, period freed; reason in failure_reason of the charge"."""
        subscription_id, key = await due(charges), str(uuid4())
        await charges.next(subscription_id, reason)
        response = await charges.post(subscription_id, key=key)
        assert told(response) == (502, "PROVIDER_ERROR")
        again = await charges.post(subscription_id, key=key)
        assert (again.status_code, again.json()["status"], again.json()["failure_reason"]) == (200, "failed", reason)
        assert again.json()["id"] == response.json()["error"]["details"]["payment_id"]
        [event] = await charges.house.events(again.json()["id"])
        assert (event["status"], event["failure_reason"], event["actual_amount_rub"]) == ("failed", reason, None)
        assert (await charges.window(subscription_id))["can_charge"] is True
        retried = await charges.post(subscription_id)
        assert retried.status_code == 201
        assert retried.json()["period_ref"] == again.json()["period_ref"], "all attempts share it"

    async def test_a_revoked_mandate_pauses(self, charges: ChargeHouse) -> None:
        """SPEC "Charge errors", 502 `mandate_revoked`; "Subscription statuses": paused with rebind_required."""
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
    async def test_a_refusal_of_the_bank_is_a_failed_charge(self, charges: ChargeHouse, word: str, reason: str) -> None:
        subscription_id = await due(charges)
        charges.house.script.charge.append(Twist(ending=Ending.REFUSED, reason=word))
        response = await charges.post(subscription_id)
        assert told(response) == (502, "PROVIDER_ERROR")
        assert response.json()["error"]["details"]["failure_reason"] == reason
        assert await charges.statuses(subscription_id) == ["failed"]


class TestReads:
    async def test_charges_are_listed_newest_first(self, charges: ChargeHouse) -> None:
        """SPEC: "Page of payments with payment_method recurring, newest first by created_at"."""
        subscription_id, other = await due(charges, Interval.DAY, 3), await due(charges)
        for result in ("declined_by_bank", "insufficient_funds", "paid"):
            await charges.next(subscription_id, result)
            await charges.post(subscription_id)
            await charges.house.work(60)
        await charges.charged(other)
        made = [payment.id for payment in await charges.payments(subscription_id)]
        first, second = [
            (await charges.house.get(f"/subscriptions/{subscription_id}/charges?per_page=2&page={page}")).json()
            for page in (1, 2)
        ]
        assert [each["id"] for each in (*first["data"], *second["data"])][:3] == made[::-1]
        assert first["pagination"] == {"page": 1, "per_page": 2, "total": 4, "total_pages": 2}
        assert {each["payment_method"] for each in (*first["data"], *second["data"])} == {"recurring"}
        assert second["data"][-1]["external_id"] is None, "it marks the binding"
        bad = await charges.house.get(f"/subscriptions/{subscription_id}/charges?per_page=101")
        assert told(bad) == (400, "VALIDATION_ERROR")

    async def test_the_window_tells_what_a_charge_would_meet(self, charges: ChargeHouse) -> None:
        """DECISIONS 5: computed by the function that guards charges."""
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

    async def test_a_charge_has_no_payer_window(self, charges: ChargeHouse) -> None:
        """It asks its payer nothing."""
        payment_id = await charges.charged(await due(charges))
        assert (await charges.house.http.get(f"/p/{payment_id}")).status_code == 404


class TestSandbox:
    async def act(self, charges: ChargeHouse, subscription_id: str, body: Any, mode: str = "test") -> Any:
        return await charges.house.http.post(
            f"/api/v1/sandbox/subscriptions/{subscription_id}/next-charge",
            json=body,
            headers=charges.house.headers(mode),
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
        self, charges: ChargeHouse, result: str, answer: int, status: str
    ) -> None:
        """DECISIONS 8."""
        subscription_id = await due(charges)
        wished = await self.act(charges, subscription_id, {"result": result})
        assert (wished.status_code, wished.json()) == (200, {"result": result})
        assert (await charges.post(subscription_id)).status_code == answer
        await charges.house.work(60)
        assert await charges.statuses(subscription_id) == [status]

    async def test_what_is_refused(self, charges: ChargeHouse) -> None:
        subscription_id = await due(charges)
        assert (await self.act(charges, subscription_id, {})).json() == {"result": "paid"}
        assert told(await self.act(charges, UNKNOWN, {})) == (404, "SUBSCRIPTION_NOT_FOUND")
        assert told(await self.act(charges, subscription_id, {}, "live")) == (404, "NOT_FOUND")
        assert told(await self.act(charges, subscription_id, {"result": "maybe"})) == (400, "VALIDATION_ERROR")
        assert told(await self.act(charges, subscription_id, {"outcome": "paid"})) == (400, "VALIDATION_ERROR")
        await charges.change(subscription_id, mandate_bank=None, mandate_reference=None, mandate_token=None)
        assert told(await self.act(charges, subscription_id, {})) == (409, "INVALID_STATE")

    async def test_a_pending_charge_is_ended_as_a_payment_is(self, charges: ChargeHouse) -> None:
        subscription_id = await due(charges, Interval.WEEK)
        await charges.next(subscription_id, "pending")
        payment_id = await charges.charged(subscription_id)
        refused = await charges.house.simulate(payment_id, outcome="expired")
        assert told(refused) == (400, "VALIDATION_ERROR")
        refused = await charges.house.simulate(payment_id, outcome="paid", actual_amount_rub="5.00")
        assert told(refused) == (400, "VALIDATION_ERROR")
        held = await charges.house.simulate(payment_id, outcome="processing")
        assert held.json()["status"] == "pending", "a charge in processing is pending"
        failed = await charges.house.simulate(payment_id, outcome="failed", failure_reason="insufficient_funds")
        assert (failed.json()["status"], failed.json()["failure_reason"]) == ("failed", "insufficient_funds")
        await charges.next(subscription_id, "pending")
        payment_id = await charges.charged(subscription_id)
        paid = await charges.house.simulate(payment_id, outcome="paid", payer_name="A. Payer")
        assert (paid.json()["status"], paid.json()["payer_name"]) == ("paid", "A. Payer")

    @pytest.mark.parametrize(
        ("amount", "answer", "code"),
        [("404.01", 502, "insufficient_funds"), ("404.02", 502, "declined_by_bank"), ("404.04", 503, None)],
    )
    async def test_exact_amounts_act(self, charges: ChargeHouse, amount: str, answer: int, code: str | None) -> None:
        """DECISIONS 8: without a call."""
        subscription_id = await due(charges, amount=Rub(500_00), cap_amount=Rub(500_00))
        response = await charges.post(subscription_id, {"amount_rub": amount})
        assert response.status_code == answer
        assert response.json()["error"].get("details", {}).get("failure_reason") == code


async def test_charging_is_in_the_money_bucket_and_reading_is_not(charges: ChargeHouse) -> None:
    """SPEC "Limits", 1: `POST /subscriptions/{id}/charges` is one of the four."""
    subscription_id = await due(charges)
    assert (await charges.post(subscription_id)).headers["X-RateLimit-Limit"] == "120"
    for path in ("charges", "charge-window"):
        response = await charges.house.get(f"/subscriptions/{subscription_id}/{path}")
        assert response.headers["X-RateLimit-Limit"] == "60"
