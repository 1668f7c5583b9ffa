"""Events of payments as the merchant's receiver sees them, through the whole house
(docs/webhooks.md "When you do not answer", "Webhooks"). Ladders and breaker themselves: test_deliveries.py, and over
real sockets stories/test_webhook_ladders.py."""

from datetime import datetime
from itertools import pairwise

import pytest

from cambist.core.domain.webhooks.events import Delivery, DeliveryStatus
from cambist.core.domain.webhooks.signing import NotVerified
from cambist.core.usecases.accounts.accounts import set_settings
from cambist.ports.notifier import Answer, DeliveryResult, WebhookRequest
from tests.houses import WEBHOOK_SECRET, WEBHOOK_URL, TestHouse, open_test_house


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
