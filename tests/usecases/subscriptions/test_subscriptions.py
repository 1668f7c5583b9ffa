"""Requests of merchants for subscriptions: create, read, list, patch, cancel, bind anew (docs/subscriptions.md "Making
one", "Changing and ending")."""

from typing import Any
from uuid import uuid4

import pytest

from cambist.adapters.script import Ending, Twist
from cambist.core.domain.payments.suspense import Suspense
from cambist.core.usecases.accounts import shops
from cambist.frontends.app.compose import FurtherBank
from cambist.ports.bank import BankCapabilities
from cambist.ports.mandates import MandateEvent
from tests.apps import TestApp, open_test_app
from tests.invariants import everything
from tests.subscription_app import (
    bindings,
    bound,
    call,
    choose_calendar,
    open_link,
    patch,
    play,
    record,
    shown,
    simulate,
    simulator,
    statuses,
    subscribe,
    subscribed,
)


async def rebind(app: TestApp, subscription_id: str, key: str | None = None) -> Any:
    return await call(app, subscription_id, "rebind", Idempotency_Key=key or str(uuid4()))


async def test_the_window_scheme_gives_our_own_link_and_calls_no_bank(app: TestApp) -> None:
    """The path ends with the id, pending is false, no money moves, no bank is called
    (docs/subscriptions.md "How the payer binds")."""
    made = await subscribed(app, external_id="order-1", client_phone="+79001234567", client_ref="c-1")
    assert made["binding_url"] == f"https://pay.example/s/{made['id']}"
    assert made["binding_url_pending"] is False
    assert await bindings(app, made["id"]) == []
    assert await statuses(app, made["id"]) == []
    assert (await record(app, made["id"])).phone_mask == "***4567"


async def test_a_repeat_gives_the_original_and_another_shop_is_refused(app: TestApp) -> None:
    """The body of a repeat is neither validated nor compared, except its shop_id (docs/concepts.md "Idempotency")."""
    other = await shops.create_shop(app.ports, app.account.account_id, "Other")
    default = app.account.default_shop_id
    await shops.set_shop(app.ports, other.id, {"markup": "0.01"})
    for first, repeats in (
        ({}, ({}, {"shop_id": default}, {"shop_id": default.upper()}, {"amount_rub": "garbage"})),
        ({"shop_id": other.id}, ({"shop_id": other.id}, {"shop_id": other.id, "interval": "year"})),
    ):
        key = str(uuid4())
        made = await subscribe(app, key=key, **first)
        assert made.status_code == 201
        for body in repeats:
            again = await subscribe(app, key=key, **body)
            assert (again.status_code, again.json()["id"]) == (200, made.json()["id"])
            assert again.headers["Idempotent-Replayed"] == "true"
        foreign = await subscribe(app, key=key, **{**first, "shop_id": default if first else other.id})
        assert (foreign.status_code, foreign.json()["error"]["code"]) == (409, "IDEMPOTENCY_KEY_REUSED")


@pytest.mark.parametrize(("mode", "sandbox"), [("test", True), ("live", None)])
async def test_events_say_whether_they_are_of_test_mode(app: TestApp, mode: str, sandbox: bool | None) -> None:
    made = (await subscribe(app, mode=mode)).json()
    cancelled = await app.http.post(f"/api/v1/subscriptions/{made['id']}/cancel", headers=app.headers(mode))
    assert cancelled.status_code == 200
    assert [event.get("sandbox") for event in await app.events(made["id"])] == [sandbox]


async def test_a_key_of_another_kind_is_refused(app: TestApp) -> None:
    key = str(uuid4())
    await app.create(key=key)
    refused = await subscribe(app, key=key)
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "IDEMPOTENCY_KEY_REUSED")


async def test_lists_are_of_one_mode_and_by_status_in_any_case(app: TestApp) -> None:
    first, second = await subscribed(app), await bound(app)
    page = (await app.get("/subscriptions?per_page=1")).json()
    assert [each["id"] for each in page["data"]] == [second["id"]]
    assert page["pagination"] == {"page": 1, "per_page": 1, "total": 2, "total_pages": 2}
    active = (await app.get("/subscriptions?status=ACTIVE")).json()
    assert [each["id"] for each in active["data"]] == [second["id"]]
    assert (await app.get("/subscriptions", mode="live")).json()["data"] == []
    refused = await app.get("/subscriptions?status=frozen")
    assert refused.status_code == 400
    assert "pending_binding, active, paused, cancelled, expired" in refused.json()["error"]["message"]
    assert (await app.get(f"/subscriptions/{first['id']}", mode="live")).status_code == 404


