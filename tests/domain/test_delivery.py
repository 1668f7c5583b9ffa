"""What comes after an attempt (SPEC "Events", 1 and 3; DECISIONS 7)."""

import itertools
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.core.domain.accounts import Mode
from cambist.core.domain.delivery import (
    AT_ONCE,
    FAST_LADDER,
    LIFETIME,
    SLOW_LADDER,
    Outcome,
    after_attempt,
    attempt_of,
    given_up,
    held,
    is_too_old,
    sent_anew,
)
from cambist.core.domain.events import Delivery, DeliveryStatus, EventType

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def fresh(attempts: int = 0, event_type: EventType = EventType.PAYMENT_STATUS_CHANGED) -> Delivery:
    held_one = Delivery(
        id="evt_1",
        account_id="acc_1",
        mode=Mode.LIVE,
        type=event_type,
        status=DeliveryStatus.HELD,
        created_at=NOON,
    )
    first = NOON if attempts else None
    pending = sent_anew(held_one, receives=True, now=NOON)
    return msgspec.structs.replace(pending, attempts=attempts, first_attempt_at=first)


def outcome(status: int | None, at: datetime = NOON, *, answer: str = "responded", probe: bool = False) -> Outcome:
    return Outcome(answer=answer, status=status, note="why", sent_at=at, ended_at=at, probe=probe)


def walk(statuses: list[int | None]) -> tuple[Delivery, list[datetime]]:
    """Try at every moment that the ladder names, with these statuses (the last one stays)."""
    delivery, moments = fresh(), [NOON]
    while True:
        status = statuses[min(len(moments), len(statuses)) - 1]
        delivery = after_attempt(delivery, outcome(status, moments[-1]))
        if delivery.due is None:
            return delivery, moments
        moments.append(delivery.due)


def test_pauses_of_the_fast_ladder_are_those_of_decisions_7_and_about_eight_and_a_half_minutes() -> None:
    """SPEC "Events", 3: "10 attempts with total pauses of about 8.5 minutes"."""
    assert [pause.total_seconds() for pause in FAST_LADDER] == [1, 2, 4, 8, 16, 32, 64, 128, 256]
    assert sum(FAST_LADDER, timedelta()) == timedelta(seconds=511)
    assert [after / timedelta(hours=1) for after in SLOW_LADDER] == [1, 5, 17, 41]


@pytest.mark.parametrize("status", [500, 503, 302, 199, None])
def test_without_an_answer_of_4xx_the_fast_ladder_is_all(status: int | None) -> None:
    delivery, moments = walk([status])
    assert (delivery.status, delivery.attempts) == (DeliveryStatus.FAILED, 10)
    assert [later - earlier for earlier, later in itertools.pairwise(moments)] == list(FAST_LADDER)


@pytest.mark.parametrize("status", [400, 404, 410, 422, 429, 499])
def test_a_money_event_rejected_with_4xx_goes_on_for_41_hours(status: int) -> None:
    delivery, moments = walk([status])
    assert (delivery.status, delivery.attempts) == (DeliveryStatus.FAILED, 14)
    assert [moment - NOON for moment in moments[10:]] == list(SLOW_LADDER)


def test_what_counts_for_the_slow_ladder_is_the_last_answer_of_the_fast_one() -> None:
    assert walk([400] * 9 + [500])[0].attempts == 10
    assert walk([500] * 9 + [400])[0].attempts == 14


def test_whoever_is_on_the_slow_ladder_walks_it_to_its_end() -> None:
    assert walk([400] * 10 + [500])[0].attempts == 14


def test_a_slow_rung_that_a_breaker_held_up_past_the_next_is_left_out() -> None:
    delivery = after_attempt(fresh(attempts=9), outcome(400, NOON + timedelta(hours=6)))
    assert delivery.due == NOON + timedelta(hours=17)


