"""When a bank is polled about a binding (docs/subscriptions.md "How the payer binds"): by the backoff schedule while it
gives no answer, then at the payer's pace, certainly at the deadline, and never once nothing can come. Also the link and
period that the bank states."""

from datetime import datetime, timedelta

import msgspec
import pytest

from cambist.adapters.script import Ending, Script, Twist
from cambist.core.domain.payments.payments import LinkKind, Payment
from cambist.core.domain.payments.payments import PaymentStatus as P
from cambist.core.domain.subscriptions.binding_reports import BindingReport, MandateStanding
from cambist.core.domain.subscriptions.subscriptions import SubscriptionStatus as S
from cambist.core.usecases.common.encrypted import pay_tag
from cambist.core.usecases.gateways import polling
from cambist.core.usecases.gateways.polling import Looked
from cambist.core.usecases.payments.recurring import binding_operation
from cambist.core.usecases.subscriptions.binding_progress import (
    Link,
    conclude,
    look,
    next_status_poll,
    on_binding_notification,
    poll_or_lapse,
    watch_binding,
)
from cambist.core.usecases.subscriptions.bindings import WATCH_BINDING, take_binding
from cambist.frontends.app.compose import FurtherBank
from cambist.ports.bank import BankCapabilities
from cambist.ports.jobs import Job
from cambist.ports.mandates import Binding as AtBank
from cambist.ports.mandates import MandateEvent
from tests.apps import TestApp, open_test_app
from tests.planting import beneath
from tests.race_barriers import Interrupted
from tests.subscription_app import bindings, bound, call, open_link, record, simulate, subscribed
from tests.tables import table


async def saved(app: TestApp, payment: Payment, **changes: object) -> Payment:
    """Let it stand so."""
    async with beneath(app.ports).unit() as unit:
        changed = msgspec.structs.replace(payment, **changes)
        made = unit[Payment].save(msgspec.structs.replace(changed, pay_tag=pay_tag(app.ports.vault, changed)))
        await unit.commit()
    return made


UNANSWERED = {"bank_reference": None, "qr_payload": None, "bank_link": None}
WITHOUT_LINK = {"qr_payload": None, "bank_link": None}
ONLY_LINK = {"qr_payload": None}
ONLY_QR = {"bank_link": None}

WAITING = [
    (UNANSWERED, 0, 0, 10),
    (UNANSWERED, 1, 0, 10),
    (UNANSWERED, 2, 10, 40),
    (UNANSWERED, 3, 40, 160),
    (UNANSWERED, 4, 160, 760),
    (UNANSWERED, 9, 160, 760),
    (UNANSWERED, 4, 899, 900),
    (UNANSWERED, 4, 900, 910),
    (WITHOUT_LINK, 2, 10, 40),
    (WITHOUT_LINK, 4, 899, 900),
    (WITHOUT_LINK, 4, 900, 930),
    (ONLY_LINK, 2, 10, 610),
    (ONLY_QR, 2, 10, 610),
    (ONLY_QR, 2, 400, 900),
    (ONLY_QR, 2, 899, 900),
    (ONLY_QR, 2, 900, 930),
]
"""Missing parts of the answer, number of polls so far, and seconds since creation: now, and at the next poll. The
binding lives for 15 minutes."""

OVER = [
    *((status, S.PENDING_BINDING, 600) for status in (P.PAID, P.SETTLED, P.AMOUNT_MISMATCH)),
    *((status, S.ACTIVE, None) for status in (P.PAID, P.SETTLED, P.AMOUNT_MISMATCH, P.REFUNDED)),
    (P.REFUNDED, S.PENDING_BINDING, None),
    *((status, S.ACTIVE, 1800) for status in (P.EXPIRED, P.CANCELLED, P.FAILED)),
]
"""Status of payment and subscription, and seconds until the poll for money that may still come."""


@pytest.mark.parametrize("status", [P.PENDING, P.PROCESSING])
@pytest.mark.parametrize(("lacks", "polls", "now", "due"), WAITING)
async def test_waiting_binding_is_polled_until_its_deadline(
    app: TestApp, lacks: dict[str, None], polls: int, now: float, due: float, status: P
) -> None:
    made = await subscribed(app)
    payment = msgspec.structs.replace(await open_link(app, made["id"]), status=status, **lacks)
    await app.clock.advance(now)
    at = next_status_poll(app.ports, payment, await record(app, made["id"]), polls, Looked())
    assert at == payment.created_at + timedelta(seconds=due)


