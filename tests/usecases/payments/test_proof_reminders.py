"""Reminders of missing delivery proofs, by virtual time: their moments, their receivers, and that none is sent twice
(docs/payments.md "Delivery proofs")."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from cambist.core.domain.payloads import ProofReminderPayload
from cambist.core.domain.payments.payments import Payment, PaymentMove, PaymentStatus
from cambist.core.domain.webhooks.events import Event
from cambist.core.usecases.jobs import LEASE, run_due
from cambist.core.usecases.operators.review import resolve_mismatch
from cambist.core.usecases.payments.proof_reminders import REMIND, plan_reminders, remind
from cambist.core.usecases.sandbox.sandbox import simulate_payment
from cambist.ports.bank import InvoiceStatus
from cambist.ports.bank_simulator import Simulation
from tests.crash_points import CrashingStorage, CrashPoint, Killed
from tests.proof_kit import DAY, Exchange, exchange_terminal, open_exchange


@pytest.fixture
async def exchange() -> AsyncIterator[Exchange]:
    async with open_exchange() as opened:
        yield opened


def numbers(reminders: list[dict[str, Any]]) -> list[int]:
    return [reminder["reminder"] for reminder in reminders]


async def plan(exchange: Exchange, before: Payment, after: Payment) -> None:
    async with exchange.app.ports.storage.unit() as unit:
        await plan_reminders(exchange.app.ports, unit, PaymentMove(before, after, None, None))
        await unit.commit()


async def test_reminders_come_24_48_and_72_hours_after_payment_and_no_more(exchange: Exchange) -> None:
    payment_id = await exchange.paid()
    sent = []
    for hours in (23.9, 24, 47.9, 48, 71.9, 72, 500):
        await exchange.work_to_hour(payment_id, hours)
        sent.append(numbers(await exchange.reminders(payment_id)))
    assert sent == [[], [1], [1], [1, 2], [1, 2], [1, 2, 3], [1, 2, 3]]
    assert await exchange.jobs(REMIND.kind) == []


async def test_the_payload_is_the_documented_one_and_is_delivered_signed(exchange: Exchange) -> None:
    payment_id = await exchange.paid(external_id="order-7")
    paid_at = (await exchange.payment(payment_id)).paid_at
    assert paid_at is not None
    await exchange.work_to_hour(payment_id, 24)
    [body] = [body for body in exchange.app.postman.bodies if "reminder" in body]
    stamp = "%Y-%m-%dT%H:%M:%S.000Z"
    assert body == {
        "event": "payment.delivery_proof_reminder",
        "payment_id": payment_id,
        "external_id": "order-7",
        "paid_at": paid_at.strftime(stamp),
        "reminder": 1,
        "status": "waiting",
        "timestamp": (paid_at + timedelta(hours=24)).strftime(stamp),
        "shop_id": exchange.app.account.default_shop_id,
        "shop_name": "Default",
    }
    msgspec.json.decode(msgspec.json.encode(body), type=ProofReminderPayload)
    webhook = exchange.app.postman.webhooks[-1]
    assert webhook.headers["X-Webhook-Event"] == "payment.delivery_proof_reminder"
    exchange.app.check_signatures()


async def test_the_sequence_rises_over_all_events_of_the_payment(exchange: Exchange) -> None:
    payment_id = await exchange.paid()
    await exchange.work_to_hour(payment_id, 48)
    async with exchange.app.ports.storage.unit() as unit:
        events = await unit[Event].find(object_id=payment_id, order="created_at")
    assert [(event.type.rpartition(".")[2], event.sequence) for event in events] == [
        ("status_changed", 1),
        ("delivery_proof_reminder", 2),
        ("delivery_proof_reminder", 3),
    ]
    assert (await exchange.payment(payment_id)).sequence == 3


@pytest.mark.parametrize("settled", [False, True])
async def test_none_comes_after_a_hash_was_submitted(exchange: Exchange, settled: bool) -> None:
    payment_id = await exchange.paid()
    if settled:
        await exchange.settle(payment_id)
    await exchange.mined()
    await exchange.submit(payment_id)
    await exchange.work_to_hour(payment_id, 24)
    # A confirmed proof cannot become missing; a proof that waits for its settlement can still be rejected.
    assert len(await exchange.jobs(REMIND.kind)) == (0 if settled else 1)
    await exchange.work_to_hour(payment_id, 100)
    assert await exchange.reminders(payment_id) == []
    assert await exchange.jobs(REMIND.kind) == []


async def test_reminder_after_a_rejection_names_its_reason(exchange: Exchange) -> None:
    payment_id = await exchange.paid()
    await exchange.work_to_hour(payment_id, 25)
    await exchange.submit(payment_id)
    await exchange.work_to_hour(payment_id, 48)
    waiting, rejected = await exchange.reminders(payment_id)
    assert (waiting["status"], "reason" in waiting) == ("waiting", False)
    assert (rejected["reminder"], rejected["status"], rejected["reason"]) == (
        2,
        "rejected",
        "not_found_or_unconfirmed",
    )
    msgspec.json.decode(msgspec.json.encode(rejected), type=ProofReminderPayload)


async def test_switched_off_none_is_sent_and_what_counts_is_the_hour_of_sending(exchange: Exchange) -> None:
    payment_id = await exchange.paid()
    await exchange.set(proof_reminders="false")
    await exchange.work_to_hour(payment_id, 30)
    assert await exchange.reminders(payment_id) == []
    await exchange.set(proof_reminders="true")
    await exchange.work_to_hour(payment_id, 50)
    await exchange.set(proof_reminders="false")
    await exchange.work_to_hour(payment_id, 100)
    assert numbers(await exchange.reminders(payment_id)) == [2]


async def test_none_while_the_payment_is_refunded(exchange: Exchange) -> None:
    payment_id = await exchange.paid()
    await exchange.change(payment_id, status=PaymentStatus.REFUNDED)
    await exchange.work_to_hour(payment_id, 30)
    await exchange.change(payment_id, status=PaymentStatus.PAID)
    await exchange.work_to_hour(payment_id, 100)
    assert numbers(await exchange.reminders(payment_id)) == [2, 3]


async def test_only_the_last_missed_reminder_is_sent_after_a_standstill(exchange: Exchange) -> None:
    payment_id = await exchange.paid()
    await exchange.app.clock.advance(50 * 3600)
    await exchange.work_to_hour(payment_id, 100)
    assert numbers(await exchange.reminders(payment_id)) == [2, 3]


async def test_a_payment_that_is_not_paid_plans_none(exchange: Exchange) -> None:
    await exchange.created()
    await exchange.app.work(DAY)
    assert await exchange.jobs(REMIND.kind) == []


async def test_a_mismatch_counts_from_the_operators_review(exchange: Exchange) -> None:
    payment_id = await exchange.created()
    short = Simulation(status=InvoiceStatus.PAID, amount_kopecks=9_000_00)
    await simulate_payment(exchange.app.ports, await exchange.payment(payment_id), short)
    assert await exchange.jobs(REMIND.kind) == []
    await exchange.app.work(3600)
    await resolve_mismatch(exchange.app.ports, payment_id, "paid")
    [job] = await exchange.jobs(REMIND.kind)
    assert job.due == exchange.app.clock.now() + timedelta(hours=24)


@pytest.mark.parametrize("case", ["test mode", "ordinary terminal", "no terminal"])
async def test_no_reminder_is_planned_if_no_hash_is_accepted(exchange: Exchange, case: str) -> None:
    if case == "ordinary terminal":
        ordinary = await exchange_terminal(exchange.app, exchange.app.account.account_id, "ordinary")
        payment_id = await exchange.created(method_id=ordinary)
    elif case == "test mode":
        payment_id = await exchange.created(mode="test")
    else:
        await exchange.set(terminals="false")
        payment_id = await exchange.created(method_id=None)
    paid = Simulation(status=InvoiceStatus.PAID)
    await simulate_payment(exchange.app.ports, await exchange.payment(payment_id), paid)
    assert (await exchange.payment(payment_id)).status == "paid"
    assert await exchange.jobs(REMIND.kind) == []


async def test_the_reversal_of_a_refund_plans_none_anew(exchange: Exchange) -> None:
    payment_id = await exchange.paid()
    await exchange.work_to_hour(payment_id, 100)
    before = await exchange.payment(payment_id)
    refunded = msgspec.structs.replace(before, status=PaymentStatus.REFUNDED)
    await plan(exchange, refunded, before)
    assert await exchange.jobs(REMIND.kind) == []


async def test_two_workers_at_one_step_send_one_reminder(exchange: Exchange) -> None:
    payment_id = await exchange.paid()
    await exchange.app.work()
    await exchange.app.clock.advance(DAY)
    ports = exchange.app.ports
    [slow] = [job for job in await ports.storage.claim(10, LEASE) if job.kind == REMIND.kind]
    await exchange.app.clock.advance(LEASE + 1)
    await run_due(ports)
    await remind(ports, slow)
    await asyncio.gather(remind(ports, slow), remind(ports, slow))
    assert numbers(await exchange.reminders(payment_id)) == [1]


async def test_two_workers_at_the_same_instant_send_one_reminder(exchange: Exchange) -> None:
    payment_id = await exchange.paid()
    await exchange.app.work()
    await exchange.app.clock.advance(DAY)
    ports = exchange.app.ports
    [job] = [job for job in await ports.storage.claim(10, LEASE) if job.kind == REMIND.kind]
    await asyncio.gather(*(remind(ports, job) for _ in range(4)))
    assert numbers(await exchange.reminders(payment_id)) == [1]


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("at", range(1, 4))
async def test_killed_at_any_commit_no_reminder_is_lost_or_doubled(exchange: Exchange, at: int, after: bool) -> None:
    payment_id = await exchange.paid()
    await exchange.work_to_hour(payment_id, 23)
    whole = exchange.app.ports
    exchange.app.ports = msgspec.structs.replace(
        whole, storage=CrashingStorage(whole.storage, CrashPoint(at, after=after))
    )
    with contextlib.suppress(Killed):
        await exchange.app.work(2 * 3600)
    exchange.app.ports = whole
    # The dead worker's lease ends first.
    await exchange.app.work(LEASE + 1)
    await exchange.work_to_hour(payment_id, 100)
    assert numbers(await exchange.reminders(payment_id)) == [1, 2, 3]
    ids = {webhook.headers["X-Webhook-Id"] for webhook in exchange.app.postman.webhooks}
    assert len(ids) == 4


async def test_a_machine_whose_clock_is_behind_does_not_repeat_a_step(exchange: Exchange) -> None:
    payment_id = await exchange.paid()
    await exchange.work_to_hour(payment_id, 25)
    [job] = await exchange.jobs(REMIND.kind)
    # The second step is due by the storage's clock; by this machine's clock it is hour 25.
    await remind(exchange.app.ports, job)
    assert numbers(await exchange.reminders(payment_id)) == [1, 2]
    await exchange.work_to_hour(payment_id, 60)
    assert numbers(await exchange.reminders(payment_id)) == [1, 2]
