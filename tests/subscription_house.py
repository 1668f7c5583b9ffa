"""A house with a merchant who sells subscriptions, and the ways in that tests of subscriptions share."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import httpx

from cambist.adapters.bank.simulator import SimulatedBank
from cambist.adapters.ids import SystemIds
from cambist.adapters.storage.encrypted_notes import EncryptedNotes
from cambist.core.domain.payments.payments import Payment
from cambist.core.domain.subscriptions.subscriptions import Subscription
from cambist.core.usecases.accounts.accounts import set_settings
from cambist.core.usecases.notices import on_notice
from cambist.core.usecases.sandbox.subscriptions import simulator_of
from cambist.core.usecases.subscriptions.binding_opening import open_binding
from cambist.ports.mandates import MandateEvent, MandatePretence, MandateSimulator
from tests.houses import TestHouse
from tests.windows import Page

SUBSCRIPTION: dict[str, Any] = {"amount_rub": "500.00", "interval": "month", "description": "Club"}


async def subscribe(house: TestHouse, *, key: str | None = None, mode: str = "test", **body: Any) -> httpx.Response:
    """POST /subscriptions, for 500 RUB a month unless `body` says otherwise, with a fresh key unless one is given."""
    return await house.http.post(
        "/api/v1/subscriptions",
        json={**SUBSCRIPTION, **body},
        headers=house.headers(mode, Idempotency_Key=key or str(uuid4())),
    )


async def subscribed(house: TestHouse, **body: Any) -> dict[str, Any]:
    """A new subscription's object."""
    response = await subscribe(house, **body)
    assert response.status_code == 201, response.text
    made: dict[str, Any] = response.json()
    return made


async def bound(house: TestHouse, **body: Any) -> dict[str, Any]:
    """The object of a subscription that its payer confirmed."""
    made = await subscribed(house, **body)
    response = await play(house, made["id"], "confirm")
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    assert found["status"] == "active"
    return found


async def play(house: TestHouse, subscription_id: str, outcome: str) -> httpx.Response:
    """POST /sandbox/subscriptions/{id}/simulate."""
    return await house.http.post(
        f"/api/v1/sandbox/subscriptions/{subscription_id}/simulate", json={"outcome": outcome}, headers=house.headers()
    )


async def call(house: TestHouse, subscription_id: str, action: str, **headers: str) -> httpx.Response:
    """POST /subscriptions/{id}/{action}."""
    return await house.http.post(f"/api/v1/subscriptions/{subscription_id}/{action}", headers=house.headers(**headers))


async def shown(house: TestHouse, subscription_id: str) -> dict[str, Any]:
    """GET /subscriptions/{id}."""
    found: dict[str, Any] = (await house.get(f"/subscriptions/{subscription_id}")).json()
    return found


async def patch(house: TestHouse, subscription_id: str, body: dict[str, Any]) -> httpx.Response:
    """PATCH /subscriptions/{id}."""
    return await house.http.patch(f"/api/v1/subscriptions/{subscription_id}", json=body, headers=house.headers())


async def record(house: TestHouse, subscription_id: str) -> Subscription:
    """The subscription as it is stored."""
    async with house.ports.storage.unit() as unit:
        found = await unit[Subscription].get(subscription_id)
    assert found is not None
    return found


async def bindings(house: TestHouse, subscription_id: str) -> list[Payment]:
    """Its binding payments, the oldest first."""
    return [
        payment
        async for batch in house.ports.storage.scan(Payment)
        for payment in sorted(batch, key=lambda each: each.created_at)
        if payment.subscription_id == subscription_id and payment.binding is not None
    ]


async def open_link(house: TestHouse, subscription_id: str) -> Payment:
    """The payer opens the link; the binding payment that is open then."""
    await open_binding(house.ports, subscription_id)
    binding = (await record(house, subscription_id)).binding
    assert binding is not None
    async with house.ports.storage.unit() as unit:
        payment = await unit[Payment].get(binding.payment_id or "")
    assert payment is not None
    return payment


async def button(house: TestHouse, subscription_id: str, query: str = "") -> tuple[str, dict[str, str]]:
    """Return the target and the fields of the form on the subscription's page."""
    page = Page((await house.http.get(f"/s/{subscription_id}{query}")).text)
    [action] = [str(form["action"]) for form in page.all("form") if "/open" in str(form["action"])]
    fields = {str(tag["name"]): str(tag["value"]) for tag in page.all("input") if tag.get("type") == "hidden"}
    return action, fields


async def press(house: TestHouse, subscription_id: str, query: str = "") -> httpx.Response:
    """The payer reads the page and presses its button; the page that comes then."""
    action, fields = await button(house, subscription_id, query)
    sent = await house.http.post(action, data=fields)
    assert sent.status_code == 303, sent.text
    return await house.http.get(sent.headers["location"])


def simulator(house: TestHouse, name: str = "simulator-test") -> MandateSimulator:
    bank = simulator_of(house.ports, name)
    assert bank is not None
    return bank


async def pretend(house: TestHouse, operation: str, event: MandateEvent, **more: Any) -> None:
    """The bank changes its books, and its notices arrive."""
    for notice in await simulator(house).pretend_mandate(operation, MandatePretence(event=event, **more)):
        await on_notice(house.ports, notice)


async def statuses(house: TestHouse, object_id: str) -> list[tuple[str | None, str]]:
    """Return the previous and the new status of each event of the object, in order."""
    return [(event["previous_status"], event["status"]) for event in await house.events(object_id)]


async def choose_calendar(house: TestHouse) -> None:
    """The account's new subscriptions are of the calendar scheme."""
    await set_settings(house.ports, house.account.account_id, {"subscription_scheme": "calendar"})


def issue_links(house: TestHouse, after: timedelta | None) -> None:
    """From now on the bank of test mode issues links so long after they are asked for; None: when it is told."""
    storage = EncryptedNotes(house.ports.storage, house.ports.vault)
    bank = SimulatedBank("simulator-test", storage, house.clock, SystemIds(), links_after=after)
    house.ports.banks.banks["simulator-test"] = bank  # type: ignore[index]  # a dict of the test's own house
