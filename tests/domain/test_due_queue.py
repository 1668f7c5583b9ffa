"""Due deliveries, read page by page (docs/webhooks.md "When you do not answer"): the queue takes each once, and
deliveries in flight do not hide later ones."""

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.webhooks.delivery import AT_ONCE
from cambist.core.domain.webhooks.due_queue import BATCH, DueQueue
from cambist.core.domain.webhooks.events import Delivery, DeliveryStatus, EventType
from cambist.core.domain.webhooks.steps import ReadDue
from tests.domain.endpoint_kit import event
from tests.tables import table

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def pending(number: int, due: datetime = AT_ONCE) -> Delivery:
    return Delivery(
        id=f"{number:05}",
        account_id="acc_1",
        mode=Mode.TEST,
        type=EventType.PAYMENT_STATUS_CHANGED,
        status=DeliveryStatus.PENDING,
        created_at=NOON,
        due=due,
    )


def later(number: int) -> Delivery:
    """A delivery that was tried before, and is due by its timer."""
    return pending(number, NOON - timedelta(seconds=1000 - number))


def take(queue: DueQueue, stored: Sequence[Delivery]) -> ReadDue:
    """Read the next page of the stored deliveries, as a storage would, and return the page."""
    page = queue.page()
    after = page.after
    found = [each for each in stored if after is None or (each.due == AT_ONCE and each.id > after)]
    found = sorted(found, key=lambda each: (each.due, each.id))[: page.limit]
    queue.take(page, found, {each.id: event(each) for each in found}, NOON)
    return page


def test_many_deliveries_due_at_once_are_read_page_after_page() -> None:
    queue, stored = DueQueue(), [pending(number) for number in range(2 * BATCH + 1)]
    assert [take(queue, stored) for _ in range(3)] == [
        ReadDue(BATCH, None),
        ReadDue(BATCH, f"{BATCH - 1:05}"),
        ReadDue(BATCH, f"{2 * BATCH - 1:05}"),
    ]
    assert [each.delivery for each in queue.ready] == stored
    assert (queue.complete, queue.empty) == (False, False), "timers may have come due behind them"
    assert take(queue, stored) == ReadDue(BATCH + len(stored), None)
    assert (queue.complete, queue.empty) == (True, True)


@table("at_once", [0, BATCH - 1])
def test_deliveries_in_hand_hide_no_later_timer(at_once: int) -> None:
    queue, stored = DueQueue(), [(pending if number < at_once else later)(number) for number in range(BATCH + 1)]
    assert [take(queue, stored) for _ in range(2)] == [ReadDue(BATCH, None), ReadDue(2 * BATCH, None)]
    assert [each.delivery for each in queue.ready] == stored
    assert queue.complete


def test_dropped_deliveries_are_read_again_but_not_the_chosen_one() -> None:
    queue, stored = DueQueue(), [pending(number) for number in range(BATCH + 1)]
    take(queue, stored)
    queue.keep_only(queue.ready[1])
    assert [each.delivery for each in queue.ready] == [stored[1]]
    assert take(queue, stored) == ReadDue(BATCH + 1, None)
    assert [each.delivery.id for each in queue.ready] == ["00001", "00000", *(each.id for each in stored[2:])]


def test_committed_delivery_that_is_due_again_is_taken_again() -> None:
    queue, stored = DueQueue(), [pending(0), pending(1)]
    take(queue, stored)
    queue.committed([stored[0]])
    queue.ready.clear()
    take(queue, stored)
    assert [each.delivery for each in queue.ready] == [stored[0]]


@table("seed", range(10))
def test_every_due_delivery_is_taken_exactly_once(seed: int) -> None:
    chance = random.Random(seed)
    numbers = iter(range(100_000))
    queue, stored, taken = DueQueue(), list[Delivery](), list[str]()
    for _ in range(40):
        for _ in range(chance.choice([0, 0, 5, 300])):
            stored.append(chance.choice([pending, later])(next(numbers)))
        take(queue, stored)
        for _ in range(chance.randrange(len(queue.ready) + 1)):
            done = queue.ready.popleft().delivery
            taken.append(done.id)
            stored.remove(done)
            queue.committed([done])
    reads = 0
    while not queue.complete:
        take(queue, stored)
        reads += 1
    assert reads <= len(stored) // BATCH + 2
    taken += [each.delivery.id for each in queue.ready]
    assert sorted(taken) == [f"{number:05}" for number in range(next(numbers))]
