"""A further webhook endpoint that is switched off: nothing goes there, and nothing is lost
(docs/webhooks.md "Switched off")."""

import contextlib
from datetime import timedelta
from typing import Any

import pytest

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.webhooks.delivery import LIFETIME
from cambist.core.domain.webhooks.endpoints import EndpointKey
from cambist.core.domain.webhooks.events import EndpointDelivery
from cambist.core.usecases.jobs import LEASE, run_due
from cambist.core.usecases.webhooks.endpoints import switch_endpoint
from cambist.core.usecases.webhooks.outbox import RELEASE_TO
from cambist.ports.jobs import Job
from tests.crash_points import CrashPoint, Killed, fused
from tests.houses import WEBHOOK_URL, TestHouse
from tests.http.test_webhook_endpoints import AWAY, URL, by_address, made, paid, refused, send, sent_to
from tests.invariants import everything


async def switch(house: TestHouse, endpoint_id: str, *, enabled: bool) -> dict[str, Any]:
    answered = await send(house, "PATCH", f"/{endpoint_id}", {"enabled": enabled})
    assert answered.status_code == 200, answered.text
    assert answered.json()["enabled"] is enabled
    shown: dict[str, Any] = answered.json()
    return shown


async def backlog(house: TestHouse, endpoint_id: str) -> tuple[int, int, int]:
    """Return the numbers of held, pending and failed webhooks."""
    shown = (await house.get(f"/webhook-endpoints/{endpoint_id}")).json()["backlog"]
    return shown["held"], shown["pending"], shown["failed"]


async def test_what_happens_meanwhile_waits_and_leaves_in_order_once_it_is_on(house: TestHouse) -> None:
    endpoint_id = (await made(house))["id"]
    await switch(house, endpoint_id, enabled=False)
    for _ in range(3):
        await paid(house)
        await house.work(5)
    assert (sent_to(house, URL), await backlog(house, endpoint_id)) == ([], (3, 0, 0))
    assert len(sent_to(house, WEBHOOK_URL)) == 3
    await house.work(LIFETIME.total_seconds() * 2)
    assert await backlog(house, endpoint_id) == (3, 0, 0), "who is off gives nothing up"
    await switch(house, endpoint_id, enabled=True)
    await house.work(5)
    ids = [each.headers["X-Webhook-Id"] for each in sent_to(house, URL)]
    assert ids == [each.headers["X-Webhook-Id"] for each in sent_to(house, WEBHOOK_URL)]
    assert await backlog(house, endpoint_id) == (0, 0, 0)
    await switch(house, endpoint_id, enabled=True)
    await house.work(300)
    assert len(sent_to(house, URL)) == 3


async def test_pending_webhooks_are_held_and_restart_with_a_closed_breaker(house: TestHouse) -> None:
    endpoint_id = (await made(house))["id"]
    by_address(house, {URL: AWAY})
    for _ in range(3):
        await paid(house)
    await house.work(60)
    assert (await house.get(f"/webhook-endpoints/{endpoint_id}")).json()["breaker"]["state"] == "open"
    tried = len(sent_to(house, URL))
    shown = await switch(house, endpoint_id, enabled=False)
    assert shown["breaker"]["state"] == "closed", "nobody is told that it does not answer"
    await house.work(3600)
    assert (len(sent_to(house, URL)), await backlog(house, endpoint_id)) == (tried, (3, 0, 0))
    by_address(house, {})
    await switch(house, endpoint_id, enabled=True)
    await house.work(5)
    assert (len(sent_to(house, URL)), await backlog(house, endpoint_id)) == (tried + 3, (0, 0, 0))


async def test_what_waits_for_its_next_try_is_held_at_once(house: TestHouse) -> None:
    """And only what switches an endpoint on has held events sent."""
    endpoint_id = (await made(house))["id"]
    job_id = RELEASE_TO.id_of(EndpointKey(house.account.account_id, Mode.TEST, endpoint_id).id)
    by_address(house, {URL: AWAY})
    await paid(house)
    await house.work(130)
    await send(house, "PATCH", f"/{endpoint_id}", {"description": "slow"})
    await run_due(house.ports)
    assert await house.ports.storage.get(Job, job_id) is None
    [waiting] = await everything(house.ports, EndpointDelivery)
    assert (waiting.status, waiting.due > house.clock.now()) == ("pending", True)
    await switch(house, endpoint_id, enabled=False)
    assert await house.ports.storage.get(Job, job_id) is None
    await run_due(house.ports)
    assert [each.status for each in await everything(house.ports, EndpointDelivery)] == ["held"]
    await switch(house, endpoint_id, enabled=True)
    assert await house.ports.storage.get(Job, job_id) is not None


async def test_one_that_is_off_can_be_tested_changed_sent_to_again_and_deleted(house: TestHouse) -> None:
    endpoint_id = (await made(house))["id"]
    await paid(house)
    await house.work(5)
    [event] = (await house.get("/events")).json()["data"]
    await switch(house, endpoint_id, enabled=False)
    assert (await send(house, "POST", f"/{endpoint_id}/test")).json()["delivered"] is True
    assert len(sent_to(house, URL)) == 2
    again = await house.http.post(
        f"/api/v1/events/{event['id']}/resend?endpoint_id={endpoint_id}", headers=house.headers()
    )
    assert again.json()["delivery_status"] == "held"
    changed = (await send(house, "PATCH", f"/{endpoint_id}", {"url": "https://new.example", "enabled": None})).json()
    assert (changed["url"], changed["enabled"], changed["backlog"]["held"]) == ("https://new.example", False, 1)
    await house.work(60)
    assert (len(sent_to(house, URL)), sent_to(house, "https://new.example")) == (2, [])
    refused(await send(house, "PATCH", f"/{endpoint_id}", {"enabled": "no"}), 400, "VALIDATION_ERROR")
    await send(house, "DELETE", f"/{endpoint_id}")
    await house.work(200)
    assert await everything(house.ports, EndpointDelivery) == []


async def test_webhook_in_flight_at_the_switch_off_is_not_sent_twice(house: TestHouse) -> None:
    """Its failure waits as all else does."""
    endpoint_id = (await made(house))["id"]
    plain = house.postman.send

    async def switching(webhook: Any) -> Any:
        if webhook.url != URL or len(sent_to(house, URL)):
            return await plain(webhook)
        await switch_endpoint(house.ports, endpoint_id, enabled=False)
        await plain(webhook)
        return AWAY

    house.postman.send = switching  # type: ignore[method-assign]
    await paid(house)
    await house.work(600)
    assert (len(sent_to(house, URL)), await backlog(house, endpoint_id)) == (1, (1, 0, 0))
    await switch(house, endpoint_id, enabled=True)
    await house.work(5)
    assert (len(sent_to(house, URL)), await backlog(house, endpoint_id)) == (2, (0, 0, 0))


@pytest.mark.parametrize("after", [False, True])
async def test_a_worker_that_dies_over_either_switch_loses_nothing(house: TestHouse, after: bool) -> None:
    """Each commit of the ways is the last one once."""
    endpoint_id = (await made(house))["id"]
    for at in range(1, 5):
        await paid(house)
        for enabled in (False, True):
            await switch(house, endpoint_id, enabled=enabled)
            with contextlib.suppress(Killed):
                await run_due(fused(house.ports, CrashPoint(at, after=after)))
    await house.work(LEASE + timedelta(minutes=3).total_seconds())
    assert await backlog(house, endpoint_id) == (0, 0, 0)
    assert len({each.headers["X-Webhook-Id"] for each in sent_to(house, URL)}) == 4
