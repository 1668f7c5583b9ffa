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
from cambist.core.usecases.notices import on_notice
from cambist.core.usecases.payments.opening import WATCH, take_back
from cambist.core.usecases.payments.progress import look
from cambist.core.usecases.sandbox.sandbox import simulate_payment
from cambist.ports.bank import InvoiceStatus, Notice
from cambist.ports.bank_simulator import Pretence
from cambist.ports.jobs import Job
from tests.houses import TestHouse
from tests.planting import beneath

NO = Twist(ending=Ending.REFUSED)
AWAY = Twist(ending=Ending.UNAVAILABLE)
LOST_DONE = Twist(ending=Ending.UNKNOWN_DONE)
LOST_NOT_DONE = Twist(ending=Ending.UNKNOWN_NOT_DONE)


async def stored(house: TestHouse, payment_id: str) -> Payment:
    async with house.ports.storage.unit() as unit:
        payment = await unit[Payment].get(payment_id)
    assert payment is not None
    return payment


async def only_payment(house: TestHouse) -> dict[str, Any]:
    page = (await house.get("/payments")).json()
    assert page["pagination"]["total"] == 1
    found: dict[str, Any] = page["data"][0]
    return found


async def suspense(house: TestHouse) -> list[Suspense]:
    async with house.ports.storage.unit() as unit:
        return await unit[Suspense].find()


async def jobs(house: TestHouse) -> list[Job]:
    async with house.ports.storage.unit() as unit:
        return await unit[Job].find()


async def status_of(house: TestHouse, payment_id: str) -> str:
    status: str = (await house.get(f"/payments/{payment_id}")).json()["status"]
    return status


async def test_a_new_payment_has_every_field_of_the_spec(house: TestHouse) -> None:
    payment = await house.created({"external_id": "order-1", "metadata": {"a": [1, {"b": None}]}})
    now = house.clock.now()
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
        "shop_id": house.account.default_shop_id,
        "created_at": now.strftime("%Y-%m-%dT%H:%M:%S.000Z"),
        "paid_at": None,
        "settled_at": None,
        "sandbox": True,
    }
    assert (await house.get(f"/payments/{payment['id']}")).json() == payment
    assert await house.events(payment["id"]) == []


async def test_ttl_minutes_sets_the_deadline_where_the_bank_lets_us(house: TestHouse) -> None:
    payment = await house.created({"ttl_minutes": 60})
    assert payment["expires_at"] == (house.clock.now() + timedelta(minutes=60)).strftime("%Y-%m-%dT%H:%M:%S.000Z")


async def test_reserved_metadata_keys_are_dropped_and_personal_data_is_sealed(house: TestHouse) -> None:
    person = {"full_name": "Canary Name", "document_number": "CANARY123"}
    payment = await house.created(
        {
            "metadata": {"mine": 1, "provider_data": 2, "payerContactMasked": "x", "charge_recovery": 1},
            "payer": person,
            "client_phone": "+79001234567",
            "client_email": "canary@example.com",
            "client_info": {"ip": "203.0.113.9"},
        }
    )
    assert payment["metadata"] == {"mine": 1}
    record = await stored(house, payment["id"])
    for text in ("Canary", "CANARY", "79001234567", "canary@", "203.0.113.9"):
        assert text not in repr(record)
        assert text not in str(payment)
    assert record.private is not None


async def test_paid_says_who_when_and_how_much_and_sends_one_signed_event(house: TestHouse) -> None:
    payment = await house.created({"external_id": "o", "metadata": {"k": "v"}})
    await house.clock.advance(30)
    after = (await house.simulate(payment["id"], outcome="paid", payer_name="Ivan I.")).json()
    assert (after["status"], after["actual_amount_rub"], after["payer_name"]) == ("paid", "100.00", "Ivan I.")
    assert after["paid_at"] is not None
    await house.work()
    assert house.postman.bodies == [
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
            "shop_id": house.account.default_shop_id,
            "shop_name": "Default",
        }
    ]
    house.check_signatures()


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
async def test_the_simulated_bank_reports_what_it_is_told(
    house: TestHouse, body: dict[str, Any], status: str, fields: dict[str, Any]
) -> None:
    payment = await house.created()
    response = await house.simulate(payment["id"], **body)
    assert (response.status_code, response.json()["status"]) == (200, status)
    assert {name: response.json().get(name) for name in fields} == fields
    [event] = await house.events(payment["id"])
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
async def test_a_simulation_that_no_bank_could_report_is_refused(house: TestHouse, body: dict[str, Any]) -> None:
    payment = await house.created()
    response = await house.simulate(payment["id"], **body)
    assert (response.status_code, response.json()["error"]["code"]) == (400, "VALIDATION_ERROR")
    assert await status_of(house, payment["id"]) == "pending"


