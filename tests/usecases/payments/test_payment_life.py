"""A payment's life from creation to its end, with a bank that does everything a bank can do
(docs/payments.md "How it ends")."""

from collections import deque
from datetime import timedelta
from typing import Any
from uuid import uuid4

import msgspec
import pytest

from cambist.adapters.script import Ending, Twist
from cambist.core.domain.payments.payments import Opening, Payment, PaymentStatus
from cambist.core.domain.payments.suspense import Suspense
from cambist.core.usecases.notifications import on_notification
from cambist.core.usecases.payments.opening import WATCH, take_back
from cambist.core.usecases.payments.progress import look
from cambist.core.usecases.sandbox.sandbox import simulate_payment
from cambist.ports.bank import InvoiceStatus, Notification
from cambist.ports.bank_simulator import Simulation
from cambist.ports.jobs import Job
from tests.apps import TestApp
from tests.planting import beneath

NO = Twist(ending=Ending.REFUSED)
AWAY = Twist(ending=Ending.UNAVAILABLE)
LOST_DONE = Twist(ending=Ending.UNKNOWN_DONE)
LOST_NOT_DONE = Twist(ending=Ending.UNKNOWN_NOT_DONE)


async def stored(app: TestApp, payment_id: str) -> Payment:
    async with app.ports.storage.unit() as unit:
        payment = await unit[Payment].get(payment_id)
    assert payment is not None
    return payment


async def only_payment(app: TestApp) -> dict[str, Any]:
    page = (await app.get("/payments")).json()
    assert page["pagination"]["total"] == 1
    found: dict[str, Any] = page["data"][0]
    return found


async def suspense(app: TestApp) -> list[Suspense]:
    async with app.ports.storage.unit() as unit:
        return await unit[Suspense].find()


async def jobs(app: TestApp) -> list[Job]:
    async with app.ports.storage.unit() as unit:
        return await unit[Job].find()


async def status_of(app: TestApp, payment_id: str) -> str:
    status: str = (await app.get(f"/payments/{payment_id}")).json()["status"]
    return status


async def test_a_new_payment_has_every_field_of_the_spec(app: TestApp) -> None:
    payment = await app.created({"external_id": "order-1", "metadata": {"a": [1, {"b": None}]}})
    now = app.clock.now()
    assert payment == {
        "id": payment["id"],
        "status": "pending",
        "amount_rub": "100.00",
        "actual_amount_rub": None,
        "amount_usdt": None,
        "external_id": "order-1",
        "payment_method": "sbp",
        "payment_url": f"https://pay.example/p/{payment['id']}",
        "expires_at": (now + timedelta(minutes=15)).strftime("%Y-%m-%dT%H:%M:%S.000Z"),
        "refund_pending": False,
        "metadata": {"a": [1, {"b": None}]},
        "shop_id": app.account.default_shop_id,
        "created_at": now.strftime("%Y-%m-%dT%H:%M:%S.000Z"),
        "paid_at": None,
        "settled_at": None,
        "sandbox": True,
    }
    assert (await app.get(f"/payments/{payment['id']}")).json() == payment
    assert await app.events(payment["id"]) == []


async def test_ttl_minutes_sets_the_deadline_where_the_bank_lets_us(app: TestApp) -> None:
    payment = await app.created({"ttl_minutes": 60})
    assert payment["expires_at"] == (app.clock.now() + timedelta(minutes=60)).strftime("%Y-%m-%dT%H:%M:%S.000Z")


async def test_reserved_metadata_is_dropped_and_personal_data_encrypted(app: TestApp) -> None:
    person = {"full_name": "Canary Name", "document_number": "CANARY123"}
    payment = await app.created(
        {
            "metadata": {"mine": 1, "provider_data": 2, "payerContactMasked": "x", "charge_recovery": 1},
            "payer": person,
            "client_phone": "+79001234567",
            "client_email": "canary@example.com",
            "client_info": {"ip": "203.0.113.9"},
        }
    )
    assert payment["metadata"] == {"mine": 1}
    record = await stored(app, payment["id"])
    for text in ("Canary", "CANARY", "79001234567", "canary@", "203.0.113.9"):
        assert text not in repr(record)
        assert text not in str(payment)
    assert record.private is not None


