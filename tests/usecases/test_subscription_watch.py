"""The clock of a subscription asks what no notice told of: its open binding, and its mandate where that is another's
(docs/states.md "Subscription"; docs/subscriptions.md "How the payer binds")."""

from datetime import timedelta
from uuid import uuid4

import msgspec
import pytest

from cambist.adapters.script import Ending, Twist
from cambist.core.domain.subscriptions.subscriptions import Subscription
from cambist.core.usecases.subscriptions.mandate_end import REVOKE
from cambist.core.usecases.subscriptions.watch import WATCH_SUBSCRIPTION, look_at_mandate, watch_subscription
from cambist.ports.jobs import Job
from cambist.ports.mandates import MandateEvent as E
from tests.houses import TestHouse
from tests.planting import beneath
from tests.subscription_house import bound, call, open_link, pretend, record, subscribed

DAY = timedelta(days=1)


async def watched(house: TestHouse, subscription_id: str) -> str:
    """A run of the clock now; the status after it."""
    job = await house.ports.storage.get(Job, WATCH_SUBSCRIPTION.id_of(subscription_id))
    assert job is not None
    await watch_subscription(house.ports, job)
    return (await record(house, subscription_id)).status.value


async def operation(house: TestHouse, subscription_id: str) -> str:
    binding = (await record(house, subscription_id)).binding
    assert binding is not None
    return binding.operation


@pytest.mark.parametrize("ending", [Ending.NORMAL, Ending.UNAVAILABLE, Ending.REFUSED])
async def test_a_binding_that_was_confirmed_unheard_is_heard_of(house: TestHouse, ending: Ending) -> None:
    """A bank that gives no answer moves nothing."""
    made = await subscribed(house)
    await open_link(house, made["id"])
    await pretend(house, await operation(house, made["id"]), E.CONFIRM, silent=True)
    house.script.mandate_state.append(Twist(ending=ending))
    assert await watched(house, made["id"]) == ("active" if ending is Ending.NORMAL else "pending_binding")
    assert await watched(house, made["id"]) == "active"


async def test_one_that_nobody_opened_is_asked_about_by_nobody(house: TestHouse) -> None:
    made = await subscribed(house)
    house.script.mandate_state.append(Twist(ending=Ending.REFUSED))
    assert await watched(house, made["id"]) == "pending_binding"
    assert len(house.script.mandate_state) == 1


async def test_a_mandate_is_asked_about_while_another_binding_is_open(house: TestHouse) -> None:
    made = await bound(house)
    first = await operation(house, made["id"])
    await pretend(house, first, E.MANDATE_LOST)
    await call(house, made["id"], "rebind", Idempotency_Key=str(uuid4()))
    await open_link(house, made["id"])
    assert await operation(house, made["id"]) != first
    await pretend(house, first, E.MANDATE_RESTORED, silent=True)
    assert await watched(house, made["id"]) == "active"


@pytest.mark.parametrize("ending", [Ending.UNAVAILABLE, Ending.REFUSED])
async def test_a_bank_that_does_not_answer_says_nothing_of_a_mandate(house: TestHouse, ending: Ending) -> None:
    made = await bound(house)
    await pretend(house, await operation(house, made["id"]), E.MANDATE_LOST, silent=True)
    before = await record(house, made["id"])
    house.script.mandate_state.append(Twist(ending=ending))
    await look_at_mandate(house.ports, before)
    assert await record(house, made["id"]) == before
    await look_at_mandate(house.ports, before)
    assert (await record(house, made["id"])).status == "paused"


@pytest.mark.parametrize("changes", [{"mandate_reference": "another"}, {"mandate_bank": "another"}])
async def test_what_is_said_of_a_mandate_that_was_replaced_moves_nothing(
    house: TestHouse, changes: dict[str, str]
) -> None:
    made = await bound(house)
    asked = await record(house, made["id"])
    await pretend(house, await operation(house, made["id"]), E.MANDATE_LOST, silent=True)
    async with beneath(house.ports).unit() as unit:
        unit[Subscription].save(msgspec.structs.replace(asked, **changes))
        await unit.commit()
    before = await record(house, made["id"])
    await look_at_mandate(house.ports, asked)
    assert await record(house, made["id"]) == before


@pytest.mark.parametrize("changes", [{"mandate_reference": None}, {"mandate_bank": None}])
async def test_one_without_a_mandate_is_asked_about_by_nobody(house: TestHouse, changes: dict[str, None]) -> None:
    made = await bound(house)
    house.script.mandate_state.append(Twist(ending=Ending.REFUSED))
    await look_at_mandate(house.ports, msgspec.structs.replace(await record(house, made["id"]), **changes))
    assert len(house.script.mandate_state) == 1


async def test_one_that_is_over_is_asked_about_by_nobody(house: TestHouse) -> None:
    made = await bound(house)
    await call(house, made["id"], "cancel")
    house.script.mandate_state.append(Twist(ending=Ending.REFUSED))
    assert await watched(house, made["id"]) == "cancelled"
    assert len(house.script.mandate_state) == 1
    assert await house.ports.storage.get(Job, WATCH_SUBSCRIPTION.id_of(made["id"])) is None


async def test_a_pause_that_lasted_too_long_ends_the_mandate_too(house: TestHouse) -> None:
    made = await bound(house)
    await pretend(house, await operation(house, made["id"]), E.MANDATE_LOST)
    await house.clock.advance(91 * DAY.total_seconds())
    assert await watched(house, made["id"]) == "expired"
    assert await house.ports.storage.get(Job, REVOKE.id_of(made["id"])) is not None