async def test_patch_changes_amounts_and_makes_no_event(app: TestApp) -> None:
    """A new amount applies from the next charge on; above the cap nothing is written
    (docs/subscriptions.md "Changing and ending")."""
    made = await subscribed(app)
    refused = await patch(app, made["id"], {"amount_rub": "500.01"})
    assert refused.json()["error"]["code"] == "INVALID_AMOUNT"
    window = await patch(app, made["id"], {"cap_window_rub": "1000"})
    assert (window.status_code, window.json()["error"]["code"]) == (400, "VALIDATION_ERROR")
    changed = await patch(app, made["id"], {"amount_rub": "700", "cap_amount_rub": "700"})
    assert changed.status_code == 200
    amounts = {name: changed.json().get(name) for name in ("amount_rub", "cap_amount_rub", "cap_window_rub")}
    refused = await patch(app, made["id"], {"cap_amount_rub": "900"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "INVALID_AMOUNT"), "not reset later"
    assert amounts == {"amount_rub": "700.00", "cap_amount_rub": "700.00", "cap_window_rub": None}
    assert "cap_window_rub" not in (await patch(app, made["id"], {"cap_window_rub": None})).json()
    assert await statuses(app, made["id"]) == []


async def test_no_patch_goes_above_what_the_payer_agreed_to(app: TestApp) -> None:
    """Terms above the consent need a new subscription (docs/subscriptions.md "Changing and ending")."""
    made = await bound(app)
    for above in ({"amount_rub": "500.01", "cap_amount_rub": "500.01"}, {"cap_amount_rub": "500.01"}):
        refused = await patch(app, made["id"], above)
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "INVALID_AMOUNT")
    lowered = (await patch(app, made["id"], {"amount_rub": "100"})).json()
    assert (lowered["amount_rub"], lowered["cap_amount_rub"]) == ("100.00", "100.00")
    back = (await patch(app, made["id"], {"amount_rub": "500", "cap_amount_rub": "500"})).json()
    assert (back["amount_rub"], back["cap_amount_rub"]) == ("500.00", "500.00")


