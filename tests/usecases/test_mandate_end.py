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
from tests.houses import TestHouse
from tests.subscription_house import bindings, bound, call, open_link, pretend, record, simulator, subscribed


async def is_planned(house: TestHouse, subscription_id: str) -> bool:
    return await house.ports.storage.get(Job, REVOKE.id_of(subscription_id)) is not None


@pytest.mark.parametrize(
    ("charge", "cancels", "status"),
    [("first", True, "cancelled"), ("none", True, "expired"), ("first", False, "expired"), ("none", False, "expired")],
)
async def test_an_open_binding_ends_with_its_subscription(
    house: TestHouse, charge: str, cancels: bool, status: str
) -> None:
    """A binding without a charge expires. There is nothing to cancel."""
    made = await subscribed(house, binding_charge=charge)
    await house.work(86400 - 60)
    await open_link(house, made["id"])
    if cancels:
        await call(house, made["id"], "cancel")
    else:
        await house.work(60)
    assert [each.status for each in await bindings(house, made["id"])] == [status]


async def test_a_bank_that_never_saw_a_binding_says_so_twice(house: TestHouse) -> None:
    """The request may still be on its way."""
    made = await subscribed(house)
    house.script.bind.append(Twist(ending=Ending.UNKNOWN_NOT_DONE))
    await open_link(house, made["id"])
    await call(house, made["id"], "cancel")
    await house.work(1)
    assert await is_planned(house, made["id"])
    await house.work(10)
    assert not await is_planned(house, made["id"])
    assert not (await record(house, made["id"])).revoke_pending


async def test_a_binding_that_the_bank_made_unheard_is_ended_there(house: TestHouse) -> None:
    made = await subscribed(house)
    house.script.bind.append(Twist(ending=Ending.UNKNOWN_DONE))
    payment = await open_link(house, made["id"])
    await call(house, made["id"], "cancel")
    await house.work(1)
    assert not await is_planned(house, made["id"])
    found = await simulator(house).find_binding(binding_operation(payment.id))
    assert found is not None
    assert (await simulator(house).mandate_state(found.reference)).status == "closed"


async def test_a_bank_that_knows_no_such_mandate_has_ended_it(house: TestHouse) -> None:
    made = await bound(house)
    house.script.revoke.append(Twist(ending=Ending.REFUSED))
    await call(house, made["id"], "cancel")
    await house.work(1)
    assert not await is_planned(house, made["id"])
    assert not (await record(house, made["id"])).revoke_pending


async def rebound(house: TestHouse) -> tuple[str, str, Payment]:
    """A subscription whose mandate was lost, the operation that gave it, and the binding that is open anew."""
    made = await bound(house)
    before = (await record(house, made["id"])).binding
    assert before is not None
    await pretend(house, before.operation, MandateEvent.MANDATE_LOST)
    await call(house, made["id"], "rebind", Idempotency_Key=str(uuid4()))
    return made["id"], before.operation, await open_link(house, made["id"])


async def test_a_mandate_that_was_replaced_is_ended_at_its_bank(house: TestHouse) -> None:
    subscription_id, operation, payment = await rebound(house)
    await pretend(house, operation, MandateEvent.MANDATE_RESTORED, silent=True)
    assert not await is_planned(house, subscription_id)
    await pretend(house, binding_operation(payment.id), MandateEvent.CONFIRM)
    assert (await record(house, subscription_id)).status == "active"
    assert await is_planned(house, subscription_id)
    await house.work(1)
    found = await simulator(house).find_binding(operation)
    assert found is not None
    assert (await simulator(house).mandate_state(found.reference)).status == "ended"


@pytest.mark.parametrize(("unheard", "status", "binding"), [(False, "expired", "expired"), (True, "paused", "pending")])
async def test_a_consent_that_ends_while_another_binding_is_open(
    house: TestHouse, unheard: bool, status: str, binding: str
) -> None:
    """It ends what was active, and its open binding with it. Where nobody heard that the mandate was valid again, the
    subscription is paused, and the payer may bind anew (docs/subscriptions.md "When the mandate is lost")."""
    subscription_id, operation, payment = await rebound(house)
    await pretend(house, operation, MandateEvent.MANDATE_RESTORED, silent=unheard)
    await pretend(house, operation, MandateEvent.CONSENT_ENDED)
    assert (await record(house, subscription_id)).status == status
    assert (await house.payment(payment.id)).status == binding
    assert await is_planned(house, subscription_id) is not unheard


async def test_news_of_a_mandate_leave_another_binding_open(house: TestHouse) -> None:
    subscription_id, _, payment = await rebound(house)
    before = await record(house, subscription_id)
    lost, _ = await bindings(house, subscription_id)
    await look(house.ports, lost)
    assert await record(house, subscription_id) == before
    assert await house.payment(payment.id) == payment
    assert not await is_planned(house, subscription_id)
