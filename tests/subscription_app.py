"""An app with a merchant who sells subscriptions, and the ways in that tests of subscriptions share."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import httpx

from cambist.adapters.bank.simulator.simulator import SimulatedBank
from cambist.adapters.ids import SystemIds
from cambist.adapters.storage.encrypted_notes import EncryptedNotes
from cambist.core.domain.payments.payments import Payment
from cambist.core.domain.subscriptions.subscriptions import Subscription
from cambist.core.usecases.accounts.accounts import set_settings
from cambist.core.usecases.notifications import on_notification
from cambist.core.usecases.sandbox.subscriptions import simulator_of
from cambist.core.usecases.subscriptions.binding_opening import open_binding
from cambist.ports.mandates import MandateEvent, MandateSimulation, MandateSimulator
from tests.apps import TestApp
from tests.windows import Page

SUBSCRIPTION: dict[str, Any] = {"amount_rub": "500.00", "interval": "month", "description": "Club"}


async def subscribe(app: TestApp, *, key: str | None = None, mode: str = "test", **body: Any) -> httpx.Response:
    """POST /subscriptions, for 500 RUB a month unless `body` says otherwise, with a fresh key unless one is given."""
    return await app.http.post(
        "/api/v1/subscriptions",
        json={**SUBSCRIPTION, **body},
        headers=app.headers(mode, Idempotency_Key=key or str(uuid4())),
    )


async def subscribed(app: TestApp, **body: Any) -> dict[str, Any]:
    """A new subscription's object."""
    response = await subscribe(app, **body)
    assert response.status_code == 201, response.text
    made: dict[str, Any] = response.json()
    return made


async def bound(app: TestApp, **body: Any) -> dict[str, Any]:
    """The object of a subscription that its payer confirmed."""
    made = await subscribed(app, **body)
    response = await play(app, made["id"], "confirm")
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    assert found["status"] == "active"
    return found


async def play(app: TestApp, subscription_id: str, outcome: str) -> httpx.Response:
    """POST /sandbox/subscriptions/{id}/simulate."""
    return await app.http.post(
        f"/api/v1/sandbox/subscriptions/{subscription_id}/simulate", json={"outcome": outcome}, headers=app.headers()
    )


async def call(app: TestApp, subscription_id: str, action: str, **headers: str) -> httpx.Response:
    """POST /subscriptions/{id}/{action}."""
    return await app.http.post(f"/api/v1/subscriptions/{subscription_id}/{action}", headers=app.headers(**headers))


async def shown(app: TestApp, subscription_id: str) -> dict[str, Any]:
    """GET /subscriptions/{id}."""
    found: dict[str, Any] = (await app.get(f"/subscriptions/{subscription_id}")).json()
    return found


async def patch(app: TestApp, subscription_id: str, body: dict[str, Any]) -> httpx.Response:
    """PATCH /subscriptions/{id}."""
    return await app.http.patch(f"/api/v1/subscriptions/{subscription_id}", json=body, headers=app.headers())


async def record(app: TestApp, subscription_id: str) -> Subscription:
    """Return the stored subscription."""
    async with app.ports.storage.unit() as unit:
        found = await unit[Subscription].get(subscription_id)
    assert found is not None
    return found


async def bindings(app: TestApp, subscription_id: str) -> list[Payment]:
    """Return its binding payments, the oldest first."""
    return [
        payment
        async for batch in app.ports.storage.scan(Payment)
        for payment in sorted(batch, key=lambda each: each.created_at)
        if payment.subscription_id == subscription_id and payment.binding is not None
    ]


async def open_link(app: TestApp, subscription_id: str) -> Payment:
    """The payer opens the link; the binding payment that is open then."""
    await open_binding(app.ports, subscription_id)
    binding = (await record(app, subscription_id)).binding
    assert binding is not None
    async with app.ports.storage.unit() as unit:
        payment = await unit[Payment].get(binding.payment_id or "")
    assert payment is not None
    return payment


async def button(app: TestApp, subscription_id: str, query: str = "") -> tuple[str, dict[str, str]]:
    """Return the target and the fields of the form on the subscription's page."""
    page = Page((await app.http.get(f"/s/{subscription_id}{query}")).text)
    [action] = [str(form["action"]) for form in page.all("form") if "/open" in str(form["action"])]
    fields = {str(tag["name"]): str(tag["value"]) for tag in page.all("input") if tag.get("type") == "hidden"}
    return action, fields


async def press(app: TestApp, subscription_id: str, query: str = "") -> httpx.Response:
    """The payer reads the page and presses its button; the page that comes then."""
    action, fields = await button(app, subscription_id, query)
    sent = await app.http.post(action, data=fields)
    assert sent.status_code == 303, sent.text
    return await app.http.get(sent.headers["location"])


def simulator(app: TestApp, name: str = "simulator-test") -> MandateSimulator:
    bank = simulator_of(app.ports, name)
    assert bank is not None
    return bank


async def simulate(app: TestApp, operation: str, event: MandateEvent, **more: Any) -> None:
    """The bank changes its books, and its notifications arrive."""
    for notification in await simulator(app).simulate_mandate(operation, MandateSimulation(event=event, **more)):
        await on_notification(app.ports, notification)


async def statuses(app: TestApp, object_id: str) -> list[tuple[str | None, str]]:
    """Return the previous and the new status of each event of the object, in order."""
    return [(event["previous_status"], event["status"]) for event in await app.events(object_id)]


async def choose_calendar(app: TestApp) -> None:
    """The account's new subscriptions are of the calendar scheme."""
    await set_settings(app.ports, app.account.account_id, {"subscription_scheme": "calendar"})


def issue_links(app: TestApp, after: timedelta | None) -> None:
    """From now on the bank of test mode issues links so long after their request; None: only on a simulated event."""
    storage = EncryptedNotes(app.ports.storage, app.ports.vault)
    bank = SimulatedBank("simulator-test", storage, app.clock, SystemIds(), links_after=after)
    app.ports.banks.banks["simulator-test"] = bank  # type: ignore[index]  # a dict of the test's own app