async def test_paid_says_who_when_and_how_much_and_sends_one_signed_event(app: TestApp) -> None:
    payment = await app.created({"external_id": "o", "metadata": {"k": "v"}})
    await app.clock.advance(30)
    after = (await app.simulate(payment["id"], outcome="paid", payer_name="Ivan I.")).json()
    assert (after["status"], after["actual_amount_rub"], after["payer_name"]) == ("paid", "100.00", "Ivan I.")
    assert after["paid_at"] is not None
    await app.work()
    assert app.postman.bodies == [
        {
            "event": "payment.status_changed",
            "payment_id": payment["id"],
            "external_id": "o",
            "status": "paid",
            "previous_status": "pending",
            "amount_rub": "100.00",
            "actual_amount_rub": "100.00",
            "amount_usdt": None,
            "payment_method": "sbp",
            "refund_pending": False,
            "timestamp": after["paid_at"],
            "metadata": {"k": "v"},
            "payer_name": "Ivan I.",
            "sandbox": True,
            "shop_id": app.account.default_shop_id,
            "shop_name": "Default",
        }
    ]
    app.check_signatures()


SIMULATED: list[tuple[dict[str, Any], str, dict[str, Any]]] = [
    ({"outcome": "processing"}, "processing", {"actual_amount_rub": None}),
    ({"outcome": "paid"}, "paid", {"actual_amount_rub": "100.00"}),
    ({"outcome": "failed"}, "failed", {"failure_reason": "declined_by_bank", "actual_amount_rub": None}),
    ({"outcome": "failed", "failure_reason": "insufficient_funds"}, "failed", {"failure_reason": "insufficient_funds"}),
    ({"outcome": "cancelled"}, "cancelled", {"actual_amount_rub": None}),
    ({"outcome": "expired"}, "expired", {"actual_amount_rub": None}),
    ({"outcome": "amount_mismatch"}, "amount_mismatch", {"actual_amount_rub": "99.99"}),
    ({"outcome": "amount_mismatch", "actual_amount_rub": "250.00"}, "amount_mismatch", {"actual_amount_rub": "250.00"}),
    ({"outcome": "paid", "actual_amount_rub": "10.00"}, "amount_mismatch", {"actual_amount_rub": "10.00"}),
]


@pytest.mark.parametrize(("body", "status", "fields"), SIMULATED)
async def test_simulated_bank_reports_the_simulated_outcome(
    app: TestApp, body: dict[str, Any], status: str, fields: dict[str, Any]
) -> None:
    payment = await app.created()
    response = await app.simulate(payment["id"], **body)
    assert (response.status_code, response.json()["status"]) == (200, status)
    assert {name: response.json().get(name) for name in fields} == fields
    [event] = await app.events(payment["id"])
    assert (event["status"], event["previous_status"]) == (status, "pending")


BAD_SIMULATIONS: list[dict[str, Any]] = [
    {},
    {"outcome": "settled"},
    {"outcome": 1},
    {"outcome": "paid", "actual_amount_rub": "0"},
    {"outcome": "paid", "actual_amount_rub": "1e3"},
    {"outcome": "failed", "failure_reason": "boredom"},
    {"outcome": "amount_mismatch", "actual_amount_rub": "100.00"},
    {"outcome": "paid", "other": 1},
]


@pytest.mark.parametrize("body", BAD_SIMULATIONS)
async def test_a_simulation_that_no_bank_could_report_is_refused(app: TestApp, body: dict[str, Any]) -> None:
    payment = await app.created()
    response = await app.simulate(payment["id"], **body)
    assert (response.status_code, response.json()["error"]["code"]) == (400, "VALIDATION_ERROR")
    assert await status_of(app, payment["id"]) == "pending"


