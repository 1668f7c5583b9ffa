"""Events of payments as the merchant's receiver sees them, through the whole house
(docs/webhooks.md "When you do not answer", "Webhooks"). Ladders and breaker themselves: test_deliveries.py, and over
real sockets stories/test_webhook_ladders.py."""

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
from tests.houses import WEBHOOK_SECRET, WEBHOOK_URL, TestHouse, open_test_house
from tests.usecases.test_settlement import caller


class Receiver:
    """Answers every webhook alike, and remembers when each came."""

    def __init__(self, house: TestHouse, receipt: DeliveryResult) -> None:
        self.house = house
        self.receipt = receipt
        self.times: list[datetime] = []
        house.postman.send = self.send  # type: ignore[method-assign]  # the house has this one notifier

    async def send(self, webhook: WebhookRequest) -> DeliveryResult:
        self.house.postman.webhooks.append(webhook)
        self.times.append(self.house.clock.now())
        return self.receipt


def says(status: int) -> DeliveryResult:
    return DeliveryResult(answer=Answer.RESPONDED, status=status)


async def paid(house: TestHouse) -> str:
    payment = await house.created()
    await house.simulate(payment["id"], outcome="paid")
    found: str = payment["id"]
    return found


async def statuses(house: TestHouse) -> set[DeliveryStatus]:
    async with house.ports.storage.unit() as unit:
        return {delivery.status for delivery in await unit[Delivery].find()}


async def test_a_receiver_that_comes_back_gets_the_event_and_nothing_more(house: TestHouse) -> None:
    receiver = Receiver(house, says(503))
    await paid(house)
    await house.work(6)
    receiver.receipt = says(204)
    await house.work(86_400)
    assert [(later - earlier).total_seconds() for earlier, later in pairwise(receiver.times)] == [1, 2, 4]
    assert await statuses(house) == {DeliveryStatus.DELIVERED}


async def test_events_wait_until_address_and_secret_are_both_set_and_then_leave_at_once() -> None:
    """Nothing is sent until both are set (docs/webhooks.md "Webhooks")."""
    async with open_test_house(receiver=False) as house:
        payments = [await paid(house) for _ in range(3)]
        await house.work(86_400)
        await set_settings(house.ports, house.account.account_id, {"webhook_url": WEBHOOK_URL})
        await house.work(60)
        assert house.postman.webhooks == []
        await set_settings(house.ports, house.account.account_id, {"webhook_secret": WEBHOOK_SECRET})
        await house.work()
        assert {body["payment_id"] for body in house.postman.bodies} == set(payments)
        assert len(house.postman.webhooks) == 3
        house.check_signatures()


async def test_for_24_hours_after_a_rotation_the_old_secret_still_verifies(house: TestHouse) -> None:
    await set_settings(house.ports, house.account.account_id, {"webhook_secret": "another-webhook-secret"})
    await paid(house)
    await house.work()
    house.check_signatures()
    await house.work(86_400)
    house.postman.webhooks.clear()
    await paid(house)
    await house.work()
    with pytest.raises(NotVerified, match="none of the secrets"):
        house.check_signatures()


async def test_a_test_webhook_is_the_first_of_its_own_and_the_first_attempt(house: TestHouse) -> None:
    await send_test(house.ports, await caller(house))
    [webhook] = house.postman.webhooks
    numbers = {name: webhook.headers[f"X-Webhook-{name}"] for name in ("Event", "Sequence", "Attempt")}
    assert numbers == {"Event": "webhook.test", "Sequence": "1", "Attempt": "1"}


async def test_a_job_that_is_claimed_as_the_process_ends_is_the_next_ones_at_once(house: TestHouse) -> None:
    await paid(house)
    [job] = [job for job in await house.ports.storage.claim(10, WORKER_LEASE) if job.kind == "webhook.deliver"]
    ending = Dispatcher(house.ports)
    ending.stop()
    await ending.run(job)
    assert house.postman.webhooks == []
    left = await house.ports.storage.get(Job, job.id)
    assert left is not None
    assert (left.leased_until, left.due) == (None, job.due)
    await house.work()
    assert [body["status"] for body in house.postman.bodies] == ["paid"]
