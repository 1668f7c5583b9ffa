"""Ending of a mandate at the bank with its subscription, and of the binding that is open then (docs/subscriptions.md
"Changing and ending")."""

from uuid import uuid4

import pytest

from cambist.adapters.script import Ending, Twist
from cambist.core.domain.payments.payments import Payment
from cambist.core.usecases.payments.recurring import binding_operation
from cambist.core.usecases.subscriptions.binding_progress import look
from cambist.core.usecases.subscriptions.mandate_end import REVOKE
from cambist.ports.jobs import Job
from cambist.ports.mandates import MandateEvent
from tests.apps import TestApp
from tests.subscription_app import bindings, bound, call, open_link, record, simulate, simulator, subscribed


async def is_planned(app: TestApp, subscription_id: str) -> bool:
    return await app.ports.storage.get(Job, REVOKE.id_of(subscription_id)) is not None


@pytest.mark.parametrize(
    ("charge", "cancels", "status"),
    [("first", True, "cancelled"), ("none", True, "expired"), ("first", False, "expired"), ("none", False, "expired")],
)
async def test_an_open_binding_ends_with_its_subscription(
    app: TestApp, charge: str, cancels: bool, status: str
) -> None:
    """A binding without a charge expires. There is nothing to cancel."""
    made = await subscribed(app, binding_charge=charge)
    await app.work(86400 - 60)
    await open_link(app, made["id"])
    if cancels:
        await call(app, made["id"], "cancel")
    else:
        await app.work(60)
    assert [each.status for each in await bindings(app, made["id"])] == [status]


async def test_a_bank_that_never_saw_a_binding_says_so_twice(app: TestApp) -> None:
    """The request may still be on its way."""
    made = await subscribed(app)
    app.script.bind.append(Twist(ending=Ending.UNKNOWN_NOT_DONE))
    await open_link(app, made["id"])
    await call(app, made["id"], "cancel")
    await app.work(1)
    assert await is_planned(app, made["id"])
    await app.work(10)
    assert not await is_planned(app, made["id"])
    assert not (await record(app, made["id"])).revoke_pending


async def test_a_binding_that_the_bank_made_unheard_is_ended_there(app: TestApp) -> None:
    made = await subscribed(app)
    app.script.bind.append(Twist(ending=Ending.UNKNOWN_DONE))
    payment = await open_link(app, made["id"])
    await call(app, made["id"], "cancel")
    await app.work(1)
    assert not await is_planned(app, made["id"])
    found = await simulator(app).find_binding(binding_operation(payment.id))
    assert found is not None
    assert (await simulator(app).mandate_state(found.reference)).status == "closed"


async def test_a_bank_that_knows_no_such_mandate_has_ended_it(app: TestApp) -> None:
    made = await bound(app)
    app.script.revoke.append(Twist(ending=Ending.REFUSED))
    await call(app, made["id"], "cancel")
    await app.work(1)
    assert not await is_planned(app, made["id"])
    assert not (await record(app, made["id"])).revoke_pending


async def rebound(app: TestApp) -> tuple[str, str, Payment]:
    """A subscription whose mandate was lost, the operation that gave it, and the binding that is open anew."""
    made = await bound(app)
    before = (await record(app, made["id"])).binding
    assert before is not None
    await simulate(app, before.operation, MandateEvent.MANDATE_LOST)
    await call(app, made["id"], "rebind", Idempotency_Key=str(uuid4()))
    return made["id"], before.operation, await open_link(app, made["id"])


async def test_a_mandate_that_was_replaced_is_ended_at_its_bank(app: TestApp) -> None:
    subscription_id, operation, payment = await rebound(app)
    await simulate(app, operation, MandateEvent.MANDATE_RESTORED, silent=True)
    assert not await is_planned(app, subscription_id)
    await simulate(app, binding_operation(payment.id), MandateEvent.CONFIRM)
    assert (await record(app, subscription_id)).status == "active"
    assert await is_planned(app, subscription_id)
    await app.work(1)
    found = await simulator(app).find_binding(operation)
    assert found is not None
    assert (await simulator(app).mandate_state(found.reference)).status == "ended"


@pytest.mark.parametrize(("unheard", "status", "binding"), [(False, "expired", "expired"), (True, "paused", "pending")])
async def test_a_consent_that_ends_while_another_binding_is_open(
    app: TestApp, unheard: bool, status: str, binding: str
) -> None:
    """It ends what was active, and its open binding with it. If no notification reported the mandate as valid again,
    the subscription is paused, and the payer may bind anew (docs/subscriptions.md "When the mandate is lost")."""
    subscription_id, operation, payment = await rebound(app)
    await simulate(app, operation, MandateEvent.MANDATE_RESTORED, silent=unheard)
    await simulate(app, operation, MandateEvent.CONSENT_ENDED)
    assert (await record(app, subscription_id)).status == status
    assert (await app.payment(payment.id)).status == binding
    assert await is_planned(app, subscription_id) is not unheard


async def test_news_of_a_mandate_leave_another_binding_open(app: TestApp) -> None:
    subscription_id, _, payment = await rebound(app)
    before = await record(app, subscription_id)
    lost, _ = await bindings(app, subscription_id)
    await look(app.ports, lost)
    assert await record(app, subscription_id) == before
    assert await app.payment(payment.id) == payment
    assert not await is_planned(app, subscription_id)