async def test_processing_then_paid_names_the_previous_status(app: TestApp) -> None:
    payment = await app.created()
    await app.simulate(payment["id"], outcome="processing")
    await app.simulate(payment["id"], outcome="paid")
    events = await app.events(payment["id"])
    assert [(event["previous_status"], event["status"]) for event in events] == [
        ("pending", "processing"),
        ("processing", "paid"),
    ]


async def test_payment_expires_at_expires_at_and_not_before(app: TestApp) -> None:
    payment = await app.created()
    await app.work(15 * 60 - 1)
    assert await status_of(app, payment["id"]) == "pending"
    await app.work(1)
    assert await status_of(app, payment["id"]) == "expired"
    [event] = await app.events(payment["id"])
    assert (event["status"], event["previous_status"], event["actual_amount_rub"]) == ("expired", "pending", None)


async def test_payment_paid_silently_at_the_last_moment_does_not_expire(app: TestApp) -> None:
    payment = await app.created()
    await app.work(15 * 60 - 1)
    await simulate_payment(
        app.ports, await stored(app, payment["id"]), Simulation(status=InvoiceStatus.PAID, silent=True)
    )
    assert await status_of(app, payment["id"]) == "pending"
    await app.work(1)
    assert await status_of(app, payment["id"]) == "paid"


async def test_payment_expires_also_while_the_bank_is_away(app: TestApp) -> None:
    payment = await app.created()
    app.script.state.extend([AWAY, NO, AWAY])
    await app.work(15 * 60)
    assert await status_of(app, payment["id"]) == "expired"
    [watch] = [job for job in await jobs(app) if job.kind == "payment.watch"]
    assert watch.due == app.clock.now() + timedelta(minutes=15), "for late money"


async def test_a_late_payment_lifts_expired_within_6_hours_of_creation(app: TestApp) -> None:
    payment = await app.created()
    await app.work(6 * 3600 - 1)
    after = (await app.simulate(payment["id"], outcome="paid")).json()
    assert (after["status"], len(await app.events(payment["id"]))) == ("paid", 2)


async def test_a_late_payment_whose_notification_was_lost_is_found(app: TestApp) -> None:
    payment = await app.created()
    await app.work(3 * 3600)
    await simulate_payment(
        app.ports, await stored(app, payment["id"]), Simulation(status=InvoiceStatus.PAID, silent=True)
    )
    await app.work(3 * 3600)
    assert await status_of(app, payment["id"]) == "paid"


async def test_later_than_6_hours_the_money_goes_to_suspense_once(app: TestApp) -> None:
    payment = await app.created()
    await app.work(6 * 3600 + 1)
    for _ in range(3):
        assert (await app.simulate(payment["id"], outcome="paid")).json()["status"] == "expired"
        before = await stored(app, payment["id"])
        await look(app.ports, before)
        assert await stored(app, payment["id"]) == before, "what is heard again writes nothing"
    [money] = await suspense(app)
    assert (money.payment_id, str(money.amount), money.reason) == (payment["id"], "100.00", "too_late")


@pytest.mark.parametrize("begun", [False, True])
async def test_unpolled_payment_whose_money_came_too_late_expires(app: TestApp, *, begun: bool) -> None:
    """No worker lived for so long. The money is suspense, once, and in the end nobody asks any more."""
    payment = await app.created()
    if begun:
        await app.simulate(payment["id"], outcome="processing")
    await app.clock.advance(6 * 3600 + 1)
    assert (await app.simulate(payment["id"], outcome="paid")).json()["status"] == "expired"
    await app.work(8 * 3600)
    assert await status_of(app, payment["id"]) == "expired"
    assert [event["status"] for event in await app.events(payment["id"])][-1] == "expired"
    assert [money.reason for money in await suspense(app)] == ["too_late"]
    assert not [job for job in await jobs(app) if job.kind == "payment.watch"]


async def test_a_second_transfer_for_one_qr_goes_to_suspense(app: TestApp) -> None:
    payment = await app.created()
    await app.simulate(payment["id"], outcome="paid")
    again = Simulation(status=InvoiceStatus.PAID, again=True, amount_kopecks=70_00, doubled=True)
    await simulate_payment(app.ports, await stored(app, payment["id"]), again)
    [money] = await suspense(app)
    assert (str(money.amount), money.reason) == ("70.00", "second_transfer")
    assert (await status_of(app, payment["id"]), len(await app.events(payment["id"]))) == ("paid", 1)


