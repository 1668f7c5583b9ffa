"""How a payer binds: links, QRs, money and mandate in any order, deadlines
(docs/subscriptions.md "How the payer binds", "Making one")."""

from datetime import timedelta
from uuid import uuid4

import pytest

from cambist.adapters.script import Ending, Twist
from cambist.core.domain.payments.payments import Opening
from cambist.core.domain.payments.suspense import Suspense
from cambist.core.usecases.accounts.accounts import set_settings
from cambist.core.usecases.subscriptions.binding_opening import open_binding
from cambist.frontends.app.compose import FurtherBank
from cambist.ports.mandates import MandateEvent
from tests.apps import TestApp, open_test_app
from tests.invariants import everything
from tests.subscription_app import (
    bindings,
    bound,
    choose_calendar,
    issue_links,
    open_link,
    play,
    record,
    shown,
    simulate,
    simulator,
    statuses,
    subscribe,
    subscribed,
)

HOUR, DAY = 3600, 86400
E = MandateEvent


async def operation(app: TestApp, subscription_id: str) -> str:
    binding = (await record(app, subscription_id)).binding
    assert binding is not None
    return binding.operation


async def test_reopened_link_shows_the_same_qr_while_it_lives_then_a_new_one(app: TestApp) -> None:
    made = await subscribed(app)
    first = await open_link(app, made["id"])
    assert (first.amount.kopecks, first.payment_method, first.subscription_id) == (500_00, "recurring", made["id"])
    assert first.qr_payload is not None
    await app.work(14 * 60)
    assert (await open_link(app, made["id"])).id == first.id
    await app.work(60)
    second = await open_link(app, made["id"])
    assert second.id != first.id
    assert await statuses(app, first.id) == [("pending", "expired")]
    assert await statuses(app, second.id) == []


async def test_confirming_sets_anchor_and_period(app: TestApp) -> None:
    """The first payment is the binding itself; Moscow time (docs/subscriptions.md "Periods and attempts")."""
    made = await bound(app, interval="day", interval_count=3)
    assert (made["current_period_start"], made["current_period_end"]) == (
        "2025-12-31T21:00:00.000Z",
        "2026-01-03T21:00:00.000Z",
    )
    [payment] = await bindings(app, made["id"])
    view = (await app.get(f"/payments/{payment.id}")).json()
    assert (view["status"], view["period_ref"], view["subscription_id"]) == ("paid", "a20260101-day3", made["id"])
    assert view["payment_url"] == made["binding_url"]
    kept = (await record(app, made["id"])).attempts
    assert kept is not None
    assert (kept.period.ref, kept.paid, kept.payment_id) == ("a20260101-day3", True, payment.id)


@pytest.mark.parametrize("order", [(E.PAID, E.BOUND), (E.BOUND, E.PAID)])
async def test_money_and_mandate_come_in_any_order(app: TestApp, order: tuple[MandateEvent, ...]) -> None:
    """The subscription is active once both have arrived; payment and subscription events come in any order
    (docs/subscriptions.md "How the payer binds")."""
    made = await subscribed(app)
    payment = await open_link(app, made["id"])
    await simulate(app, await operation(app, made["id"]), order[0])
    assert (await shown(app, made["id"]))["status"] == "pending_binding"
    await app.work(60)
    await simulate(app, await operation(app, made["id"]), order[1])
    assert (await shown(app, made["id"]))["status"] == "active"
    assert await statuses(app, payment.id) == [("pending", "paid")]


async def test_watch_finds_a_binding_without_any_notification(app: TestApp) -> None:
    made = await subscribed(app)
    await open_link(app, made["id"])
    await simulate(app, await operation(app, made["id"]), E.CONFIRM, silent=True)
    await app.work(15 * 60)
    assert (await shown(app, made["id"]))["status"] == "active"


async def test_notifications_twice_change_nothing_more(app: TestApp) -> None:
    made = await subscribed(app)
    await open_link(app, made["id"])
    await simulate(app, await operation(app, made["id"]), E.CONFIRM, doubled=True)
    assert await statuses(app, made["id"]) == [("pending_binding", "active")]