@pytest.mark.parametrize("outcome", ["paused", "cancelled"])
async def test_patch_works_only_in_active_and_pending_binding(app: TestApp, outcome: str) -> None:
    made = await bound(app)
    assert (await patch(app, made["id"], {"amount_rub": "400"})).status_code == 200
    await (call(app, made["id"], "cancel") if outcome == "cancelled" else play(app, made["id"], "mandate_lost"))
    refused = await patch(app, made["id"], {"amount_rub": "300"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "INVALID_STATE")
    assert (await shown(app, made["id"]))["amount_rub"] == "400.00"


async def test_cancelling_holds_though_the_bank_is_away_and_its_side_is_retried(app: TestApp) -> None:
    """It is cancelled even while the bank is down; the call to the bank is retried. Cancelling twice is INVALID_STATE
    (docs/subscriptions.md "Changing and ending")."""
    made = await bound(app)
    reference = (await record(app, made["id"])).mandate_reference or ""
    app.script.revoke.extend([Twist(ending=Ending.UNAVAILABLE), Twist(ending=Ending.UNKNOWN_NOT_DONE)])
    cancelled = await call(app, made["id"], "cancel")
    assert (cancelled.status_code, cancelled.json()["status"]) == (200, "cancelled")
    again = await call(app, made["id"], "cancel")
    assert (again.status_code, again.json()["error"]["code"]) == (409, "INVALID_STATE")
    await app.work(5)
    assert (await record(app, made["id"])).revoke_pending
    assert (await simulator(app).mandate_state(reference)).status == "active"
    await app.work(60)
    assert not (await record(app, made["id"])).revoke_pending
    assert (await simulator(app).mandate_state(reference)).status == "ended"
    assert await statuses(app, made["id"]) == [("pending_binding", "active"), ("active", "cancelled")]


@pytest.mark.parametrize("scheme", ["window", "calendar"])
async def test_binding_money_after_cancellation_waits_for_the_operator(app: TestApp, scheme: str) -> None:
    """A success that still arrives is booked, and an operator sees it (docs/subscriptions.md "Changing and ending").
    The mandate is ended."""
    if scheme == "calendar":
        await choose_calendar(app)
    made = await subscribed(app)
    payment = await open_link(app, made["id"])
    await call(app, made["id"], "cancel")
    assert await statuses(app, payment.id) == [("pending", "cancelled")]
    binding = (await record(app, made["id"])).binding
    assert binding is not None
    await simulate(app, binding.operation, MandateEvent.CONFIRM)
    [suspense] = await everything(app.ports, Suspense)
    assert (suspense.amount.kopecks, suspense.reason) == (500_00, "after_cancelled")
    await app.work(60)
    assert (await shown(app, made["id"]))["status"] == "cancelled"
    assert (await simulator(app).mandate_state(payment.bank_reference or "")).status == "ended"


async def test_a_lost_mandate_is_bound_anew_without_money(app: TestApp) -> None:
    """Paused -> active when the payer confirms a new binding; the anchor stays, the old one is ended
    (docs/subscriptions.md "When the mandate is lost")."""
    made = await bound(app)
    before = await record(app, made["id"])
    await play(app, made["id"], "mandate_lost")
    lost = await shown(app, made["id"])
    assert (lost["status"], lost["rebind_required"]) == ("paused", True)
    key = str(uuid4())
    answer = await rebind(app, made["id"], key)
    assert (answer.status_code, answer.json()["binding_url"]) == (201, made["binding_url"])
    assert (await rebind(app, made["id"], key)).status_code == 200
    confirmed = await play(app, made["id"], "confirm")
    assert confirmed.json()["status"] == "active"
    assert "rebind_required" not in confirmed.json()
    after = await record(app, made["id"])
    assert (after.anchor, after.current_period_end) == (before.anchor, before.current_period_end)
    assert after.mandate_reference != before.mandate_reference
    first, second = await bindings(app, made["id"])
    assert (str(first.actual_amount), str(second.actual_amount)) == ("500.00", "0.00")
    await app.work(5)
    assert (await simulator(app).mandate_state(before.mandate_reference or "")).status == "ended"
    assert (await simulator(app).mandate_state(after.mandate_reference or "")).status == "active"


async def test_rebinding_needs_a_lost_mandate_and_a_key_of_its_own(app: TestApp) -> None:
    made, other = await bound(app), await bound(app)
    missing = await call(app, made["id"], "rebind")
    assert missing.json()["error"]["code"] == "MISSING_IDEMPOTENCY_KEY"
    refused = await rebind(app, made["id"])
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "INVALID_STATE")
    key = str(uuid4())
    await play(app, made["id"], "mandate_lost")
    await play(app, other["id"], "mandate_lost")
    assert (await rebind(app, made["id"], key)).status_code == 201
    reused = await rebind(app, other["id"], key)
    assert (reused.status_code, reused.json()["error"]["code"]) == (409, "IDEMPOTENCY_KEY_REUSED")


async def test_a_mandate_that_is_valid_again_makes_a_new_binding_needless(app: TestApp) -> None:
    made = await bound(app)
    await play(app, made["id"], "mandate_lost")
    await rebind(app, made["id"])
    restored = await play(app, made["id"], "mandate_restored")
    assert restored.json()["status"] == "active"
    assert (await statuses(app, made["id"]))[-1] == ("paused", "active")


async def test_changed_flags_make_an_event_with_equal_statuses(app: TestApp) -> None:
    """Changes of `past_due` are sent with previous_status equal to status (docs/subscriptions.md "When the mandate is
    lost")."""
    made = await bound(app)
    assert (await play(app, made["id"], "past_due")).json()["past_due"] is True
    assert (await play(app, made["id"], "past_due_cleared")).json()["past_due"] is False
    told = [(event["previous_status"], event["status"], event["past_due"]) for event in await app.events(made["id"])]
    assert told[1:] == [("active", "active", True), ("active", "active", False)]


async def test_subscription_is_not_made_without_a_bank_that_binds() -> None:
    plain = FurtherBank(name="plain", capabilities=BankCapabilities(simulated=True))
    async with open_test_app(further_banks=[plain]) as app:
        app.ports.banks.order["test"] = ("plain",)  # type: ignore[index]  # a dict of the test's own app
        refused = await subscribe(app)
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "PAYMENT_ROUTE_UNAVAILABLE")


async def test_merchant_may_retry_a_subscription_refused_without_a_bank(app: TestApp) -> None:
    app.ports.banks.banks.pop("simulator-test")  # type: ignore[attr-defined]  # a dict of the test's own app
    app.ports.banks.order["test"] = ()  # type: ignore[index]  # as above
    refused = await subscribe(app)
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "PROVIDER_NOT_CONFIGURED")