@pytest.mark.parametrize("end", ["failed", "cancelled"])
async def test_money_after_a_final_state_goes_to_suspense(app: TestApp, end: str) -> None:
    payment = await app.created()
    await app.simulate(payment["id"], outcome=end)
    await app.simulate(payment["id"], outcome="paid")
    [money] = await suspense(app)
    assert (money.reason, await status_of(app, payment["id"])) == (f"after_{end}", end)


async def test_a_notification_that_comes_twice_moves_once(app: TestApp) -> None:
    payment = await app.created()
    twice = Simulation(status=InvoiceStatus.PAID, doubled=True)
    await simulate_payment(app.ports, await stored(app, payment["id"]), twice)
    await on_notification(app.ports, Notification(operation=payment["id"]))
    assert len(await app.events(payment["id"])) == 1


async def test_a_notification_about_nothing_of_ours_is_nothing(app: TestApp) -> None:
    assert await on_notification(app.ports, Notification(operation="pay_00000000-0000-0000-0000-000000000000")) is None


EXACT = [
    ("404.01", "failed", "insufficient_funds"),
    ("404.02", "failed", "declined_by_bank"),
    ("404.03", "amount_mismatch", None),
]


@pytest.mark.parametrize(("amount", "status", "reason"), EXACT)
async def test_exact_amounts_action_without_a_call(app: TestApp, amount: str, status: str, reason: str | None) -> None:
    payment = await app.created({"amount_rub": amount})
    await app.work(2)
    after = (await app.get(f"/payments/{payment['id']}")).json()
    assert (after["status"], after.get("failure_reason")) == (status, reason)


async def test_404_04_is_an_unknown_outcome_that_the_background_resolves(app: TestApp) -> None:
    key = str(uuid4())
    answers = [await app.create({"amount_rub": "404.04"}, key=key) for _ in range(3)]
    assert {(each.status_code, each.json()["error"]["code"]) for each in answers} == {(502, "PROVIDER_ERROR")}
    await app.work(10)
    found = await only_payment(app)
    assert (found["status"], (await stored(app, found["id"])).bank_reference is None) == ("pending", False)
    again = await app.create({"amount_rub": "404.04"}, key=key)
    assert (again.status_code, again.json()) == (502, answers[0].json())
    assert again.json()["error"]["details"] == {"payment_id": found["id"]}
    await app.simulate(found["id"], outcome="paid")
    assert (await only_payment(app))["status"] == "paid"


async def test_unknown_outcome_that_the_bank_never_saw_fails_after_two_polls(app: TestApp) -> None:
    app.script.create.append(LOST_NOT_DONE)
    assert (await app.create()).status_code == 502
    await app.work(10)
    assert (await only_payment(app))["status"] == "pending"
    await app.work(10)
    payment = await only_payment(app)
    assert (payment["status"], payment["failure_reason"]) == ("failed", "unknown")
    [event] = await app.events(payment["id"])
    assert (event["status"], event["failure_reason"]) == ("failed", "unknown")