async def test_paid_and_not_bound_binds_again_without_a_second_debit(app: TestApp) -> None:
    """The payment is paid, the subscription waits, and the next QR is the symbolic one."""
    made = await subscribed(app)
    first = await open_link(app, made["id"])
    await simulate(app, await operation(app, made["id"]), E.PAID_NOT_BOUND)
    assert await statuses(app, first.id) == [("pending", "paid")]
    assert (await shown(app, made["id"]))["status"] == "pending_binding"
    await app.clock.advance(HOUR)
    second = await open_link(app, made["id"])
    assert (second.amount.kopecks, second.binding) == (1_00, "none")
    await simulate(app, await operation(app, made["id"]), E.CONFIRM)
    after = await record(app, made["id"])
    assert (after.status, after.anchor) == ("active", app.clock.now() - timedelta(seconds=HOUR))
    assert after.attempts is not None
    assert after.attempts.payment_id == first.id


async def test_second_paid_qr_of_a_binding_waits_for_the_operator(app: TestApp) -> None:
    made = await subscribed(app)
    await open_link(app, made["id"])
    first = await operation(app, made["id"])
    await app.work(16 * 60)
    await open_link(app, made["id"])
    await simulate(app, await operation(app, made["id"]), E.CONFIRM)
    kept = (await record(app, made["id"])).mandate_reference
    await simulate(app, first, E.CONFIRM)
    [suspense] = await everything(app.ports, Suspense)
    assert suspense.reason == "bound_already"
    assert (await record(app, made["id"])).mandate_reference == kept
    await app.work(5)
    assert (await simulator(app).mandate_state(f"simulator-test:{first}")).status == "ended"


async def test_a_qr_that_lapsed_and_is_paid_late_binds_all_the_same(app: TestApp) -> None:
    made = await subscribed(app)
    payment = await open_link(app, made["id"])
    op = await operation(app, made["id"])
    await app.work(HOUR)
    await simulate(app, op, E.CONFIRM)
    assert await statuses(app, payment.id) == [("pending", "expired"), ("expired", "paid")]
    assert (await shown(app, made["id"]))["status"] == "active"


async def test_a_binding_without_a_charge_is_paid_with_nothing(app: TestApp) -> None:
    """With `binding_charge` `none`: a symbolic 1 RUB that the bank does not debit; nothing is booked
    (docs/subscriptions.md "How the payer binds")."""
    made = await bound(app, binding_charge="none")
    [payment] = await bindings(app, made["id"])
    [event] = await app.events(payment.id)
    told = {name: event[name] for name in ("status", "amount_rub", "actual_amount_rub", "payment_method")}
    assert told == {
        "status": "paid",
        "amount_rub": "1.00",
        "actual_amount_rub": "0.00",
        "payment_method": "recurring",
    }
    assert (await app.get("/balance")).json()["pending_rub"] == "0.00"
    assert (await record(app, made["id"])).anchor == app.clock.now()
    settled = await app.http.post("/api/v1/sandbox/settlements", headers=app.headers())
    assert (settled.status_code, settled.json()["amount_rub"], settled.json()["credit_usdt"]) == (
        200,
        "0.00",
        "0.00000000",
    )
    assert [event["status"] for event in await app.events(payment.id)] == ["paid", "settled"]


@pytest.mark.parametrize(("charge", "status"), [("first", "failed"), ("none", "expired")])
async def test_a_refused_binding_fails_or_expires_and_another_may_be_opened(
    app: TestApp, charge: str, status: str
) -> None:
    """A refused binding without a first charge is `expired`, because a late success may come (docs/payments.md "How it
    ends")."""
    made = await subscribed(app, binding_charge=charge)
    payment = await open_link(app, made["id"])
    await play(app, made["id"], "refuse")
    assert await statuses(app, payment.id) == [("pending", status)]
    assert (await shown(app, made["id"]))["status"] == "pending_binding"
    if charge == "none":
        await simulate(app, await operation(app, made["id"]), E.CONFIRM)
        assert await statuses(app, payment.id) == [("pending", "expired"), ("expired", "paid")]
    else:
        assert (await play(app, made["id"], "confirm")).json()["status"] == "active"


async def test_binding_expires_unconfirmed_after_24_hours(app: TestApp) -> None:
    """pending_binding -> expired 24 h after the link was issued (docs/subscriptions.md "How the payer binds")."""
    made = await subscribed(app)
    await app.work(23 * HOUR)
    payment = await open_link(app, made["id"])
    await app.work(HOUR - 1)
    assert (await shown(app, made["id"]))["status"] == "pending_binding"
    await app.work(2)
    assert await statuses(app, made["id"]) == [("pending_binding", "expired")]
    await app.work(60)
    assert (await simulator(app).mandate_state(payment.bank_reference or "")).status in ("closed", "ended")