async def test_processing_then_paid_names_the_previous_status(house: TestHouse) -> None:
    payment = await house.created()
    await house.simulate(payment["id"], outcome="processing")
    await house.simulate(payment["id"], outcome="paid")
    events = await house.events(payment["id"])
    assert [(event["previous_status"], event["status"]) for event in events] == [
        ("pending", "processing"),
        ("processing", "paid"),
    ]


async def test_it_expires_at_expires_at_and_not_before(house: TestHouse) -> None:
    payment = await house.created()
    await house.work(15 * 60 - 1)
    assert await status_of(house, payment["id"]) == "pending"
    await house.work(1)
    assert await status_of(house, payment["id"]) == "expired"
    [event] = await house.events(payment["id"])
    assert (event["status"], event["previous_status"], event["actual_amount_rub"]) == ("expired", "pending", None)


async def test_paid_at_the_last_moment_without_a_notice_is_paid_not_expired(house: TestHouse) -> None:
    payment = await house.created()
    await house.work(15 * 60 - 1)
    await simulate_payment(
        house.ports, await stored(house, payment["id"]), Pretence(status=InvoiceStatus.PAID, silent=True)
    )
    assert await status_of(house, payment["id"]) == "pending"
    await house.work(1)
    assert await status_of(house, payment["id"]) == "paid"


async def test_it_expires_also_while_the_bank_is_away(house: TestHouse) -> None:
    payment = await house.created()
    house.script.state.extend([AWAY, NO, AWAY])
    await house.work(15 * 60)
    assert await status_of(house, payment["id"]) == "expired"
    [watch] = [job for job in await jobs(house) if job.kind == "payment.watch"]
    assert watch.due == house.clock.now() + timedelta(minutes=15), "for late money"


async def test_a_late_payment_lifts_expired_within_6_hours_of_creation(house: TestHouse) -> None:
    payment = await house.created()
    await house.work(6 * 3600 - 1)
    after = (await house.simulate(payment["id"], outcome="paid")).json()
    assert (after["status"], len(await house.events(payment["id"]))) == ("paid", 2)


async def test_a_late_payment_whose_notice_was_lost_is_found(house: TestHouse) -> None:
    payment = await house.created()
    await house.work(3 * 3600)
    await simulate_payment(
        house.ports, await stored(house, payment["id"]), Pretence(status=InvoiceStatus.PAID, silent=True)
    )
    await house.work(3 * 3600)
    assert await status_of(house, payment["id"]) == "paid"


async def test_later_than_6_hours_the_money_goes_to_suspense_once(house: TestHouse) -> None:
    payment = await house.created()
    await house.work(6 * 3600 + 1)
    for _ in range(3):
        assert (await house.simulate(payment["id"], outcome="paid")).json()["status"] == "expired"
        before = await stored(house, payment["id"])
        await look(house.ports, before)
        assert await stored(house, payment["id"]) == before, "what is heard again writes nothing"
    [money] = await suspense(house)
    assert (money.payment_id, str(money.amount), money.reason) == (payment["id"], "100.00", "too_late")


@pytest.mark.parametrize("begun", [False, True])
async def test_a_payment_that_nobody_looked_at_until_its_money_came_too_late_expires(
    house: TestHouse, *, begun: bool
) -> None:
    """No worker lived for so long. The money is suspense, once, and in the end nobody asks any more."""
    payment = await house.created()
    if begun:
        await house.simulate(payment["id"], outcome="processing")
    await house.clock.advance(6 * 3600 + 1)
    assert (await house.simulate(payment["id"], outcome="paid")).json()["status"] == "expired"
    await house.work(8 * 3600)
    assert await status_of(house, payment["id"]) == "expired"
    assert [event["status"] for event in await house.events(payment["id"])][-1] == "expired"
    assert [money.reason for money in await suspense(house)] == ["too_late"]
    assert not [job for job in await jobs(house) if job.kind == "payment.watch"]


