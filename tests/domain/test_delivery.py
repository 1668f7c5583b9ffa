"""The step after a delivery attempt (docs/webhooks.md "When you do not answer")."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.webhooks.delivery import (
    AT_ONCE,
    FAST_BACKOFF,
    LIFETIME,
    SLOW_BACKOFF,
    Outcome,
    after_attempt,
    attempt_of,
    given_up,
    is_money,
    is_too_old,
    last_attempt_id,
    put_off,
    sent_anew,
)
from cambist.core.domain.webhooks.events import Delivery, DeliveryStatus, EventType
from tests.tables import table

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
NOT_MONEY = next(each for each in EventType if not is_money(each))


def fresh(attempts: int = 0, event_type: EventType = EventType.PAYMENT_STATUS_CHANGED) -> Delivery:
    return Delivery(
        id="evt_1",
        account_id="acc_1",
        mode=Mode.LIVE,
        type=event_type,
        status=DeliveryStatus.PENDING,
        created_at=NOON,
        due=AT_ONCE,
        give_up_at=NOON + LIFETIME,
        attempts=attempts,
        first_attempt_at=NOON if attempts else None,
    )


def outcome(
    status: int | None, answer: str = "responded", at: datetime = NOON, *, took: float = 0, probe: bool = False
) -> Outcome:
    return Outcome(
        answer=answer, status=status, note="", sent_at=at, ended_at=at + timedelta(seconds=took), probe=probe
    )


def tried(delivery: Delivery, status: int | None, answer: str = "responded", at: datetime = NOON) -> Delivery:
    return after_attempt(delivery, outcome(status, answer, at))


def test_one_whose_event_cannot_be_read_waits_for_an_hour() -> None:
    assert put_off(fresh(1), NOON) == msgspec.structs.replace(fresh(1), due=NOON + HOUR)


def walked(delivery: Delivery, *statuses: int | None, took: float = 0) -> tuple[Delivery, list[datetime]]:
    """Give these answers in turn, the last one repeatedly, while other deliveries are answered well. Return the final
    delivery and the moments of its attempts."""
    moments: list[datetime] = []
    now, answers = NOON, list(statuses)
    while delivery.status is DeliveryStatus.PENDING:
        assert delivery.due is not None
        now = max(now, delivery.due)
        moments.append(now)
        status = answers.pop(0) if len(answers) > 1 else answers[0]
        delivery = after_attempt(delivery, outcome(status, at=now, took=took))
        now += timedelta(seconds=took)
    return delivery, moments


def since_the_first(moments: list[datetime]) -> list[timedelta]:
    return [moment - moments[0] for moment in moments]


FAST_MOMENTS = [sum(FAST_BACKOFF[:rung], timedelta()) for rung in range(10)]


def test_pauses_of_the_fast_backoff_are_those_of_decisions_7() -> None:
    assert [pause.total_seconds() for pause in FAST_BACKOFF] == [1, 2, 4, 8, 16, 32, 64, 128, 256]


def test_pauses_add_up_to_about_eight_and_a_half_minutes() -> None:
    """10 attempts, and some 8.5 minutes of pauses (docs/webhooks.md "When you do not answer")."""
    assert sum(FAST_BACKOFF, timedelta()) == timedelta(seconds=511)


def test_the_slow_backoff_is_that_of_decisions_7() -> None:
    assert [moment / HOUR for moment in SLOW_BACKOFF] == [1, 5, 17, 41]


@table("status", [500, 302, None, 408 - 100])
@table("event_type", [each for each in EventType if not is_money(each)])
def test_event_not_about_money_gets_ten_attempts_and_fails(status: int | None, event_type: EventType) -> None:
    delivery, moments = walked(fresh(event_type=event_type), status)
    assert (delivery.status, delivery.attempts, delivery.due) == (DeliveryStatus.FAILED, 10, None)
    assert tuple(later - earlier for earlier, later in pairwise(moments)) == FAST_BACKOFF


def test_a_pause_begins_when_the_attempt_ended() -> None:
    """A receiver that is silent for the whole 10 seconds is not called again at once."""
    _, moments = walked(fresh(event_type=NOT_MONEY), None, took=10)
    assert tuple(later - earlier - timedelta(seconds=10) for earlier, later in pairwise(moments)) == FAST_BACKOFF


@table("status", [400, 401, 404, 408, 410, 422, 429, 499, 302, 500, 503, None])
def test_money_event_that_alone_fails_is_retried_at_1_5_17_and_41_hours(
    status: int | None,
) -> None:
    """See docs/webhooks.md "When you do not answer". Where nobody is answered well it waits with the breaker:
    test_breaker.py."""
    delivery, moments = walked(fresh(), status)
    assert (delivery.status, delivery.attempts) == (DeliveryStatus.FAILED, 14)
    assert since_the_first(moments) == [*FAST_MOMENTS, *SLOW_BACKOFF]


@table("event_type", EventType)
def test_the_slow_backoff_is_for_money_events_only(event_type: EventType) -> None:
    """Payments, payouts, exchanges and refunds are money (docs/webhooks.md "When you do not answer")."""
    delivery, _ = walked(fresh(event_type=event_type), 400)
    money = event_type.value.startswith(("payment.", "withdrawal.", "exchange.", "refund."))
    assert delivery.attempts == (14 if money else 10)


@pytest.mark.parametrize(
    "answers",
    [
        pytest.param([500] * 9 + [400], id="4xx at the end of the fast one"),
        pytest.param([400] * 10 + [500, None, 302, 503], id="other failures on the slow one"),
    ],
)
def test_the_slow_backoff_is_walked_to_its_end_whatever_is_answered(answers: list[int | None]) -> None:
    assert walked(fresh(), *answers)[0].attempts == 14


def test_returning_receiver_gets_waiting_events_on_a_whole_backoff() -> None:
    """The event waits with the breaker (docs/webhooks.md "When you do not answer"): the receiver was given up, not the
    event."""
    end = NOON + HOUR
    waiting = after_attempt(walked_to(9, 503), outcome(503, at=end), receiver_away=True)
    assert (waiting.status, waiting.attempts, waiting.give_up_at) == (DeliveryStatus.PENDING, 10, NOON + LIFETIME)
    assert waiting.due == end + timedelta(seconds=1)
    ended, moments = walked(msgspec.structs.replace(waiting, due=end), 400)
    assert (ended.status, ended.attempts) == (DeliveryStatus.FAILED, 24)
    assert since_the_first(moments) == [*FAST_MOMENTS, *SLOW_BACKOFF]


def test_event_held_up_past_a_slow_attempt_skips_that_attempt() -> None:
    delivery = walked_to(10, 400)
    assert delivery.due == NOON + HOUR
    late = tried(delivery, 400, at=NOON + 6 * HOUR)
    assert late.due == NOON + 17 * HOUR
    assert tried(late, 400, at=NOON + 50 * HOUR).status is DeliveryStatus.FAILED


def walked_to(attempts: int, status: int | None) -> Delivery:
    delivery = fresh()
    for _ in range(attempts):
        delivery = tried(delivery, status, at=max(NOON, delivery.due or NOON))
    return delivery


@table("status", [200, 201, 202, 204, 206, 226, 299])
def test_any_2xx_closes_the_delivery(status: int) -> None:
    """Any 2xx closes the delivery (docs/webhooks.md "When you do not answer")."""
    delivery = tried(fresh(attempts=3), status)
    assert (delivery.status, delivery.due, delivery.give_up_at) == (DeliveryStatus.DELIVERED, None, None)
    assert (delivery.delivered_at, delivery.attempts) == (NOON, 4)


@table("status", [100, 101, 199, 300, 301, 302, 303, 304, 307, 308, 400, 404, 410, 429, 500, 503, 599])
def test_every_other_status_and_a_redirect_is_a_failure_and_is_retried(status: int) -> None:
    """All but a 2xx is a failure, and is tried again (docs/webhooks.md "When you do not answer")."""
    delivery = tried(fresh(), status)
    assert (delivery.status, delivery.delivered_at) == (DeliveryStatus.PENDING, None)
    assert delivery.due == NOON + timedelta(seconds=1)


@table("answer", ["timeout", "connection", "tls", "blocked"])
def test_no_answer_at_all_counts_as_an_attempt_like_any_other(answer: str) -> None:
    """An address that the guard blocks walks the same backoff: the merchant may correct it meanwhile."""
    delivery = tried(fresh(attempts=1), None, answer)
    assert (delivery.attempts, delivery.due) == (2, NOON + timedelta(seconds=2))


def test_the_last_attempt_may_still_deliver() -> None:
    assert tried(walked_to(9, 500), 200).status is DeliveryStatus.DELIVERED
    assert tried(walked_to(13, 400), 200, at=NOON + 41 * HOUR).status is DeliveryStatus.DELIVERED


def test_delivered_event_stays_delivered_when_a_slower_worker_fails() -> None:
    """Two workers may send one event (a lease ended). "Any 2xx closes the delivery", whichever worker received it."""
    delivered = tried(fresh(), 200)
    after = tried(delivered, 500, at=NOON + timedelta(seconds=5))
    assert (after.status, after.delivered_at, after.due) == (DeliveryStatus.DELIVERED, NOON, None)
    assert after.attempts == 2


def test_a_late_2xx_delivers_what_had_failed_or_was_held() -> None:
    failed = walked_to(14, 500)
    assert failed.status is DeliveryStatus.FAILED
    assert tried(failed, 200).status is DeliveryStatus.DELIVERED
    assert tried(failed, 500).status is DeliveryStatus.FAILED
    held = sent_anew(fresh(), receives=False, now=NOON)
    assert tried(held, 500).status is DeliveryStatus.HELD
    assert tried(held, 200).status is DeliveryStatus.DELIVERED


def test_a_probe_is_no_attempt_and_moves_no_backoff() -> None:
    """A probe counts for no attempt (docs/webhooks.md "When you do not answer")."""
    before = walked_to(3, 500)
    after = after_attempt(before, outcome(500, at=NOON + HOUR, probe=True))
    assert (after.attempts, after.due, after.status) == (before.attempts, before.due, before.status)
    assert after.probes == 1
    delivered = after_attempt(after, outcome(200, at=NOON + HOUR, probe=True))
    assert (delivered.status, delivered.attempts, delivered.probes) == (DeliveryStatus.DELIVERED, 3, 2)
    assert after_attempt(fresh(), outcome(500, probe=True)).first_attempt_at is None


class TestRows:
    def test_webhooks_are_numbered_by_attempts(self) -> None:
        delivery, rows = fresh(), []
        for each in (outcome(500), outcome(500, probe=True), outcome(500, probe=True), outcome(200)):
            rows.append(attempt_of(delivery, each))
            delivery = after_attempt(delivery, each)
        assert [(row.number, row.probe) for row in rows] == [(1, False), (2, True), (2, True), (2, False)]
        assert [row.id for row in rows] == sorted({row.id for row in rows})
        assert all("evt_1:" <= row.id < "evt_1;" for row in rows)
        assert last_attempt_id(delivery) == rows[-1].id

    def test_facts_of_the_webhook_are_in_its_row(self) -> None:
        told = Outcome(
            answer="tls",
            status=None,
            note="certificate: expired",
            sent_at=NOON,
            ended_at=NOON + timedelta(seconds=2),
            took_ms=1999,
        )
        row = attempt_of(fresh(attempts=2), told)
        assert (row.event_id, row.number, row.probe, row.sent_at) == ("evt_1", 3, False, NOON)
        assert (row.answer, row.status, row.note, row.took_ms) == ("tls", None, "certificate: expired", 1999)


class TestResend:
    """A resend begins a new backoff schedule; the numbering of attempts continues."""

    @table("ended", [fresh(), walked_to(10, 500), walked_to(14, 400), tried(fresh(), 200)])
    def test_resent_event_is_due_at_once_with_a_whole_backoff(self, ended: Delivery) -> None:
        again = sent_anew(ended, receives=True, now=NOON + 100 * HOUR)
        assert (again.status, again.due, again.attempts) == (DeliveryStatus.PENDING, AT_ONCE, ended.attempts)
        assert again.delivered_at == ended.delivered_at
        delivery, moments = walked(again, 500)
        assert (delivery.status, delivery.attempts) == (DeliveryStatus.FAILED, ended.attempts + 14)
        assert since_the_first(moments) == [*FAST_MOMENTS, *SLOW_BACKOFF]

    def test_the_slow_backoff_counts_from_the_first_attempt_of_the_new_one(self) -> None:
        again = sent_anew(walked_to(14, 400), receives=True, now=NOON + 100 * HOUR)
        _, moments = walked(again, 400)
        assert since_the_first(moments) == [*FAST_MOMENTS, *SLOW_BACKOFF]

    def test_a_resend_of_what_was_delivered_that_is_answered_badly_fails(self) -> None:
        again = sent_anew(tried(fresh(), 200), receives=True, now=NOON)
        ended, _ = walked(again, 500)
        assert (ended.status, ended.delivered_at) == (DeliveryStatus.FAILED, NOON)
        later = NOON + HOUR
        assert tried(again, 200, at=later).delivered_at == later

    def test_event_without_a_receiver_is_held(self) -> None:
        for each in (fresh(), walked_to(10, 500), tried(fresh(), 200)):
            held = sent_anew(each, receives=False, now=NOON)
            assert (held.status, held.due, held.give_up_at) == (DeliveryStatus.HELD, None, None)


class TestAge:
    def test_after_seven_days_it_is_given_up_and_can_be_sent_again(self) -> None:
        """An event older than 7 days is `failed`, and can still be sent again (docs/webhooks.md "When you do not
        answer")."""
        delivery = sent_anew(fresh(), receives=True, now=NOON)
        assert not is_too_old(delivery, NOON + timedelta(days=7) - timedelta(seconds=1))
        assert is_too_old(delivery, NOON + timedelta(days=7))
        failed = given_up(delivery)
        assert (failed.status, failed.due) == (DeliveryStatus.FAILED, None)
        assert not is_too_old(sent_anew(failed, receives=True, now=NOON + timedelta(days=8)), NOON + timedelta(days=9))

    def test_held_event_has_seven_days_from_its_release(self) -> None:
        """Once both are set they are sent, however long that took (docs/webhooks.md "Webhooks")."""
        held = sent_anew(fresh(), receives=False, now=NOON)
        assert not is_too_old(held, NOON + timedelta(days=300))
        released = sent_anew(held, receives=True, now=NOON + timedelta(days=300))
        assert not is_too_old(released, NOON + timedelta(days=306))


@given(st.lists(st.none() | st.integers(100, 599), min_size=1, max_size=20), st.sampled_from(EventType))
def test_delivery_has_a_next_attempt_exactly_while_pending(statuses: list[int | None], event_type: EventType) -> None:
    delivery, now = fresh(event_type=event_type), NOON
    for status in statuses:
        now = max(now, delivery.due or now)
        delivery = tried(delivery, status, at=now)
        assert (delivery.due is not None) == (delivery.status is DeliveryStatus.PENDING)
        assert delivery.due is None or delivery.due > now
        assert (delivery.delivered_at is not None) == (delivery.status is DeliveryStatus.DELIVERED)
    assert (delivery.status is DeliveryStatus.DELIVERED) == any(
        status is not None and status // 100 == 2 for status in statuses
    )
    assert delivery.attempts == len(statuses)


def asks_to_wait(seconds: int, *, status: int = 503, at: datetime = NOON) -> Outcome:
    return msgspec.structs.replace(outcome(status, at=at), retry_after=seconds)


@table(("asked", "pause"), [(0, 4), (3, 4), (5, 5), (3600, 3600)])
def test_retry_after_lengthens_a_pause_and_never_shortens_it(asked: int, pause: int) -> None:
    after = after_attempt(fresh(attempts=2), asks_to_wait(asked))
    assert after.due == NOON + timedelta(seconds=pause)
    assert after.attempts == 3


def test_retry_after_lengthens_the_slow_backoff_too() -> None:
    late = NOON + HOUR - timedelta(minutes=1)
    after = after_attempt(fresh(attempts=9), asks_to_wait(3600, at=late))
    assert after.due == late + HOUR


def test_retry_after_gives_no_attempt_beyond_the_last() -> None:
    last = after_attempt(fresh(attempts=9, event_type=NOT_MONEY), asks_to_wait(3600))
    assert (last.status, last.due) == (DeliveryStatus.FAILED, None)
