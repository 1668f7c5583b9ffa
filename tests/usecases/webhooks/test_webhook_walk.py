"""Events of payments as the merchant's receiver sees them, through the whole app
(docs/webhooks.md "When you do not answer", "Webhooks"). Backoffs and breaker themselves: test_deliveries.py, and over
real sockets stories/test_webhook_backoffs.py."""

from datetime import datetime
from itertools import pairwise

import pytest

from cambist.core.domain.webhooks.events import Delivery, DeliveryStatus
from cambist.core.domain.webhooks.signing import NotVerified
from cambist.core.usecases.accounts.accounts import set_settings
from cambist.core.usecases.jobs import WORKER_LEASE
from cambist.core.usecases.webhooks.dispatcher import Dispatcher
from cambist.core.usecases.webhooks.endpoint import send_test
from cambist.ports.jobs import Job
from cambist.ports.notifier import Answer, DeliveryResult, WebhookRequest
from tests.apps import WEBHOOK_SECRET, WEBHOOK_URL, TestApp, open_test_app
from tests.usecases.settlement.test_settlement import caller


class Receiver:
    """A receiver that gives every webhook the same answer, and records the times."""

    def __init__(self, app: TestApp, receipt: DeliveryResult) -> None:
        self.app = app
        self.receipt = receipt
        self.times: list[datetime] = []
        app.postman.send = self.send  # type: ignore[method-assign]  # the app has this one notifier

    async def send(self, webhook: WebhookRequest) -> DeliveryResult:
        self.app.postman.webhooks.append(webhook)
        self.times.append(self.app.clock.now())
        return self.receipt


def says(status: int) -> DeliveryResult:
    return DeliveryResult(answer=Answer.RESPONDED, status=status)


async def paid(app: TestApp) -> str:
    payment = await app.created()
    await app.simulate(payment["id"], outcome="paid")
    found: str = payment["id"]
    return found


async def statuses(app: TestApp) -> set[DeliveryStatus]:
    async with app.ports.storage.unit() as unit:
        return {delivery.status for delivery in await unit[Delivery].find()}


async def test_a_receiver_that_comes_back_gets_the_event_and_nothing_more(app: TestApp) -> None:
    receiver = Receiver(app, says(503))
    await paid(app)
    await app.work(6)
    receiver.receipt = says(204)
    await app.work(86_400)
    assert [(later - earlier).total_seconds() for earlier, later in pairwise(receiver.times)] == [1, 2, 4]
    assert await statuses(app) == {DeliveryStatus.DELIVERED}


async def test_events_wait_for_address_and_secret_then_leave_at_once() -> None:
    """Nothing is sent until both are set (docs/webhooks.md "Webhooks")."""
    async with open_test_app(receiver=False) as app:
        payments = [await paid(app) for _ in range(3)]
        await app.work(86_400)
        await set_settings(app.ports, app.account.account_id, {"webhook_url": WEBHOOK_URL})
        await app.work(60)
        assert app.postman.webhooks == []
        await set_settings(app.ports, app.account.account_id, {"webhook_secret": WEBHOOK_SECRET})
        await app.work()
        assert {body["payment_id"] for body in app.postman.bodies} == set(payments)
        assert len(app.postman.webhooks) == 3
        app.check_signatures()


async def test_for_24_hours_after_a_rotation_the_old_secret_still_verifies(app: TestApp) -> None:
    await set_settings(app.ports, app.account.account_id, {"webhook_secret": "another-webhook-secret"})
    await paid(app)
    await app.work()
    app.check_signatures()
    await app.work(86_400)
    app.postman.webhooks.clear()
    await paid(app)
    await app.work()
    with pytest.raises(NotVerified, match="none of the secrets"):
        app.check_signatures()


async def test_a_test_webhook_is_the_first_of_its_own_and_the_first_attempt(app: TestApp) -> None:
    await send_test(app.ports, await caller(app))
    [webhook] = app.postman.webhooks
    numbers = {name: webhook.headers[f"X-Webhook-{name}"] for name in ("Event", "Sequence", "Attempt")}
    assert numbers == {"Event": "webhook.test", "Sequence": "1", "Attempt": "1"}


async def test_job_claimed_as_the_process_ends_is_released_at_once(app: TestApp) -> None:
    await paid(app)
    [job] = [job for job in await app.ports.storage.claim(10, WORKER_LEASE) if job.kind == "webhook.deliver"]
    ending = Dispatcher(app.ports)
    ending.stop()
    await ending.run(job)
    assert app.postman.webhooks == []
    left = await app.ports.storage.get(Job, job.id)
    assert left is not None
    assert (left.leased_until, left.due) == (None, job.due)
    await app.work()
    assert [body["status"] for body in app.postman.bodies] == ["paid"]