async def test_a_second_transfer_for_one_qr_goes_to_suspense(house: TestHouse) -> None:
    payment = await house.created()
    await house.simulate(payment["id"], outcome="paid")
    again = Pretence(status=InvoiceStatus.PAID, again=True, amount_kopecks=70_00, doubled=True)
    await simulate_payment(house.ports, await stored(house, payment["id"]), again)
    [money] = await suspense(house)
    assert (str(money.amount), money.reason) == ("70.00", "second_transfer")
    assert (await status_of(house, payment["id"]), len(await house.events(payment["id"]))) == ("paid", 1)


@pytest.mark.parametrize("end", ["failed", "cancelled"])
async def test_money_after_a_final_state_goes_to_suspense(house: TestHouse, end: str) -> None:
    payment = await house.created()
    await house.simulate(payment["id"], outcome=end)
    await house.simulate(payment["id"], outcome="paid")
    [money] = await suspense(house)
    assert (money.reason, await status_of(house, payment["id"])) == (f"after_{end}", end)


async def test_a_notice_that_comes_twice_moves_once(house: TestHouse) -> None:
    payment = await house.created()
    twice = Pretence(status=InvoiceStatus.PAID, doubled=True)
    await simulate_payment(house.ports, await stored(house, payment["id"]), twice)
    await on_notice(house.ports, Notice(operation=payment["id"]))
    assert len(await house.events(payment["id"])) == 1


async def test_a_notice_about_nothing_of_ours_is_nothing(house: TestHouse) -> None:
    assert await on_notice(house.ports, Notice(operation="pay_00000000-0000-0000-0000-000000000000")) is None


EXACT = [
    ("404.01", "failed", "insufficient_funds"),
    ("404.02", "failed", "declined_by_bank"),
    ("404.03", "amount_mismatch", None),
]


@pytest.mark.parametrize(("amount", "status", "reason"), EXACT)
async def test_exact_amounts_act_without_a_call(house: TestHouse, amount: str, status: str, reason: str | None) -> None:
    payment = await house.created({"amount_rub": amount})
    await house.work(2)
    after = (await house.get(f"/payments/{payment['id']}")).json()
    assert (after["status"], after.get("failure_reason")) == (status, reason)


async def test_404_04_is_an_unknown_outcome_that_its_key_keeps_and_the_background_resolves(house: TestHouse) -> None:
    key = str(uuid4())
    answers = [await house.create({"amount_rub": "404.04"}, key=key) for _ in range(3)]
    assert {(each.status_code, each.json()["error"]["code"]) for each in answers} == {(502, "PROVIDER_ERROR")}
    await house.work(10)
    found = await only_payment(house)
    assert (found["status"], (await stored(house, found["id"])).bank_reference is None) == ("pending", False)
    again = await house.create({"amount_rub": "404.04"}, key=key)
    assert (again.status_code, again.json()) == (502, answers[0].json())
    assert again.json()["error"]["details"] == {"payment_id": found["id"]}
    await house.simulate(found["id"], outcome="paid")
    assert (await only_payment(house))["status"] == "paid"


async def test_an_unknown_outcome_that_the_bank_never_saw_ends_failed_after_two_looks(house: TestHouse) -> None:
    house.script.create.append(LOST_NOT_DONE)
    assert (await house.create()).status_code == 502
    await house.work(10)
    assert (await only_payment(house))["status"] == "pending"
    await house.work(10)
    payment = await only_payment(house)
    assert (payment["status"], payment["failure_reason"]) == ("failed", "unknown")
    [event] = await house.events(payment["id"])
    assert (event["status"], event["failure_reason"]) == ("failed", "unknown")


