"""What comes after an attempt (SPEC "Events", 1 and 3; DECISIONS 7)."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.core.domain.accounts import Mode
from cambist.core.domain.delivery import FAST_LADDER, Next, after_attempt
from cambist.core.domain.events import Delivery, DeliveryStatus

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def fresh(attempts: int = 0) -> Delivery:
    return Delivery(
        id="evt_1",
        account_id="acc_1",
        mode=Mode.LIVE,
        status=DeliveryStatus.PENDING,
        created_at=NOON,
        attempts=attempts,
    )


def tried(delivery: Delivery, status: int | None, answer: str = "responded", at: datetime = NOON) -> Next:
    return after_attempt(delivery, answer=answer, status=status, note="", now=at)


def test_pauses_of_the_fast_ladder_are_those_of_decisions_7() -> None:
    assert [pause.total_seconds() for pause in FAST_LADDER] == [1, 2, 4, 8, 16, 32, 64, 128, 256]


def test_pauses_add_up_to_about_eight_and_a_half_minutes() -> None:
    """SPEC "Events", 3: "10 attempts with total pauses of about 8.5 minutes"."""
    assert sum(FAST_LADDER, timedelta()) == timedelta(seconds=511)


def test_a_receiver_that_never_answers_well_gets_ten_attempts_at_their_times_and_the_delivery_fails() -> None:
    delivery, now, moments = fresh(), NOON, [NOON]
    for _ in range(10):
        step = tried(delivery, 500, at=now)
        delivery = step.delivery
        if step.again_at is None:
            break
        assert delivery.status is DeliveryStatus.PENDING
        now = step.again_at
        moments.append(now)
    assert delivery.status is DeliveryStatus.FAILED
    assert delivery.attempts == len(moments) == 10
    assert tuple(later - earlier for earlier, later in pairwise(moments)) == FAST_LADDER


@pytest.mark.parametrize("status", [200, 201, 202, 204, 206, 226, 299])
def test_any_2xx_closes_the_delivery(status: int) -> None:
    """SPEC "Events", 1."""
    step = tried(fresh(attempts=3), status)
    assert step.again_at is None
    assert step.delivery.status is DeliveryStatus.DELIVERED
    assert step.delivery.delivered_at == NOON
    assert step.delivery.attempts == 4


@pytest.mark.parametrize(
    "status", [100, 101, 199, 300, 301, 302, 303, 304, 307, 308, 400, 404, 410, 429, 500, 503, 599]
)
def test_every_other_status_and_a_redirect_is_a_failure_and_is_retried(status: int) -> None:
    """SPEC "Events", 1: "Anything else, a `3xx` redirect, or a timeout is a failure and is retried"."""
    step = tried(fresh(), status)
    assert step.delivery.status is DeliveryStatus.PENDING
    assert step.delivery.delivered_at is None
    assert step.again_at == NOON + timedelta(seconds=1)


@pytest.mark.parametrize("answer", ["timeout", "connection", "tls", "blocked"])
def test_no_answer_at_all_counts_as_an_attempt_like_any_other(answer: str) -> None:
    """An address that the guard blocks walks the same ladder: the merchant may correct it meanwhile."""
    step = tried(fresh(attempts=1), None, answer)
    assert step.delivery.attempts == 2
    assert step.delivery.status is DeliveryStatus.PENDING
    assert step.again_at == NOON + timedelta(seconds=2)


def test_the_last_attempt_may_still_deliver() -> None:
    step = tried(fresh(attempts=9), 200)
    assert step.delivery.status is DeliveryStatus.DELIVERED


def test_the_facts_of_the_attempt_are_entered_and_nothing_else_changes() -> None:
    before = fresh(attempts=2)
    step = after_attempt(before, answer="tls", status=None, note="certificate: expired", now=NOON)
    after = step.delivery
    assert (after.last_attempt_at, after.last_status, after.last_answer, after.last_note) == (
        NOON,
        None,
        "tls",
        "certificate: expired",
    )
    assert (after.id, after.account_id, after.mode, after.created_at, after.version) == (
        before.id,
        before.account_id,
        before.mode,
        before.created_at,
        before.version,
    )


def test_what_was_delivered_stays_delivered_when_a_slower_worker_fails() -> None:
    """Two workers may send one event (a lease ended); "any 2xx closes the delivery" whoever got it."""
    delivered = tried(fresh(), 200).delivery
    step = tried(delivered, 500, at=NOON + timedelta(seconds=5))
    assert step.delivery.status is DeliveryStatus.DELIVERED
    assert step.delivery.delivered_at == NOON
    assert step.again_at is None


def test_a_late_2xx_delivers_what_had_failed() -> None:
    failed = tried(fresh(attempts=9), 500).delivery
    assert failed.status is DeliveryStatus.FAILED
    assert tried(failed, 200).delivery.status is DeliveryStatus.DELIVERED


@given(st.lists(st.none() | st.integers(100, 599), min_size=1, max_size=15))
def test_there_is_a_next_attempt_exactly_while_it_is_pending(statuses: list[int | None]) -> None:
    delivery = fresh()
    for status in statuses:
        step = tried(delivery, status)
        delivery = step.delivery
        assert (step.again_at is not None) == (delivery.status is DeliveryStatus.PENDING)
        assert (delivery.delivered_at is not None) == (delivery.status is DeliveryStatus.DELIVERED)
    assert (delivery.status is DeliveryStatus.DELIVERED) == any(
        status is not None and status // 100 == 2 for status in statuses
    )
    assert delivery.attempts == len(statuses)
