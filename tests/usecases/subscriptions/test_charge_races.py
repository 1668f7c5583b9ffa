"""Concurrent charges of one subscription, on every storage: exactly one debit, whichever request wins
(docs/subscriptions.md "Periods and attempts"; docs/concepts.md "Idempotency"; ARCHITECTURE.md "Units and jobs")."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from cambist.adapters.script import Ending, Twist
from cambist.core.domain.accounts.accounts import Scheme
from cambist.core.domain.accounts.idempotency import IdempotencyKey
from cambist.core.domain.errors import Refusal
from cambist.core.domain.payments.payments import Payment
from cambist.core.domain.subscriptions.periods import Interval
from cambist.core.usecases.notifications import on_notification
from cambist.core.usecases.subscriptions import charges as use_case
from cambist.core.usecases.subscriptions.charges import ChargeAnswer
from cambist.core.usecases.subscriptions.subscriptions import cancel_subscription
from cambist.ports.bank import Notification
from cambist.ports.mandates import ChargeSimulation, ChargeStatus
from tests.charge_app import ChargeApp, ask_again, look, open_charge_app
from tests.invariants import everything


@pytest.fixture
async def charges(url: str, tmp_path: Path) -> AsyncIterator[ChargeApp]:
    """At its end no period was debited twice."""
    async with open_charge_app(database_url=url, data_dir=tmp_path) as opened:
        yield opened


@pytest.fixture(params=[Scheme.WINDOW, Scheme.CALENDAR], ids=lambda scheme: scheme.value)
async def due(request: pytest.FixtureRequest, charges: ChargeApp) -> str:
    subscription_id = await charges.subscribed(Interval.WEEK, scheme=request.param)
    if request.param is Scheme.WINDOW:
        await charges.open_next(subscription_id)
    return subscription_id


async def test_many_keys_at_once_make_one_charge(charges: ChargeApp, due: str) -> None:
    keys = [str(uuid4()) for _ in range(6)]
    answers = await charges.together(*(charges.charge(due, key=key) for key in keys))
    assert len({answer.payment.id for answer in answers}) == 1
    assert [answer.is_new for answer in answers].count(True) == 1
    assert sum((await charges.debits()).values()) == 1


async def test_one_key_many_times_at_once_makes_one_charge(charges: ChargeApp, due: str) -> None:
    key = str(uuid4())
    answers = await charges.together(*(charges.charge(due, key=key) for _ in range(6)))
    assert len({answer.payment.id for answer in answers}) == 1
    assert [answer.is_new for answer in answers].count(True) == 1
    kept = [each for each in await everything(charges.ports, IdempotencyKey) if each.kind == "charge"]
    assert [each.resource_id for each in kept] == [answers[0].payment.id]


async def test_a_request_that_what_its_key_did_meanwhile_refuses_is_a_repeat(
    charges: ChargeApp, due: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had found no such key, and judges once the charge of another request with the key has been paid."""
    key, take, made = str(uuid4()), use_case._take, list[Payment]()

    async def taken_late(*given: Any) -> Any:
        monkeypatch.undo()
        made.append((await charges.charge(due, key=key)).payment)
        await charges.end(made[0].id, ChargeStatus.PAID)
        return await take(*given)

    monkeypatch.setattr(use_case, "_take", taken_late)
    answer = await charges.charge(due, key=key)
    assert (answer.payment.id, answer.is_new, answer.replayed) == (made[0].id, False, True)


async def test_repeats_and_the_watch_at_once_find_out_about_one_debit(charges: ChargeApp, due: str) -> None:
    """After a lost answer the merchant repeats the request while the watch polls, and the bank answers both."""
    key = str(uuid4())
    charges.app.script.charge.append(Twist(ending=Ending.UNKNOWN_NOT_DONE))
    with pytest.raises(Refusal):
        await charges.charge(due, key=key)
    [payment] = await charges.payments(due)
    answers = await charges.together(
        *(charges.charge(due, key=key) for _ in range(3)), ask_again(charges.ports, payment)
    )
    assert all(isinstance(answer, ChargeAnswer) and not answer.is_new for answer in answers[:3]), answers
    assert sum((await charges.debits()).values()) == 1


async def test_outcome_reported_many_times_at_once_counts_once(charges: ChargeApp, due: str) -> None:
    await charges.next(due, "pending")
    payment = (await charges.charge(due)).payment
    await charges.clock.advance(60)
    await charges.bank().simulate_charge(payment.id, ChargeSimulation(status=ChargeStatus.PAID, silent=True))
    await charges.together(
        *(on_notification(charges.ports, Notification(operation=payment.id)) for _ in range(4)),
        look(charges.ports, payment),
    )
    assert await charges.told(payment.id) == ["paid"]
    subscription = await charges.subscription(due)
    assert subscription.anchor == (await charges.payment(payment.id)).paid_at


@pytest.mark.parametrize("status", [ChargeStatus.PAID, ChargeStatus.FAILED])
async def test_an_end_and_a_cancellation_at_once_both_hold(charges: ChargeApp, due: str, status: ChargeStatus) -> None:
    await charges.next(due, "pending")
    payment = (await charges.charge(due)).payment
    await charges.bank().simulate_charge(payment.id, ChargeSimulation(status=status, silent=True))
    await charges.together(
        look(charges.ports, payment), cancel_subscription(charges.ports, await charges.caller(), due)
    )
    assert (await charges.payment(payment.id)).status.value == status.value
    subscription = await charges.subscription(due)
    assert subscription.status == "cancelled"
    assert subscription.attempts is not None
    assert not subscription.attempts.pending


async def test_charges_and_a_cancellation_at_once(charges: ChargeApp, due: str) -> None:
    """A charge that is made before it may still be debited; none after it."""
    answers = await charges.together(
        cancel_subscription(charges.ports, await charges.caller(), due),
        *(charges.charge(due) for _ in range(4)),
    )
    refused = [each.code for each in answers if isinstance(each, Refusal)]
    assert set(refused) <= {"CHARGE_MANDATE_INACTIVE", "PROVIDER_ERROR"}, answers
    assert len(await charges.payments(due)) <= 1
    await charges.app.work(3600)
    assert not [each for each in await charges.payments(due) if each.status == "pending"]


async def test_failures_at_once_give_a_period_up_once(charges: ChargeApp) -> None:
    subscription_id = await charges.subscribed(Interval.DAY, 1)
    await charges.open_next(subscription_id)
    for _ in range(2):
        await charges.next(subscription_id, "pending")
        payment = (await charges.charge(subscription_id)).payment
        failed = ChargeSimulation(status=ChargeStatus.FAILED, silent=True)
        await charges.bank().simulate_charge(payment.id, failed)
        await charges.together(*(look(charges.ports, payment) for _ in range(4)))
    answers = await charges.together(*(charges.charge(subscription_id) for _ in range(4)))
    codes = [each.code for each in answers if isinstance(each, Refusal)]
    assert codes == ["RECURRING_CHARGE_EXHAUSTED"] * 4
    assert await charges.told(subscription_id) == ["exhausted"]