async def test_unknown_outcome_is_polled_by_the_backoff_then_left_alone(app: TestApp) -> None:
    app.script.create.append(LOST_DONE)
    app.script.find = deque([AWAY] * 50)
    await app.create()
    start, looked = app.clock.now(), []
    before = len(app.script.find)
    for _ in range(9 * 60):
        await app.work(60)
        if len(app.script.find) < before:
            looked.append((app.clock.now() - start).total_seconds() // 60)
            before = len(app.script.find)
    assert 50 - before == 7
    assert looked[-1] >= 7 * 60
    payment = await only_payment(app)
    assert (payment["status"], [job for job in await jobs(app) if job.kind == "payment.watch"]) == ("expired", [])


async def test_an_unknown_outcome_that_a_notification_ends_expires_in_time(app: TestApp) -> None:
    """The backoff would have polled an hour later."""
    app.script.create.append(LOST_DONE)
    app.script.find = deque([AWAY] * 5)
    await app.create()
    await app.work(800)
    payment_id = (await only_payment(app))["id"]
    assert not app.script.find
    await on_notification(app.ports, Notification(operation=payment_id))
    assert (await stored(app, payment_id)).bank_reference is not None
    await app.work(15 * 60 - 800 - 1)
    assert await status_of(app, payment_id) == "pending"
    await app.work(1)
    assert await status_of(app, payment_id) == "expired"


@pytest.mark.parametrize("left", [0, 1])
async def test_a_creation_that_nobody_ended_is_taken_back_at_its_deadline(app: TestApp, left: int) -> None:
    """Until then the bank is polled. The invoice was created locally, so no bank knows of it."""
    payment = await stored(app, (await app.created())["id"])
    async with beneath(app.ports).unit() as unit:
        unit[Payment].save(msgspec.structs.replace(payment, opening=Opening.ASKING, bank_reference=None))
        await WATCH.hurry(unit, payment.id, payment.expires_at - timedelta(seconds=left))
        await unit.commit()
    await app.work(15 * 60 - left)
    assert (await app.get("/payments")).json()["pagination"]["total"] == left


async def test_payment_opened_meanwhile_is_not_withdrawn(app: TestApp) -> None:
    payment = await stored(app, (await app.created())["id"])
    await take_back(app.ports, payment)
    assert await stored(app, payment.id) == payment


async def test_a_refusal_of_every_route_leaves_nothing_and_frees_the_key(app: TestApp) -> None:
    key = str(uuid4())
    app.script.create.append(NO)
    refused = await app.create(key=key)
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "PAYMENT_ROUTE_UNAVAILABLE")
    assert (await app.get("/payments")).json()["data"] == []
    assert [job for job in await jobs(app) if job.kind == "payment.watch"] == []
    assert (await app.create(key=key)).status_code == 201


async def test_a_bank_that_is_away_is_503_with_retry_after_and_frees_the_key(app: TestApp) -> None:
    key = str(uuid4())
    app.script.create.append(AWAY)
    away = await app.create(key=key)
    assert (away.status_code, away.json()["error"]["code"]) == (503, "PAYMENT_ROUTE_UNAVAILABLE")
    assert 30 <= int(away.headers["Retry-After"]) <= 60
    assert (await app.create(key=key)).status_code == 201


async def test_status_filter_ignores_case_and_newest_come_first(app: TestApp) -> None:
    ids = []
    for _ in range(3):
        ids.append((await app.created())["id"])
        await app.clock.advance(1)
    await app.simulate(ids[1], outcome="paid")
    everything = (await app.get("/payments")).json()
    assert [payment["id"] for payment in everything["data"]] == ids[::-1]
    assert everything["pagination"] == {"page": 1, "per_page": 20, "total": 3, "total_pages": 1}
    paid = (await app.get("/payments?status=PAID")).json()
    assert [payment["id"] for payment in paid["data"]] == [ids[1]]
    second = (await app.get("/payments?per_page=2&page=2")).json()
    assert [payment["id"] for payment in second["data"]] == ids[:1]
    assert second["pagination"] == {"page": 2, "per_page": 2, "total": 3, "total_pages": 2}
    beyond = (await app.get("/payments?page=250000&per_page=100")).json()
    assert (beyond["data"], beyond["pagination"]["total"]) == ([], 3)


async def test_the_other_mode_and_another_account_see_nothing(app: TestApp) -> None:
    payment = await app.created()
    hidden = await app.get(f"/payments/{payment['id']}", mode="live")
    assert (hidden.status_code, hidden.json()["error"]["code"]) == (404, "PAYMENT_NOT_FOUND")
    assert (await app.get("/payments", mode="live")).json()["data"] == []


async def test_every_status_is_reachable_or_belongs_to_a_later_room() -> None:
    reached = {status for _, status, _ in SIMULATED} | {"pending"}
    later = {"settled", "refunded"}
    assert reached | later == set(PaymentStatus)
