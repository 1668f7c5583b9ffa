"""A subscription's watch polls what no notification reported: its open binding, and a mandate at another bank
(docs/states.md "Subscription"; docs/subscriptions.md "How the payer binds")."""

from datetime import timedelta
from uuid import uuid4

import msgspec
import pytest

from cambist.adapters.script import Ending, Twist
from cambist.core.domain.subscriptions.subscriptions import Subscription
from cambist.core.usecases.subscriptions.mandate_end import REVOKE
from cambist.core.usecases.subscriptions.watch import WATCH_SUBSCRIPTION, poll_mandate, watch_subscription
from cambist.ports.jobs import Job
from cambist.ports.mandates import MandateEvent as E
from tests.apps import TestApp
from tests.planting import beneath
from tests.subscription_app import bound, call, open_link, record, simulate, subscribed

DAY = timedelta(days=1)


async def watched(app: TestApp, subscription_id: str) -> str:
    """A run of the clock now; the status after it."""
    job = await app.ports.storage.get(Job, WATCH_SUBSCRIPTION.id_of(subscription_id))
    assert job is not None
    await watch_subscription(app.ports, job)
    return (await record(app, subscription_id)).status.value


async def operation(app: TestApp, subscription_id: str) -> str:
    binding = (await record(app, subscription_id)).binding
    assert binding is not None
    return binding.operation


@pytest.mark.parametrize("ending", [Ending.NORMAL, Ending.UNAVAILABLE, Ending.REFUSED])
async def test_unreported_confirmation_of_a_binding_is_found(app: TestApp, ending: Ending) -> None:
    """A bank that gives no answer moves nothing."""
    made = await subscribed(app)
    await open_link(app, made["id"])
    await simulate(app, await operation(app, made["id"]), E.CONFIRM, silent=True)
    app.script.mandate_state.append(Twist(ending=ending))
    assert await watched(app, made["id"]) == ("active" if ending is Ending.NORMAL else "pending_binding")
    assert await watched(app, made["id"]) == "active"


async def test_unopened_subscription_is_not_polled(app: TestApp) -> None:
    made = await subscribed(app)
    app.script.mandate_state.append(Twist(ending=Ending.REFUSED))
    assert await watched(app, made["id"]) == "pending_binding"
    assert len(app.script.mandate_state) == 1


async def test_a_mandate_is_asked_about_while_another_binding_is_open(app: TestApp) -> None:
    made = await bound(app)
    first = await operation(app, made["id"])
    await simulate(app, first, E.MANDATE_LOST)
    await call(app, made["id"], "rebind", Idempotency_Key=str(uuid4()))
    await open_link(app, made["id"])
    assert await operation(app, made["id"]) != first
    await simulate(app, first, E.MANDATE_RESTORED, silent=True)
    assert await watched(app, made["id"]) == "active"


@pytest.mark.parametrize("ending", [Ending.UNAVAILABLE, Ending.REFUSED])
async def test_a_bank_that_does_not_answer_says_nothing_of_a_mandate(app: TestApp, ending: Ending) -> None:
    made = await bound(app)
    await simulate(app, await operation(app, made["id"]), E.MANDATE_LOST, silent=True)
    before = await record(app, made["id"])
    app.script.mandate_state.append(Twist(ending=ending))
    await poll_mandate(app.ports, before)
    assert await record(app, made["id"]) == before
    await poll_mandate(app.ports, before)
    assert (await record(app, made["id"])).status == "paused"


@pytest.mark.parametrize("changes", [{"mandate_reference": "another"}, {"mandate_bank": "another"}])
async def test_status_of_a_replaced_mandate_changes_nothing(app: TestApp, changes: dict[str, str]) -> None:
    made = await bound(app)
    asked = await record(app, made["id"])
    await simulate(app, await operation(app, made["id"]), E.MANDATE_LOST, silent=True)
    async with beneath(app.ports).unit() as unit:
        unit[Subscription].save(msgspec.structs.replace(asked, **changes))
        await unit.commit()
    before = await record(app, made["id"])
    await poll_mandate(app.ports, asked)
    assert await record(app, made["id"]) == before


@pytest.mark.parametrize("changes", [{"mandate_reference": None}, {"mandate_bank": None}])
async def test_subscription_without_a_mandate_is_not_polled(app: TestApp, changes: dict[str, None]) -> None:
    made = await bound(app)
    app.script.mandate_state.append(Twist(ending=Ending.REFUSED))
    await poll_mandate(app.ports, msgspec.structs.replace(await record(app, made["id"]), **changes))
    assert len(app.script.mandate_state) == 1


async def test_ended_subscription_is_not_polled(app: TestApp) -> None:
    made = await bound(app)
    await call(app, made["id"], "cancel")
    app.script.mandate_state.append(Twist(ending=Ending.REFUSED))
    assert await watched(app, made["id"]) == "cancelled"
    assert len(app.script.mandate_state) == 1
    assert await app.ports.storage.get(Job, WATCH_SUBSCRIPTION.id_of(made["id"])) is None


async def test_a_pause_that_lasted_too_long_ends_the_mandate_too(app: TestApp) -> None:
    made = await bound(app)
    await simulate(app, await operation(app, made["id"]), E.MANDATE_LOST)
    await app.clock.advance(91 * DAY.total_seconds())
    assert await watched(app, made["id"]) == "expired"
    assert await app.ports.storage.get(Job, REVOKE.id_of(made["id"])) is not None