@pytest.mark.parametrize("status", [200, 201, 202, 204, 206, 226, 299])
def test_any_2xx_closes_the_delivery(status: int) -> None:
    """SPEC "Events", 1."""
    delivery = after_attempt(fresh(attempts=3), outcome(status))
    assert (delivery.status, delivery.delivered_at, delivery.due) == (DeliveryStatus.DELIVERED, NOON, None)


@pytest.mark.parametrize("status", [100, 199, 300, 301, 302, 307, 308, 400, 404, 410, 429, 500, 503, 599, None])
def test_everything_else_is_a_failure_and_is_retried(status: int | None) -> None:
    """SPEC "Events", 1: "Anything else, a `3xx` redirect, or a timeout is a failure and is retried"."""
    delivery = after_attempt(fresh(), outcome(status))
    assert (delivery.status, delivery.due) == (DeliveryStatus.PENDING, NOON + timedelta(seconds=1))


def test_a_probe_counts_as_no_attempt_and_only_ever_delivers() -> None:
    before = fresh(attempts=10)
    missed = after_attempt(before, outcome(500, probe=True))
    assert (missed.attempts, missed.probes, missed.due, missed.status) == (10, 1, AT_ONCE, DeliveryStatus.PENDING)
    assert after_attempt(before, outcome(200, probe=True)).status is DeliveryStatus.DELIVERED


def test_every_letter_has_a_row_of_its_own_in_order() -> None:
    delivery, rows = fresh(), []
    for probe in (False, True, False):
        rows.append(attempt_of(delivery, outcome(500, probe=probe)))
        delivery = after_attempt(delivery, outcome(500, probe=probe))
    assert [(row.number, row.probe) for row in rows] == [(1, False), (2, True), (2, False)]
    assert [row.id for row in rows] == sorted({row.id for row in rows})
    assert (rows[0].answer, rows[0].status, rows[0].note) == ("responded", 500, "why")


def test_what_was_delivered_stays_delivered_when_a_slower_worker_fails() -> None:
    """Two workers may send one event (a lease ended); "any 2xx closes the delivery" whoever got it."""
    delivered = after_attempt(fresh(), outcome(200))
    after = after_attempt(delivered, outcome(500, NOON + timedelta(seconds=5)))
    assert (after.status, after.delivered_at, after.due) == (DeliveryStatus.DELIVERED, NOON, None)


def test_a_late_2xx_delivers_what_had_failed() -> None:
    failed = walk([500])[0]
    assert after_attempt(failed, outcome(200)).status is DeliveryStatus.DELIVERED


def test_older_than_7_days_it_is_given_up_and_can_still_be_sent_anew() -> None:
    delivery = fresh()
    assert not is_too_old(delivery, NOON + LIFETIME - timedelta(seconds=1))
    assert is_too_old(delivery, NOON + LIFETIME)
    failed = given_up(delivery)
    assert (failed.status, failed.due) == (DeliveryStatus.FAILED, None)
    again = sent_anew(failed, receives=True, now=NOON + LIFETIME)
    assert (again.status, again.due, is_too_old(again, NOON + LIFETIME)) == (DeliveryStatus.PENDING, AT_ONCE, False)


def test_a_resend_begins_a_new_ladder_and_goes_on_numbering() -> None:
    again = sent_anew(walk([500])[0], receives=True, now=NOON)
    after = after_attempt(again, outcome(500))
    assert (attempt_of(again, outcome(500)).number, after.attempts) == (11, 11)
    assert after.due == NOON + FAST_LADDER[0]


def test_without_a_receiver_it_is_held() -> None:
    assert held(fresh()).status is sent_anew(fresh(), receives=False, now=NOON).status is DeliveryStatus.HELD


@given(st.lists(st.none() | st.integers(100, 599), min_size=1, max_size=20))
def test_there_is_a_next_attempt_exactly_while_it_is_pending(statuses: list[int | None]) -> None:
    delivery, moments = walk(statuses)
    assert (delivery.due is not None) == (delivery.status is DeliveryStatus.PENDING)
    assert delivery.attempts == len(moments) <= 14
    assert moments == sorted(moments)
    assert moments[-1] - moments[0] <= timedelta(hours=41)