async def test_paused_for_90_days_expires(app: TestApp) -> None:
    made = await bound(app)
    await play(app, made["id"], "mandate_lost")
    await app.work(90 * DAY - 60)
    assert (await shown(app, made["id"]))["status"] == "paused"
    await app.work(120)
    assert (await statuses(app, made["id"]))[-1] == ("paused", "expired")


async def test_unreported_change_of_a_mandate_is_found_within_a_day(app: TestApp) -> None:
    made = await bound(app)
    op = await operation(app, made["id"])
    for event, status in ((E.MANDATE_LOST, "paused"), (E.MANDATE_RESTORED, "active"), (E.CONSENT_ENDED, "expired")):
        await simulate(app, op, event, silent=True)
        await app.work(DAY + HOUR)
        assert (await shown(app, made["id"]))["status"] == status


async def test_ready_calendar_link_is_in_the_answer_and_no_event(app: TestApp) -> None:
    await choose_calendar(app)
    made = await subscribed(app)
    assert made["binding_url"].startswith("https://qr.nspk.example/")
    assert made["binding_url_pending"] is False
    assert await statuses(app, made["id"]) == []
    await app.work(20 * HOUR)
    assert (await play(app, made["id"], "confirm")).json()["status"] == "active"


async def test_late_link_is_awaited_and_makes_an_event(app: TestApp) -> None:
    """24 hours run from the link (docs/subscriptions.md "How the payer binds")."""
    await choose_calendar(app)
    issue_links(app, timedelta(minutes=50))
    made = await subscribed(app)
    assert (made["binding_url"], made["binding_url_pending"]) == (None, True)
    await app.work(HOUR)
    [event] = await app.events(made["id"])
    assert (event["previous_status"], event["status"]) == ("pending_binding", "pending_binding")
    assert event["binding_url"] == (await shown(app, made["id"]))["binding_url"]
    assert event["binding_url_pending"] is False
    await app.work(23 * HOUR)
    assert (await shown(app, made["id"]))["status"] == "pending_binding"
    await app.work(HOUR)
    assert (await shown(app, made["id"]))["status"] == "expired"


@pytest.mark.parametrize("closed", [True, False])
async def test_no_link_within_an_hour_or_closed_by_the_system_cancels(app: TestApp, closed: bool) -> None:
    """It is cancelled (docs/subscriptions.md "How the payer binds"), and no charges are ever made."""
    await choose_calendar(app)
    issue_links(app, None)
    made = await subscribed(app)
    if closed:
        assert (await play(app, made["id"], "no_link")).json()["status"] == "cancelled"
    else:
        await app.work(HOUR + 60)
    ended = await shown(app, made["id"])
    assert (ended["status"], ended["binding_url"], ended["binding_url_pending"]) == ("cancelled", None, False)
    assert await statuses(app, made["id"]) == [("pending_binding", "cancelled")]
    [payment] = await bindings(app, made["id"])
    assert payment.status in ("cancelled", "expired")


async def test_the_sandbox_issues_a_link_that_waits(app: TestApp) -> None:
    await choose_calendar(app)
    issue_links(app, None)
    made = await subscribed(app)
    assert (await play(app, made["id"], "confirm")).json()["error"]["code"] == "INVALID_STATE"
    issued = await play(app, made["id"], "link_ready")
    assert issued.json()["binding_url_pending"] is False
    assert (await play(app, made["id"], "confirm")).json()["status"] == "active"


@pytest.mark.parametrize("ending", [Ending.UNKNOWN_DONE, Ending.UNKNOWN_NOT_DONE, Ending.UNAVAILABLE])
async def test_silent_bank_is_asked_again_under_the_same_operation(app: TestApp, ending: Ending) -> None:
    made = await subscribed(app)
    app.script.bind.append(Twist(ending=ending))
    payment = await open_link(app, made["id"])
    assert payment.qr_payload is None
    assert payment.opening is (Opening.ASKING if ending is Ending.UNAVAILABLE else Opening.UNKNOWN)
    await app.work(15)
    again = await open_link(app, made["id"])
    assert again.id == payment.id
    assert again.qr_payload is not None
    assert (await play(app, made["id"], "confirm")).json()["status"] == "active"


