"""The events that a receiver wants (docs/webhooks.md "The events you want")."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from msgspec.structs import replace

from cambist.core.domain.accounts.accounts import Account
from cambist.core.domain.errors import Refusal
from cambist.core.domain.webhooks.events import Delivery, DeliveryStatus, EventType
from cambist.core.domain.webhooks.wanted import ALWAYS, read_wanted
from cambist.core.usecases.accounts.accounts import set_settings
from cambist.core.usecases.jobs import run_due
from cambist.core.usecases.retention import KEPT, first_retention
from cambist.ports.jobs import Job
from tests.apps import TestApp, open_test_app
from tests.invariants import everything
from tests.subscription_app import bound
from tests.tables import table

OPTIONAL = (
    EventType.DELIVERY_PROOF_REMINDER,
    EventType.SUBSCRIPTION_STATUS_CHANGED,
    EventType.KYC_STATUS_CHANGED,
    EventType.GATEWAY_STATUS_CHANGED,
)
MONEY = ",".join(ALWAYS)


@pytest.fixture
async def app() -> AsyncIterator[TestApp]:
    async with open_test_app() as opened:
        yield opened


async def choose(app: TestApp, names: str) -> None:
    await set_settings(app.ports, app.account.account_id, {"webhook_events": names})


async def statuses(app: TestApp) -> dict[str, DeliveryStatus]:
    """Return the status of the deliveries by type."""
    return {delivery.type: delivery.status for delivery in await everything(app.ports, Delivery)}


def test_optional_event_types_are_exactly_the_listed_ones() -> None:
    assert set(EventType) - set(ALWAYS) == set(OPTIONAL)


@table("missing", ALWAYS)
async def test_an_only_endpoint_cannot_leave_out_money(app: TestApp, missing: EventType) -> None:
    with pytest.raises(Refusal, match=rf"No enabled webhook endpoint of live mode would take {missing}: ") as refused:
        await choose(app, ",".join(each for each in EventType if each is not missing))
    assert refused.value.code == "INVALID_STATE"


async def test_a_type_that_no_list_names_goes_to_the_first_endpoint(app: TestApp) -> None:
    """The list may be of a version that knew fewer types."""
    async with app.ports.storage.unit() as unit:
        account = await unit[Account].get(app.account.account_id)
        assert account is not None
        settings = replace(account.settings, webhook_events=("kyc.status_changed",))
        unit[Account].save(replace(account, settings=settings))
        await unit.commit()
    await bound(app)
    assert await statuses(app) == {"payment.status_changed": "pending", "subscription.status_changed": "skipped"}


def test_a_list_is_kept_in_the_order_of_the_documentation_and_each_once() -> None:
    assert read_wanted(["gateway.status_changed", *reversed(ALWAYS), *ALWAYS]) == tuple(
        each for each in EventType if each in ALWAYS or each == "gateway.status_changed"
    )
    assert read_wanted([*EventType]) == tuple(EventType), "one may name them all"


async def test_the_operator_s_refusal_names_every_type_that_is_missing(app: TestApp) -> None:
    with pytest.raises(Refusal) as refused:
        await choose(app, "kyc.status_changed,payment.status_changed")
    assert refused.value.code == "INVALID_STATE"
    for each in set(ALWAYS) - {EventType.PAYMENT_STATUS_CHANGED}:
        assert each in refused.value.message
    for name in ("nothing.such", f"{MONEY},", "payment"):
        with pytest.raises(Refusal, match="must be some of: payment"):
            await choose(app, name)


async def test_unwanted_events_are_skipped_and_the_rest_sent(app: TestApp) -> None:
    await choose(app, MONEY)
    made = await bound(app)
    await app.work(5)
    assert {webhook.headers["X-Webhook-Event"] for webhook in app.postman.webhooks} == {"payment.status_changed"}
    assert await statuses(app) == {"payment.status_changed": "delivered", "subscription.status_changed": "skipped"}
    shown = (await app.get("/events?delivery_status=skipped")).json()
    assert [each["object_id"] for each in shown["data"]] == [made["id"]]
    assert (await app.get("/webhook-endpoint")).json()["event_types"] == list(ALWAYS)


async def test_event_without_a_receiver_is_held_only_if_wanted() -> None:
    async with open_test_app(receiver=False) as app:
        await choose(app, MONEY)
        await bound(app)
        assert await statuses(app) == {"payment.status_changed": "held", "subscription.status_changed": "skipped"}


async def test_skipped_event_goes_out_on_resend(app: TestApp) -> None:
    await choose(app, MONEY)
    await bound(app)
    [skipped] = (await app.get("/events?delivery_status=skipped")).json()["data"]
    answer = await app.http.post(f"/api/v1/events/{skipped['id']}/resend", headers=app.headers())
    assert answer.json()["delivery_status"] == "pending"
    await run_due(app.ports)
    assert (await app.get(f"/events/{skipped['id']}")).json()["delivery_status"] == "delivered"


async def test_all_are_wanted_again(app: TestApp) -> None:
    await choose(app, MONEY)
    await choose(app, "")
    await bound(app)
    await app.work(5)
    assert set((await statuses(app)).values()) == {DeliveryStatus.DELIVERED}
    assert (await app.get("/webhook-endpoint")).json()["event_types"] is None


async def test_skipped_event_is_deleted_after_30_days(app: TestApp) -> None:
    """docs/webhooks.md "Looking, and sending again"."""
    await choose(app, MONEY)
    await bound(app)
    await app.clock.advance((KEPT + timedelta(days=1)).total_seconds())
    job = first_retention(app.clock.now())
    async with app.ports.storage.unit() as unit:
        unit[Job].add(job)
        await unit.commit()
    await run_due(app.ports)
    assert await statuses(app) == {}