@pytest.mark.parametrize(("status", "of", "due"), OVER)
async def test_ended_binding_is_polled_while_an_answer_may_still_come(
    app: TestApp, status: P, of: S, due: float | None
) -> None:
    made = await subscribed(app)
    payment = msgspec.structs.replace(await open_link(app, made["id"]), status=status)
    subscription = msgspec.structs.replace(await record(app, made["id"]), status=of)
    at = next_status_poll(app.ports, payment, subscription, 1, Looked())
    assert at == (None if due is None else payment.created_at + timedelta(seconds=due))


LINK, OTHER = "https://bank.example/1", "https://bank.example/2"


@pytest.mark.parametrize(
    ("known", "told", "kept"), [(None, LINK, LINK), (LINK, OTHER, LINK), (LINK, None, LINK), (None, None, None)]
)
async def test_the_first_link_that_a_bank_gives_is_kept(
    app: TestApp, known: str | None, told: str | None, kept: str | None
) -> None:
    found = await open_link(app, (await subscribed(app))["id"])
    payment = await saved(app, found, qr_payload=known, bank_link=known, link_kind=None)
    report = BindingReport(standing=MandateStanding.OPEN, link=told)
    after = await conclude(app.ports, payment, report, link=Link(told, LinkKind.PAGE))
    assert after is not None
    assert (after.qr_payload, after.bank_link) == (kept, kept)
    assert after.link_kind is (LinkKind.PAGE if kept != known else None)
    assert (after == payment) is (kept == known)


@pytest.mark.parametrize(("confirmed", "heard", "day"), [(10, 10, 2), (0, 10, 1), (0, 0, 1)])
async def test_the_first_period_is_of_the_day_on_which_it_was_confirmed(
    app: TestApp, confirmed: float, heard: float, day: int
) -> None:
    """`confirmed` and `heard`: minutes after 23:55 in Moscow, when the payer opened the link
    (docs/subscriptions.md "Periods and attempts")."""
    made = await subscribed(app)
    await app.clock.advance(timedelta(hours=20, minutes=55).total_seconds())
    payment = await open_link(app, made["id"])
    await app.clock.advance(60 * confirmed)
    await simulate(app, binding_operation(payment.id), MandateEvent.CONFIRM, silent=True)
    await app.clock.advance(60 * (heard - confirmed))
    assert (await look(app.ports, payment)).period_ref == f"a2026010{day}-month1"


async def test_rebound_subscription_stays_in_its_period(app: TestApp) -> None:
    """The anchor stays (docs/subscriptions.md "When the mandate is lost")."""
    made = await bound(app, interval="day")
    first = (await record(app, made["id"])).binding
    assert first is not None
    await simulate(app, first.operation, MandateEvent.MANDATE_LOST)
    await call(app, made["id"], "rebind", Idempotency_Key="5f0c5f7e-3d3c-4f0f-8f0a-0b7a0d3c2b1a")
    await app.clock.advance(timedelta(hours=20, minutes=55).total_seconds())
    payment = await open_link(app, made["id"])
    await app.clock.advance(600)
    await simulate(app, binding_operation(payment.id), MandateEvent.CONFIRM)
    assert (await app.payment(payment.id)).period_ref == payment.period_ref


async def test_an_operation_of_another_subscription_leads_to_no_binding(app: TestApp) -> None:
    """A notification is a hint, of operations that are ours."""
    mine, other = [await open_link(app, (await subscribed(app))["id"]) for _ in range(2)]
    app.script.mandate_state.append(Twist(ending=Ending.REFUSED))
    await on_binding_notification(app.ports, f"{other.subscription_id}:{mine.id.removeprefix('pay_')}")
    await on_binding_notification(app.ports, "bnd_0198c3f2-7d1a-7e4b-9f60-000000000001")
    assert len(app.script.mandate_state) == 1


@pytest.mark.parametrize(("seconds", "status"), [(899, P.PENDING), (900, P.EXPIRED)])
async def test_unanswered_poll_lets_the_binding_lapse_in_time(app: TestApp, seconds: float, status: P) -> None:
    """And is made again: the payer may have confirmed."""
    payment = await open_link(app, (await subscribed(app))["id"])
    await app.clock.advance(seconds)
    app.script.mandate_state.append(Twist(ending=Ending.UNAVAILABLE))
    after, looked = await poll_or_lapse(app.ports, payment)
    assert (after.status, looked) == (status, Looked(is_received=False))


