"""A request for a charge meets a charge that another request began, withdrew or ended (docs/subscriptions.md "When a
charge is refused")."""

from collections.abc import AsyncIterator
from datetime import timedelta
from uuid import uuid4

import pytest

from cambist.adapters.script import Ending, Twist
from cambist.core.domain.errors import Refusal
from cambist.core.domain.payments.payments import Opening, Payment
from cambist.core.usecases.payments.tallies import remove_payment
from cambist.core.usecases.subscriptions.charge_progress import WATCH_CHARGE
from cambist.core.usecases.subscriptions.charges import _undo
from cambist.ports.jobs import Job
from tests.charge_app import UNKNOWN, ChargeApp, due_subscription, open_charge_app, told
from tests.planting import beneath


@pytest.fixture
async def charges() -> AsyncIterator[ChargeApp]:
    async with open_charge_app(receiver=False) as opened:
        yield opened


async def test_a_subscription_that_is_not_there_is_refused_before_the_key(charges: ChargeApp) -> None:
    assert told(await charges.post(UNKNOWN, headers=charges.app.headers())) == (404, "SUBSCRIPTION_NOT_FOUND")
    due = await due_subscription(charges)
    assert told(await charges.post(due, headers=charges.app.headers())) == (400, "MISSING_IDEMPOTENCY_KEY")


async def test_watch_of_a_charge_leaves_the_request_ten_seconds(charges: ChargeApp) -> None:
    due = await due_subscription(charges)
    charges.app.script.charge.append(Twist(ending=Ending.UNAVAILABLE))
    assert told(await charges.post(due)) == (503, "PROVIDER_UNAVAILABLE")
    [payment] = await charges.payments(due)
    job = await charges.ports.storage.get(Job, WATCH_CHARGE.id_of(payment.id))
    assert job is not None
    assert job.due == payment.created_at + timedelta(seconds=10)


@pytest.mark.parametrize(("result", "answer"), [("insufficient_funds", (502, "PROVIDER_ERROR")), ("paid", (200, None))])
async def test_a_repeat_of_one_that_nobody_knew_of_says_how_it_ended(
    charges: ChargeApp, result: str, answer: tuple[int, str | None]
) -> None:
    due, key = await due_subscription(charges), str(uuid4())
    await charges.next(due, result)
    charges.app.script.charge.append(Twist(ending=Ending.UNKNOWN_DONE))
    assert told(await charges.post(due, key=key)) == (503, "PROVIDER_UNAVAILABLE")
    again = await charges.post(due, key=key)
    assert (again.status_code, again.json().get("error", {}).get("code")) == answer


async def test_charge_during_a_withdrawal_may_be_repeated_in_a_second(charges: ChargeApp) -> None:
    """Its subscription is read before it is gone, and it is read after."""
    due = await due_subscription(charges)
    await charges.next(due, "pending")
    payment_id = await charges.charged(due)
    async with beneath(charges.ports).unit() as unit:
        remove_payment(unit, await charges.payment(payment_id))
        await unit.commit()
    charges.app.made_up = True
    with pytest.raises(Refusal) as caught:
        await charges.charge(due)
    assert (caught.value.code, caught.value.retry_after) == ("PROVIDER_UNAVAILABLE", 1)


@pytest.mark.parametrize(
    ("opening", "undone"), [(Opening.ASKING, True), (Opening.UNKNOWN, False), (Opening.OPEN, False), (None, True)]
)
async def test_one_is_taken_back_while_nobody_else_may_have_sent_it(
    charges: ChargeApp, opening: Opening | None, undone: bool
) -> None:
    """None: it is gone already."""
    due = await due_subscription(charges)
    await charges.next(due, "pending")
    payment = await charges.payment(await charges.charged(due))
    async with beneath(charges.ports).unit() as unit:
        if opening is None:
            remove_payment(unit, payment)
        else:
            changes = {"opening": opening} if opening is Opening.OPEN else {"opening": opening, "bank_reference": None}
            unit[Payment].change(payment, **changes)
        await unit.commit()
    charges.app.made_up = True
    assert await _undo(charges.ports, payment) is undone
    assert (await charges.ports.storage.get(Payment, payment.id) is None) is undone
