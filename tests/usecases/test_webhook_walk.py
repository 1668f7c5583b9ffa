"""Deliveries as the merchant's receiver sees them, in virtual time (SPEC "Events", 1-3; DECISIONS 7)."""

from datetime import datetime, timedelta
from itertools import pairwise

import pytest

from cambist.core.domain.accounts import Mode
from cambist.core.domain.breaker import Breaker, lane_id
from cambist.core.domain.delivery import FAST_LADDER, SLOW_LADDER
from cambist.core.domain.events import Delivery, DeliveryStatus
from cambist.core.domain.payments import Payment
from cambist.core.domain.signing import NotVerified
from cambist.core.usecases.accounts import set_settings
from cambist.core.usecases.sandbox import simulate_payment
from cambist.ports.bank import InvoiceStatus, Pretence
from cambist.ports.notifier import Answer, Letter, Receipt
from tests.houses import WEBHOOK_SECRET, WEBHOOK_URL, TestHouse, open_test_house


class Receiver:
    """Answers every letter alike, and remembers when each came."""

    def __init__(self, house: TestHouse, receipt: Receipt) -> None:
        self.house = house
        self.receipt = receipt
        self.times: list[datetime] = []
        house.postman.post = self.post  # type: ignore[method-assign]  # the house has this one notifier

    async def post(self, letter: Letter) -> Receipt:
        self.house.postman.letters.append(letter)
        self.times.append(self.house.clock.now())
        return self.receipt


def says(status: int) -> Receipt:
    return Receipt(answer=Answer.RESPONDED, status=status)


async def paid(house: TestHouse) -> str:
    payment = await house.created()
    await house.simulate(payment["id"], outcome="paid")
    found: str = payment["id"]
    return found


async def paid_live(house: TestHouse) -> str:
    payment_id = (await house.create(mode="live")).json()["id"]
    async with house.ports.storage.unit() as unit:
        stored = await unit[Payment].get(payment_id)
    assert stored is not None
    await simulate_payment(house.ports, stored, Pretence(status=InvoiceStatus.PAID))
    return stored.id


async def deliveries(house: TestHouse) -> list[Delivery]:
    async with house.ports.storage.unit() as unit:
        return await unit[Delivery].find()


async def statuses(house: TestHouse) -> set[DeliveryStatus]:
    return {delivery.status for delivery in await deliveries(house)}


FAST = [sum(FAST_LADDER[:rung], timedelta()) for rung in range(10)]
FAILURES = [
    (says(500), FAST),
    (says(302), FAST),
    (Receipt(answer=Answer.TIMEOUT), FAST),
    (Receipt(answer=Answer.CONNECTION), FAST),
    (Receipt(answer=Answer.TLS), FAST),
    (Receipt(answer=Answer.BLOCKED), FAST),
    (says(400), [*FAST, *SLOW_LADDER]),
    (says(404), [*FAST, *SLOW_LADDER]),
]


@pytest.mark.parametrize(("receipt", "moments"), FAILURES)
async def test_each_ladder_is_walked_exactly(house: TestHouse, receipt: Receipt, moments: list[timedelta]) -> None:
    receiver = Receiver(house, receipt)
    await paid(house)
    await house.work(8 * 86_400)
    assert [at - receiver.times[0] for at in receiver.times] == moments
    letters = house.postman.letters
    assert [letter.headers["X-Webhook-Attempt"] for letter in letters] == [str(n + 1) for n in range(len(moments))]
    assert len({(letter.headers["X-Webhook-Id"], letter.body) for letter in letters}) == 1
    house.check_signatures()
    assert await statuses(house) == {DeliveryStatus.FAILED}


async def test_a_receiver_that_comes_back_gets_the_event_and_nothing_more(house: TestHouse) -> None:
    receiver = Receiver(house, says(503))
    await paid(house)
    await house.work(6)
    receiver.receipt = says(204)
    await house.work(86_400)
    assert [(later - earlier).total_seconds() for earlier, later in pairwise(receiver.times)] == [1, 2, 4]
    assert await statuses(house) == {DeliveryStatus.DELIVERED}


async def test_behind_an_open_breaker_only_probes_go_out_and_a_success_drains_oldest_first(house: TestHouse) -> None:
    receiver = Receiver(house, says(500))
    for _ in range(4):
        await paid(house)
    await house.work(20)
    async with house.ports.storage.unit() as unit:
        breaker = await unit[Breaker].get(lane_id(house.account.account_id, Mode.TEST))
    assert breaker is not None
    assert breaker.opened_at is not None
    opened = breaker.opened_at
    await house.work(300)
    probes = [(at - opened).total_seconds() for at in receiver.times if at > opened]
    assert probes == [30, 90, 210]
    receiver.receipt = says(200)
    house.postman.letters.clear()
    await house.work(2 * 3600)
    assert await statuses(house) == {DeliveryStatus.DELIVERED}
    ids = [letter.headers["X-Webhook-Id"] for letter in house.postman.letters]
    assert len(ids) == len(set(ids)) == 4
    assert ids[1:] == sorted(ids[1:])
    assert max(delivery.attempts for delivery in await deliveries(house)) <= 10


async def test_a_new_address_closes_the_breaker_at_once(house: TestHouse) -> None:
    receiver = Receiver(house, says(500))
    for _ in range(4):
        await paid(house)
    await house.work(600)
    receiver.receipt = says(200)
    await set_settings(house.ports, house.account.account_id, {"webhook_url": "https://other.example/hooks"})
    await house.work(1)
    assert await statuses(house) == {DeliveryStatus.DELIVERED}
    assert house.postman.letters[-1].url == "https://other.example/hooks"


async def test_one_event_that_is_refused_does_not_block_another(house: TestHouse) -> None:
    receiver = Receiver(house, says(400))
    await paid(house)
    await house.work(60)
    receiver.receipt = says(200)
    other = await paid(house)
    await house.work()
    assert house.postman.bodies[-1]["payment_id"] == other


async def test_a_dead_receiver_of_one_mode_is_no_business_of_the_other(house: TestHouse) -> None:
    receiver = Receiver(house, Receipt(answer=Answer.TIMEOUT))
    for _ in range(5):
        await paid(house)
    await house.work(60)
    receiver.receipt = says(200)
    live = await paid_live(house)
    await house.work()
    assert house.postman.bodies[-1]["payment_id"] == live


async def test_events_wait_until_address_and_secret_are_both_set_and_then_leave_at_once() -> None:
    """SPEC "Events", 2."""
    async with open_test_house(receiver=False) as house:
        payments = [await paid(house) for _ in range(3)]
        await house.work(86_400)
        await set_settings(house.ports, house.account.account_id, {"webhook_url": WEBHOOK_URL})
        await house.work(60)
        assert house.postman.letters == []
        await set_settings(house.ports, house.account.account_id, {"webhook_secret": WEBHOOK_SECRET})
        await house.work()
        assert {body["payment_id"] for body in house.postman.bodies} == set(payments)
        assert len(house.postman.letters) == 3
        house.check_signatures()


async def test_for_24_hours_after_a_rotation_the_old_secret_still_verifies(house: TestHouse) -> None:
    await set_settings(house.ports, house.account.account_id, {"webhook_secret": "another-webhook-secret"})
    await paid(house)
    await house.work()
    house.check_signatures()
    await house.work(86_400)
    house.postman.letters.clear()
    await paid(house)
    await house.work()
    with pytest.raises(NotVerified, match="none of the secrets"):
        house.check_signatures()