async def test_a_look_that_was_not_its_turn_comes_back(app: TestApp, monkeypatch: pytest.MonkeyPatch) -> None:
    payment = await open_link(app, (await subscribed(app))["id"])
    await app.clock.advance(900)
    turn = app.clock.now() + timedelta(seconds=20)

    async def away(*_: object) -> datetime:
        return turn

    monkeypatch.setattr(polling, "turned_away", away)
    app.script.mandate_state.append(Twist(ending=Ending.REFUSED))
    after, looked = await poll_or_lapse(app.ports, payment)
    assert (after.status, looked) == (P.EXPIRED, Looked(turn=turn, is_received=False))
    assert len(app.script.mandate_state) == 1


FORGETFUL = BankCapabilities(simulated=True, mandates=True, mandate_charges=True, repeat_window=timedelta(seconds=60))


@table(
    ("done", "seconds", "is_left", "is_known"),
    [
        (False, 59, True, True),
        (False, 60, True, False),
        (False, 899, True, False),
        (False, 900, False, False),
        (True, 60, True, True),
        (True, 900, True, True),
    ],
)
async def test_unanswered_binding_is_requested_again_found_or_withdrawn(
    done: bool, seconds: float, is_left: bool, is_known: bool
) -> None:
    """If a bank would treat a repeat as another binding, it is only asked whether it has the binding. If it has none
    when the payer's time is over, the binding is withdrawn."""
    script = Script()
    further = [FurtherBank(name="second-test", capabilities=FORGETFUL, script=script)]
    async with open_test_app(further_banks=further) as app:
        made = await subscribed(app)
        app.script.bind.append(Twist(ending=Ending.REFUSED))
        script.bind.append(Twist(ending=Ending.UNKNOWN_DONE if done else Ending.UNKNOWN_NOT_DONE))
        payment = await open_link(app, made["id"])
        assert (payment.bank, payment.bank_reference) == ("second-test", None)
        job = await app.ports.storage.get(Job, WATCH_BINDING.id_of(payment.id))
        assert job is not None
        await app.clock.advance(seconds)
        await watch_binding(app.ports, job)
        left = await bindings(app, made["id"])
        assert [each.id for each in left] == [payment.id] * is_left
        assert [each for each in left if (each.bank_reference is not None) is not is_known] == []
        assert (await app.ports.storage.get(Job, job.id) is not None) is is_left


async def test_binding_found_by_a_notification_meanwhile_is_not_withdrawn(app: TestApp) -> None:
    made = await subscribed(app)
    app.script.bind.append(Twist(ending=Ending.UNKNOWN_NOT_DONE))
    payment = await open_link(app, made["id"])
    job = await app.ports.storage.get(Job, WATCH_BINDING.id_of(payment.id))
    assert job is not None
    await app.clock.advance(900)

    async def found() -> None:
        await take_binding(app.ports, payment, AtBank(reference="late", payload="p", link=LINK))

    storage = Interrupted(app.ports.storage, Payment, found)
    await watch_binding(msgspec.structs.replace(app.ports, storage=storage), job)
    assert storage.happened
    assert [each.bank_reference for each in await bindings(app, made["id"])] == ["late"]


async def test_the_watch_of_one_that_is_gone_ends(app: TestApp) -> None:
    payment = await open_link(app, (await subscribed(app))["id"])
    job = await app.ports.storage.get(Job, WATCH_BINDING.id_of(payment.id))
    assert job is not None
    async with beneath(app.ports).unit() as unit:
        unit[Payment].remove(payment)
        await unit.commit()
    await watch_binding(app.ports, job)
    assert await app.ports.storage.get(Job, job.id) is None


async def test_the_watch_of_one_that_is_open_asks_for_no_other(app: TestApp) -> None:
    payment = await open_link(app, (await subscribed(app))["id"])
    job = await app.ports.storage.get(Job, WATCH_BINDING.id_of(payment.id))
    assert job is not None
    app.script.bind.append(Twist(ending=Ending.REFUSED))
    await watch_binding(app.ports, job)
    assert len(app.script.bind) == 1