async def test_a_bank_that_refuses_leaves_nothing_behind_and_may_be_asked_anew(app: TestApp) -> None:
    made = await subscribed(app)
    app.script.bind.append(Twist(ending=Ending.REFUSED))
    await open_binding(app.ports, made["id"])
    assert await bindings(app, made["id"]) == []
    assert (await open_link(app, made["id"])).qr_payload is not None


async def test_a_calendar_bank_that_refuses_for_certain_gives_no_link(app: TestApp) -> None:
    """Null and false: no link will come (docs/subscriptions.md "How the payer binds")."""
    await choose_calendar(app)
    app.script.bind.append(Twist(ending=Ending.REFUSED))
    made = (await subscribe(app)).json()
    assert (made["status"], made["binding_url"], made["binding_url_pending"]) == ("cancelled", None, False)


@pytest.mark.parametrize(("amount", "reason"), [("404.01", "insufficient_funds"), ("404.02", "declined_by_bank")])
async def test_amounts_that_action_fail_the_binding(app: TestApp, amount: str, reason: str) -> None:
    """The bank's side is played (docs/sandbox.md "The calls")."""
    made = await subscribed(app, amount_rub=amount)
    payment = await open_link(app, made["id"])
    await app.work(5)
    [event] = await app.events(payment.id)
    assert (event["status"], event["failure_reason"]) == ("failed", reason)


async def test_404_04_is_an_unknown_outcome_and_comes_out_right(app: TestApp) -> None:
    made = await subscribed(app, amount_rub="404.04")
    await open_link(app, made["id"])
    await app.work(15)
    assert (await play(app, made["id"], "confirm")).json()["status"] == "active"


async def test_the_payment_s_own_simulation_plays_its_payer(app: TestApp) -> None:
    """It can be played (docs/sandbox.md "The calls"), also for a QR that has lapsed."""
    made = await subscribed(app)
    payment = await open_link(app, made["id"])
    await app.work(HOUR)
    assert (await app.simulate(payment.id, outcome="processing")).json()["error"]["code"] == "INVALID_STATUS"
    assert (await app.simulate(payment.id, outcome="paid")).json()["status"] == "paid"
    assert (await shown(app, made["id"]))["status"] == "active"


async def test_the_first_charge_is_refundable_by_the_same_api(app: TestApp) -> None:
    """A binding's payment can be refunded, too (docs/refunds.md "Asking for one")."""
    await set_settings(app.ports, app.account.account_id, {"refunds": "true"})
    made = await bound(app)
    [payment] = await bindings(app, made["id"])
    answer = await app.http.post(
        "/api/v1/refunds", json={"payment_id": payment.id}, headers=app.headers(Idempotency_Key=str(uuid4()))
    )
    assert answer.status_code == 201
    await app.work(60)
    assert (await bindings(app, made["id"]))[0].status == "refunded"
    assert (await shown(app, made["id"]))["status"] == "active"


async def test_a_bank_that_is_away_keeps_no_binding_pending_and_is_asked_later(app: TestApp) -> None:
    """A late success is still possible: we find a binding that the bank made without our knowing."""
    made = await subscribed(app)
    app.script.bind.extend([Twist(ending=Ending.UNKNOWN_DONE)] * 9)
    app.script.find_binding.append(Twist(ending=Ending.UNAVAILABLE))
    payment = await open_link(app, made["id"])
    op = await operation(app, made["id"])
    await app.work(15 * 60 + 120)
    assert (await bindings(app, made["id"]))[0].status == "expired"
    await simulate(app, op, E.CONFIRM, silent=True)
    await app.work(HOUR)
    assert await statuses(app, payment.id) == [("pending", "expired"), ("expired", "paid")]
    assert (await shown(app, made["id"]))["status"] == "active"


async def test_a_refused_bank_leads_to_the_next_and_an_unknown_outcome_does_not() -> None:
    async with open_test_app(further_banks=[FurtherBank(name="second-test")]) as app:
        made = await subscribed(app)
        app.script.bind.append(Twist(ending=Ending.REFUSED))
        payment = await open_link(app, made["id"])
        assert (payment.bank, payment.opening) == ("second-test", Opening.OPEN)
        other = await subscribed(app)
        app.script.bind.append(Twist(ending=Ending.UNKNOWN_NOT_DONE))
        assert (await open_link(app, other["id"])).bank == "simulator-test"
        await app.work(15)
        [payment] = await bindings(app, other["id"])
        assert (payment.bank, payment.opening) == ("simulator-test", Opening.OPEN)
        assert (await play(app, other["id"], "confirm")).json()["status"] == "active"
