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
from tests.apps import WEBHOOK_URL, TestApp
from tests.crash_points import CrashPoint, Killed, fused
from tests.http.test_webhook_endpoints import AWAY, URL, by_address, made, paid, refused, send, sent_to
from tests.invariants import everything


async def switch(app: TestApp, endpoint_id: str, *, enabled: bool) -> dict[str, Any]:
    answered = await send(app, "PATCH", f"/{endpoint_id}", {"enabled": enabled})
    assert answered.status_code == 200, answered.text
    assert answered.json()["enabled"] is enabled
    shown: dict[str, Any] = answered.json()
    return shown


async def backlog(app: TestApp, endpoint_id: str) -> tuple[int, int, int]:
    """Return the numbers of held, pending and failed webhooks."""
    shown = (await app.get(f"/webhook-endpoints/{endpoint_id}")).json()["backlog"]
    return shown["held"], shown["pending"], shown["failed"]


async def test_events_wait_for_a_disabled_endpoint_and_leave_in_order(app: TestApp) -> None:
    endpoint_id = (await made(app))["id"]
    await switch(app, endpoint_id, enabled=False)
    for _ in range(3):
        await paid(app)
        await app.work(5)
    assert (sent_to(app, URL), await backlog(app, endpoint_id)) == ([], (3, 0, 0))
    assert len(sent_to(app, WEBHOOK_URL)) == 3
    await app.work(LIFETIME.total_seconds() * 2)
    assert await backlog(app, endpoint_id) == (3, 0, 0), "who is off gives nothing up"
    await switch(app, endpoint_id, enabled=True)
    await app.work(5)
    ids = [each.headers["X-Webhook-Id"] for each in sent_to(app, URL)]
    assert ids == [each.headers["X-Webhook-Id"] for each in sent_to(app, WEBHOOK_URL)]
    assert await backlog(app, endpoint_id) == (0, 0, 0)
    await switch(app, endpoint_id, enabled=True)
    await app.work(300)
    assert len(sent_to(app, URL)) == 3


async def test_pending_webhooks_are_held_and_restart_with_a_closed_breaker(app: TestApp) -> None:
    endpoint_id = (await made(app))["id"]
    by_address(app, {URL: AWAY})
    for _ in range(3):
        await paid(app)
    await app.work(60)
    assert (await app.get(f"/webhook-endpoints/{endpoint_id}")).json()["breaker"]["state"] == "open"
    tried = len(sent_to(app, URL))
    shown = await switch(app, endpoint_id, enabled=False)
    assert shown["breaker"]["state"] == "closed", "nobody is told that it does not answer"
    await app.work(3600)
    assert (len(sent_to(app, URL)), await backlog(app, endpoint_id)) == (tried, (3, 0, 0))
    by_address(app, {})
    await switch(app, endpoint_id, enabled=True)
    await app.work(5)
    assert (len(sent_to(app, URL)), await backlog(app, endpoint_id)) == (tried + 3, (0, 0, 0))


async def test_events_waiting_for_a_retry_are_held_when_it_is_disabled(app: TestApp) -> None:
    """Held events are sent only when an endpoint is switched on."""
    endpoint_id = (await made(app))["id"]
    job_id = RELEASE_TO.id_of(EndpointKey(app.account.account_id, Mode.TEST, endpoint_id).id)
    by_address(app, {URL: AWAY})
    await paid(app)
    await app.work(130)
    await send(app, "PATCH", f"/{endpoint_id}", {"description": "slow"})
    await run_due(app.ports)
    assert await app.ports.storage.get(Job, job_id) is None
    [waiting] = await everything(app.ports, EndpointDelivery)
    assert (waiting.status, waiting.due > app.clock.now()) == ("pending", True)
    await switch(app, endpoint_id, enabled=False)
    assert await app.ports.storage.get(Job, job_id) is None
    await run_due(app.ports)
    assert [each.status for each in await everything(app.ports, EndpointDelivery)] == ["held"]
    await switch(app, endpoint_id, enabled=True)
    assert await app.ports.storage.get(Job, job_id) is not None


async def test_disabled_endpoint_can_be_tested_changed_resent_and_deleted(app: TestApp) -> None:
    endpoint_id = (await made(app))["id"]
    await paid(app)
    await app.work(5)
    [event] = (await app.get("/events")).json()["data"]
    await switch(app, endpoint_id, enabled=False)
    assert (await send(app, "POST", f"/{endpoint_id}/test")).json()["delivered"] is True
    assert len(sent_to(app, URL)) == 2
    again = await app.http.post(f"/api/v1/events/{event['id']}/resend?endpoint_id={endpoint_id}", headers=app.headers())
    assert again.json()["delivery_status"] == "held"
    changed = (await send(app, "PATCH", f"/{endpoint_id}", {"url": "https://new.example", "enabled": None})).json()
    assert (changed["url"], changed["enabled"], changed["backlog"]["held"]) == ("https://new.example", False, 1)
    await app.work(60)
    assert (len(sent_to(app, URL)), sent_to(app, "https://new.example")) == (2, [])
    refused(await send(app, "PATCH", f"/{endpoint_id}", {"enabled": "no"}), 400, "VALIDATION_ERROR")
    await send(app, "DELETE", f"/{endpoint_id}")
    await app.work(200)
    assert await everything(app.ports, EndpointDelivery) == []


async def test_webhook_in_flight_at_the_switch_off_is_not_sent_twice(app: TestApp) -> None:
    """Its failure waits as all else does."""
    endpoint_id = (await made(app))["id"]
    plain = app.postman.send

    async def switching(webhook: Any) -> Any:
        if webhook.url != URL or len(sent_to(app, URL)):
            return await plain(webhook)
        await switch_endpoint(app.ports, endpoint_id, enabled=False)
        await plain(webhook)
        return AWAY

    app.postman.send = switching  # type: ignore[method-assign]
    await paid(app)
    await app.work(600)
    assert (len(sent_to(app, URL)), await backlog(app, endpoint_id)) == (1, (1, 0, 0))
    await switch(app, endpoint_id, enabled=True)
    await app.work(5)
    assert (len(sent_to(app, URL)), await backlog(app, endpoint_id)) == (2, (0, 0, 0))


@pytest.mark.parametrize("after", [False, True])
async def test_a_worker_that_dies_over_either_switch_loses_nothing(app: TestApp, after: bool) -> None:
    """Each commit of the ways is the last one once."""
    endpoint_id = (await made(app))["id"]
    for at in range(1, 5):
        await paid(app)
        for enabled in (False, True):
            await switch(app, endpoint_id, enabled=enabled)
            with contextlib.suppress(Killed):
                await run_due(fused(app.ports, CrashPoint(at, after=after)))
    await app.work(LEASE + timedelta(minutes=3).total_seconds())
    assert await backlog(app, endpoint_id) == (0, 0, 0)
    assert len({each.headers["X-Webhook-Id"] for each in sent_to(app, URL)}) == 4