async def test_an_unknown_outcome_is_asked_for_on_the_ladder_and_then_left_to_the_operator(house: TestHouse) -> None:
    house.script.create.append(LOST_DONE)
    house.script.find = deque([AWAY] * 50)
    await house.create()
    start, looked = house.clock.now(), []
    before = len(house.script.find)
    for _ in range(9 * 60):
        await house.work(60)
        if len(house.script.find) < before:
            looked.append((house.clock.now() - start).total_seconds() // 60)
            before = len(house.script.find)
    assert 50 - before == 7
    assert looked[-1] >= 7 * 60
    payment = await only_payment(house)
    assert (payment["status"], [job for job in await jobs(house) if job.kind == "payment.watch"]) == ("expired", [])


async def test_an_unknown_outcome_that_a_notice_ends_expires_in_time(house: TestHouse) -> None:
    """The ladder would have asked an hour later."""
    house.script.create.append(LOST_DONE)
    house.script.find = deque([AWAY] * 5)
    await house.create()
    await house.work(800)
    payment_id = (await only_payment(house))["id"]
    assert not house.script.find
    await on_notice(house.ports, Notice(operation=payment_id))
    assert (await stored(house, payment_id)).bank_reference is not None
    await house.work(15 * 60 - 800 - 1)
    assert await status_of(house, payment_id) == "pending"
    await house.work(1)
    assert await status_of(house, payment_id) == "expired"


@pytest.mark.parametrize("left", [0, 1])
async def test_a_creation_that_nobody_ended_is_taken_back_at_its_deadline(house: TestHouse, left: int) -> None:
    """Until then the bank is asked again. It was drawn up: so no bank knows of it."""
    payment = await stored(house, (await house.created())["id"])
    async with beneath(house.ports).unit() as unit:
        unit[Payment].save(msgspec.structs.replace(payment, opening=Opening.ASKING, bank_reference=None))
        await WATCH.hurry(unit, payment.id, payment.expires_at - timedelta(seconds=left))
        await unit.commit()
    await house.work(15 * 60 - left)
    assert (await house.get("/payments")).json()["pagination"]["total"] == left


async def test_what_was_opened_meanwhile_is_not_taken_back(house: TestHouse) -> None:
    payment = await stored(house, (await house.created())["id"])
    await take_back(house.ports, payment)
    assert await stored(house, payment.id) == payment


async def test_a_refusal_of_every_route_leaves_nothing_and_frees_the_key(house: TestHouse) -> None:
    key = str(uuid4())
    house.script.create.append(NO)
    refused = await house.create(key=key)
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "PAYMENT_ROUTE_UNAVAILABLE")
    assert (await house.get("/payments")).json()["data"] == []
    assert [job for job in await jobs(house) if job.kind == "payment.watch"] == []
    assert (await house.create(key=key)).status_code == 201


async def test_a_bank_that_is_away_is_503_with_retry_after_and_frees_the_key(house: TestHouse) -> None:
    key = str(uuid4())
    house.script.create.append(AWAY)
    away = await house.create(key=key)
    assert (away.status_code, away.json()["error"]["code"]) == (503, "PAYMENT_ROUTE_UNAVAILABLE")
    assert 30 <= int(away.headers["Retry-After"]) <= 60
    assert (await house.create(key=key)).status_code == 201


async def test_statuses_are_filtered_without_regard_to_case_and_newest_come_first(house: TestHouse) -> None:
    ids = []
    for _ in range(3):
        ids.append((await house.created())["id"])
        await house.clock.advance(1)
    await house.simulate(ids[1], outcome="paid")
    everything = (await house.get("/payments")).json()
    assert [payment["id"] for payment in everything["data"]] == ids[::-1]
    assert everything["pagination"] == {"page": 1, "per_page": 20, "total": 3, "total_pages": 1}
    paid = (await house.get("/payments?status=PAID")).json()
    assert [payment["id"] for payment in paid["data"]] == [ids[1]]
    second = (await house.get("/payments?per_page=2&page=2")).json()
    assert [payment["id"] for payment in second["data"]] == ids[:1]
    assert second["pagination"] == {"page": 2, "per_page": 2, "total": 3, "total_pages": 2}
    beyond = (await house.get("/payments?page=250000&per_page=100")).json()
    assert (beyond["data"], beyond["pagination"]["total"]) == ([], 3)


async def test_the_other_mode_and_another_account_see_nothing(house: TestHouse) -> None:
    payment = await house.created()
    hidden = await house.get(f"/payments/{payment['id']}", mode="live")
    assert (hidden.status_code, hidden.json()["error"]["code"]) == (404, "PAYMENT_NOT_FOUND")
    assert (await house.get("/payments", mode="live")).json()["data"] == []


async def test_every_status_is_reachable_or_belongs_to_a_later_room() -> None:
    reached = {status for _, status, _ in SIMULATED} | {"pending"}
    later = {"settled", "refunded"}
    assert reached | later == set(PaymentStatus)
