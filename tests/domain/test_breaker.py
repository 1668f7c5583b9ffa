"""The circuit breaker of a receiver (docs/webhooks.md "When you do not answer")."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.webhooks.breaker import (
    FROM_EVENTS,
    OPENS_AFTER,
    PAUSES,
    Breaker,
    after_delivery,
    after_outcome,
    closed,
    counts_against,
    endpoint_id,
    new_breaker,
    room,
)
from cambist.core.domain.webhooks.delivery import AT_ONCE, FAST_BACKOFF, LIFETIME, SLOW_BACKOFF, Outcome
from cambist.core.domain.webhooks.endpoints import EndpointKey
from cambist.core.domain.webhooks.events import Delivery, DeliveryStatus, EventType
from tests.tables import table

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def outcome(
    status: int | None = None, answer: str = "responded", *, at: datetime = NOON, took: float = 0, probe: bool = False
) -> Outcome:
    return Outcome(
        answer=answer, status=status, note="why", sent_at=at, ended_at=at + timedelta(seconds=took), probe=probe
    )


def failing(times: int, events: int = 3, breaker: Breaker | None = None) -> Breaker:
    """So many failures in a row, of so many events in turn."""
    breaker = breaker or new_breaker("acc_1", Mode.LIVE)
    for number in range(times):
        breaker = after_outcome(breaker, f"evt_{number % events}", outcome(500))
    return breaker


def test_retry_after_lengthens_the_breakers_pauses() -> None:
    asked = msgspec.structs.replace(outcome(503), retry_after=3600)
    opened = after_outcome(failing(OPENS_AFTER - 1), "evt_1", asked)
    assert opened.next_probe_at == NOON + timedelta(hours=1)
    probed = after_outcome(failing(OPENS_AFTER), "evt_1", msgspec.structs.replace(asked, probe=True))
    assert probed.next_probe_at == NOON + timedelta(hours=1)


COUNTING = [
    (None, "timeout", True),
    (None, "connection", True),
    (None, "tls", True),
    (None, "blocked", True),
    *((status, "responded", True) for status in (100, 199, 300, 301, 302, 304, 308, 399, 408, 429, 500, 502, 503, 599)),
    *((status, "responded", False) for status in (200, 204, 299, 400, 401, 403, 404, 409, 410, 422, 451, 499)),
]


@table(("status", "answer", "counts"), COUNTING)
def test_failures_count_against_a_receiver(status: int | None, answer: str, counts: bool) -> None:
    """No answer, 3xx, 408, 429 and 5xx count; other 4xx do not (docs/webhooks.md "When you do not answer")."""
    assert counts_against(outcome(status, answer)) is counts


@table(
    ("failures", "events", "opens"),
    [(9, 3, False), (10, 3, True), (10, 10, True), (10, 2, False), (50, 2, False), (50, 1, False), (10, 1, False)],
)
def test_breaker_opens_after_10_failures_in_a_row_from_3_events(failures: int, events: int, opens: bool) -> None:
    breaker = failing(failures, events)
    assert breaker.is_open is opens
    assert breaker.opened_at == (NOON if opens else None)
    assert breaker.next_probe_at == (NOON + 30 * SECOND if opens else None)


def test_a_third_event_opens_it_when_two_others_have_failed_often_enough() -> None:
    breaker = failing(30, 2)
    assert after_outcome(breaker, "evt_2", outcome(500)).is_open


def test_a_success_in_between_begins_the_row_anew() -> None:
    breaker = after_outcome(failing(9), "evt_9", outcome(200))
    assert (breaker.failures, breaker.failed_events) == (0, ())
    assert not failing(9, breaker=breaker).is_open
    assert failing(10, breaker=breaker).is_open


@table("status", [400, 401, 404, 410, 422])
def test_other_4xx_neither_count_nor_reset_the_failures(status: int) -> None:
    breaker = after_outcome(failing(9), "evt_9", outcome(status))
    assert breaker.failures == 9
    assert after_outcome(breaker, "evt_9", outcome(500)).is_open
    breaker = new_breaker("acc_1", Mode.LIVE)
    for number in range(50):
        breaker = after_outcome(breaker, f"evt_{number}", outcome(status))
    assert (breaker.is_open, breaker.failures) == (False, 0)


def fresh(event_type: str = EventType.PAYMENT_STATUS_CHANGED) -> Delivery:
    return Delivery(
        id="evt_0",
        account_id="acc_1",
        mode=Mode.LIVE,
        type=event_type,
        status=DeliveryStatus.PENDING,
        created_at=NOON,
        due=AT_ONCE,
        give_up_at=NOON + LIFETIME,
    )


BACKOFF_SECONDS = sum(pause.total_seconds() for pause in FAST_BACKOFF)


def alone(
    *statuses: int | None, event_type: str = EventType.PAYMENT_STATUS_CHANGED, taken_at: float | None = None
) -> tuple[Breaker, Delivery]:
    """The fast backoff of one event with these answers, the last one repeated; another one is taken after so many
    seconds."""
    breaker, delivery, answers = new_breaker("acc_1", Mode.LIVE), fresh(event_type), list(statuses)
    for _ in range(len(FAST_BACKOFF) + 1):
        now = max(NOON, delivery.due or NOON)
        if taken_at is not None and now > NOON + taken_at * SECOND:
            taken = outcome(200, at=NOON + taken_at * SECOND)
            breaker, taken_at = after_outcome(breaker, "evt_other", taken), None
        status = answers.pop(0) if len(answers) > 1 else answers[0]
        told = outcome(status, "responded" if status else "timeout", at=now)
        breaker, delivery = after_delivery(breaker, delivery, told)
    return breaker, delivery


OPEN, SHUT = True, False
GATEWAY = EventType.GATEWAY_STATUS_CHANGED
BACKOFFS_END = [
    # answers, type, seconds until another event is accepted, open?, status, seconds until the next attempt
    pytest.param([503], None, None, OPEN, "pending", 1, id="5xx"),
    pytest.param([None], None, None, OPEN, "pending", 1, id="no answer"),
    pytest.param([302], None, None, OPEN, "pending", 1, id="a redirect"),
    pytest.param([408], None, None, OPEN, "pending", 1, id="408"),
    pytest.param([429], None, None, OPEN, "pending", 1, id="429"),
    pytest.param([400] * 9 + [503], None, None, OPEN, "pending", 1, id="the last answer decides"),
    pytest.param([503], EventType.REFUND_COMPLETED, None, OPEN, "pending", 1, id="a refund is money"),
    pytest.param([503], EventType.WITHDRAWAL_STATUS_CHANGED, None, OPEN, "pending", 1, id="a payout is money"),
    pytest.param([503], EventType.EXCHANGE_STATUS_CHANGED, None, OPEN, "pending", 1, id="an exchange is money"),
    pytest.param([503], GATEWAY, None, SHUT, "failed", None, id="a gateway is no money"),
    pytest.param([400], None, None, SHUT, "pending", 3600 - BACKOFF_SECONDS, id="4xx is the event's own fault"),
    pytest.param([503] * 9 + [404], None, None, SHUT, "pending", 3600 - BACKOFF_SECONDS, id="also at the end only"),
    pytest.param([400], GATEWAY, None, SHUT, "failed", None, id="4xx without money"),
    pytest.param([503], None, 300, SHUT, "pending", 3600 - BACKOFF_SECONDS, id="others are taken meanwhile"),
    pytest.param([503], None, 0, OPEN, "pending", 1, id="others were taken until it began"),
]


@table(("answers", "event_type", "taken_at", "opens", "status", "pause"), BACKOFFS_END)
def test_end_of_a_money_events_fast_backoff_opens_the_breaker(
    answers: list[int | None],
    event_type: str | None,
    taken_at: float | None,
    opens: bool,
    status: str,
    pause: float | None,
) -> None:
    """It opens when the fast backoff of a money event ends in such failures, and that event waits with it; one failing
    event never blocks another (docs/webhooks.md "When you do not answer")."""
    breaker, delivery = alone(*answers, event_type=event_type or fresh().type, taken_at=taken_at)
    end = NOON + BACKOFF_SECONDS * SECOND
    assert (breaker.is_open, delivery.status, delivery.attempts) == (opens, status, 10)
    assert breaker.next_probe_at == (end + 30 * SECOND if opens else None)
    assert delivery.due == (None if pause is None else end + pause * SECOND)


def test_a_breaker_does_not_open_before_the_tenth_attempt_of_one_event() -> None:
    breaker, delivery = new_breaker("acc_1", Mode.LIVE), fresh()
    for number in range(1, 11):
        breaker, delivery = after_delivery(breaker, delivery, outcome(503, at=max(NOON, delivery.due or NOON)))
        assert breaker.is_open is (number == 10)


def test_backoff_that_ends_while_open_does_not_lengthen_the_pause() -> None:
    breaker = failing(10)
    at = NOON + 10 * SECOND
    delivery = msgspec.structs.replace(fresh(), attempts=9, first_attempt_at=NOON)
    after, waiting = after_delivery(breaker, delivery, outcome(503, at=at))
    assert (after.next_probe_at, after.probes) == (breaker.next_probe_at, 0)
    assert (waiting.status, waiting.due) == (DeliveryStatus.PENDING, at + SECOND)


def test_backoff_that_ended_at_the_former_address_restarts_at_the_new_one() -> None:
    breaker = closed(failing(3), by_hand_at=NOON)
    delivery = msgspec.structs.replace(fresh(), attempts=9, first_attempt_at=NOON - 500 * SECOND)
    breaker, waiting = after_delivery(breaker, delivery, outcome(None, "timeout", at=NOON - SECOND, took=10))
    assert not breaker.is_open
    assert (waiting.status, waiting.due) == (DeliveryStatus.PENDING, NOON + 10 * SECOND)


def test_event_that_fails_again_after_a_recovery_waits_again() -> None:
    """A receiver that comes back for a moment only loses nothing."""
    breaker, delivery = alone(503)
    at: datetime = NOON
    for _ in range(3):
        at = (breaker.next_probe_at or NOON) + SECOND
        breaker = after_outcome(breaker, "evt_other", outcome(200, at=at, probe=True))
        for _ in range(10):
            at = max(at, delivery.due or at)
            breaker, delivery = after_delivery(breaker, delivery, outcome(503, at=at))
        assert (breaker.is_open, delivery.status) == (True, DeliveryStatus.PENDING)
    assert delivery.attempts == 40
    breaker, delivery = after_delivery(breaker, delivery, outcome(200, at=at + 30 * SECOND, probe=True))
    assert (breaker.is_open, delivery.status) == (False, DeliveryStatus.DELIVERED)


def test_event_that_alone_fails_takes_the_slow_backoff_and_stops_no_other() -> None:
    breaker, delivery = alone(500, taken_at=300)
    moments = []
    while delivery.status is DeliveryStatus.PENDING:
        assert delivery.due is not None
        moments.append(delivery.due)
        breaker, delivery = after_delivery(breaker, delivery, outcome(500, at=delivery.due))
        assert not breaker.is_open
    assert moments == [NOON + each for each in SLOW_BACKOFF]
    assert delivery.status is DeliveryStatus.FAILED


def test_breaker_pauses_are_the_documented_ones_and_the_last_repeats() -> None:
    """ "pauses 30 s, 1, 2, 5, 10, 30, 60 min, then 60 min"."""
    assert [pause.total_seconds() for pause in PAUSES] == [30, 60, 120, 300, 600, 1800, 3600]
    breaker, now, pauses = failing(10), NOON, []
    for _ in range(10):
        assert breaker.next_probe_at is not None
        pauses.append((breaker.next_probe_at - now).total_seconds())
        now = breaker.next_probe_at
        breaker = after_outcome(breaker, "evt_0", outcome(503, at=now, probe=True))
    assert pauses == [30, 60, 120, 300, 600, 1800, 3600, 3600, 3600, 3600]


def test_a_pause_begins_when_the_probe_ended() -> None:
    breaker = after_outcome(failing(10), "evt_0", outcome(None, "timeout", at=NOON + 30 * SECOND, took=10, probe=True))
    assert breaker.next_probe_at == NOON + 30 * SECOND + 10 * SECOND + 60 * SECOND


def test_successful_probe_closes_it_and_resets_the_pause_to_30_seconds() -> None:
    breaker = failing(10)
    for _ in range(3):
        breaker = after_outcome(breaker, "evt_0", outcome(500, probe=True))
    breaker = after_outcome(breaker, "evt_0", outcome(204, probe=True))
    assert (breaker.is_open, breaker.failures, breaker.probes, breaker.opened_at) == (False, 0, 0, None)
    assert failing(10, breaker=breaker).next_probe_at == NOON + 30 * SECOND


def test_probe_answered_with_4xx_closes_it() -> None:
    """One bad event must not keep all others waiting."""
    assert not after_outcome(failing(10), "evt_0", outcome(400, probe=True)).is_open


def test_breaker_pause_ignores_webhooks_already_in_flight() -> None:
    breaker = failing(10)
    late = after_outcome(breaker, "evt_5", outcome(500, at=NOON + 5 * SECOND))
    assert (late.next_probe_at, late.probes) == (breaker.next_probe_at, 0)
    assert after_outcome(late, "evt_6", outcome(400)).is_open
    assert not after_outcome(late, "evt_6", outcome(200)).is_open


class TestByHand:
    def test_closing_it_forgets_the_failures(self) -> None:
        breaker = closed(failing(10), by_hand_at=NOON)
        assert (breaker.is_open, breaker.failures, breaker.failed_events) == (False, 0, ())

    def test_letters_sent_before_do_not_count(self) -> None:
        """They went to another address."""
        breaker = closed(failing(10), by_hand_at=NOON)
        for number in range(20):
            breaker = after_outcome(breaker, f"evt_{number}", outcome(None, "timeout", at=NOON - SECOND, took=10))
        assert (breaker.is_open, breaker.failures) == (False, 0)
        assert failing(10, breaker=breaker).is_open


def test_breaker_remembers_the_last_success_and_the_last_failure() -> None:
    breaker = after_outcome(new_breaker("acc_1", Mode.LIVE), "evt_1", outcome(200, took=1))
    assert breaker.last_success_at == NOON + SECOND
    breaker = after_outcome(breaker, "evt_2", outcome(418, at=NOON + 5 * SECOND))
    assert (breaker.last_failure_at, breaker.last_failed_event) == (NOON + 5 * SECOND, "evt_2")
    assert (breaker.last_answer, breaker.last_status, breaker.last_note) == ("responded", 418, "why")
    assert breaker.last_success_at == NOON + SECOND


class TestRoom:
    """How many webhooks may be under way at once."""

    def test_none_while_it_is_open(self) -> None:
        assert room(failing(10), 8) == 0

    @table(
        ("failures", "most", "expected"), [(0, 8, 8), (1, 8, 8), (3, 8, 7), (8, 8, 2), (9, 8, 1), (0, 2, 2), (5, 2, 2)]
    )
    def test_after_failures_no_more_than_may_still_fail(self, failures: int, most: int, expected: int) -> None:
        assert room(failing(failures), most) == expected

    def test_always_one_while_one_event_alone_fails(self) -> None:
        assert room(failing(50, 1), 8) == 1

    @given(st.integers(1, 20), st.integers(1, 12))
    def test_dead_receiver_gets_exactly_ten_webhooks_however_many_in_parallel(self, most: int, events: int) -> None:
        breaker, sent, under_way = new_breaker("acc_1", Mode.LIVE), 0, 0
        while not breaker.is_open and sent < 100:
            while under_way < room(breaker, most):
                under_way, sent = under_way + 1, sent + 1
            under_way -= 1
            answered = sent - under_way
            breaker = after_outcome(breaker, f"evt_{answered % max(events, FROM_EVENTS)}", outcome(500))
        assert (sent, under_way) == (OPENS_AFTER, 0)


def test_an_endpoint_is_named_by_account_and_mode() -> None:
    for mode in Mode:
        assert EndpointKey.of(endpoint_id("acc_1", mode)) == EndpointKey("acc_1", mode)
        further = EndpointKey("acc_1", mode, "we_1")
        assert EndpointKey.of(further.id) == further
        assert new_breaker("acc_1", mode, "we_1").id == further.id
        assert new_breaker("acc_1", mode).id == endpoint_id("acc_1", mode)


@given(st.lists(st.tuples(st.none() | st.integers(100, 599), st.booleans(), st.integers(0, 4)), max_size=60))
def test_breaker_is_open_exactly_while_a_probe_is_set(webhooks: list[tuple[int | None, bool, int]]) -> None:
    breaker, now = new_breaker("acc_1", Mode.LIVE), NOON
    for status, probe, event in webhooks:
        now += SECOND
        told = outcome(status, "responded" if status else "timeout", at=now, probe=probe and breaker.is_open)
        before, breaker = breaker, after_outcome(breaker, f"evt_{event}", told)
        assert breaker.is_open == (breaker.opened_at is not None)
        assert len(breaker.failed_events) <= FROM_EVENTS
        assert not (told.good and breaker.is_open)
        if breaker.is_open and not before.is_open:
            assert breaker.failures >= OPENS_AFTER
        assert msgspec.json.decode(msgspec.json.encode(breaker), type=Breaker) == breaker
