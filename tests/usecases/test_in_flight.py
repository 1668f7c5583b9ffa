"""What a service expects of its receiver's breaker (docs/webhooks.md "When you do not answer"), between two entries."""

from datetime import UTC, datetime

import pytest

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.webhooks.breaker import FROM_EVENTS, OPENS_AFTER, after_outcome, new_breaker
from cambist.core.domain.webhooks.delivery import Outcome
from cambist.core.domain.webhooks.events import Delivery, DeliveryStatus, EventType
from cambist.core.usecases.webhooks.in_flight import InFlightBreaker
from cambist.core.usecases.webhooks.results import EndpointKey, Sent

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ENDPOINT = EndpointKey("acc_1", Mode.TEST)


def sent(number: int, status: int | None) -> Sent:
    delivery = Delivery(
        id=f"evt_{number}",
        account_id="acc_1",
        mode=Mode.TEST,
        type=EventType.KYC_STATUS_CHANGED,
        status=DeliveryStatus.PENDING,
        created_at=NOW,
    )
    return Sent(delivery, Outcome(answer="responded", status=status, note="", sent_at=NOW, ended_at=NOW))


@pytest.fixture
def in_flight() -> InFlightBreaker:
    return InFlightBreaker(ENDPOINT, 8)


def note(in_flight: InFlightBreaker, each: Sent) -> None:
    in_flight.note(each.delivery, each.outcome)


def test_a_receiver_that_was_never_posted_to_gets_all_there_is_room_for(in_flight: InFlightBreaker) -> None:
    assert (in_flight.stored, in_flight.expected, in_flight.room) == (None, new_breaker("acc_1", Mode.TEST), 8)


def test_failures_that_are_not_entered_yet_leave_less_room_and_open_it(in_flight: InFlightBreaker) -> None:
    """A receiver that is away gets ten webhooks, not a swarm."""
    rooms = []
    for number in range(OPENS_AFTER):
        rooms.append(in_flight.room)
        note(in_flight, sent(number % FROM_EVENTS, 503))
    assert rooms == [8, 8, 8, 7, 6, 5, 4, 3, 2, 1]
    assert in_flight.expected.is_open
    assert in_flight.room == 0


def test_a_good_answer_makes_room_again(in_flight: InFlightBreaker) -> None:
    for number in range(5):
        note(in_flight, sent(number, None))
    note(in_flight, sent(9, 200))
    assert (in_flight.expected.failures, in_flight.room) == (0, 8)


@pytest.mark.parametrize("failures", [0, 3])
def test_what_came_while_others_were_entered_counts_once(in_flight: InFlightBreaker, failures: int) -> None:
    """Whether or not what was entered made a breaker: deliveries that are too old make none."""
    late = sent(7, 503)
    note(in_flight, late)
    stored = new_breaker("acc_1", Mode.TEST) if failures else None
    for number in range(failures):
        assert stored is not None
        stored = after_outcome(stored, f"evt_{number}", sent(number, 503).outcome)
    in_flight.take(stored, [late])
    assert in_flight.stored == stored
    assert in_flight.expected.failures == failures + 1
