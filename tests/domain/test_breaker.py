"""The circuit breaker of a receiver (SPEC "Events", 3; DECISIONS 7)."""

from datetime import UTC, datetime, timedelta

import pytest

from cambist.core.domain.accounts import Mode
from cambist.core.domain.breaker import (
    PAUSES,
    Breaker,
    after_letter,
    closed,
    counts_against,
    lane_of,
    new_breaker,
    room,
)
from cambist.core.domain.delivery import Outcome

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def outcome(status: int | None, at: datetime = NOON, *, probe: bool = False) -> Outcome:
    answer = "responded" if status is not None else "timeout"
    return Outcome(answer=answer, status=status, note="", sent_at=at, ended_at=at, probe=probe)


def fail(breaker: Breaker, events: list[str], status: int | None = 500) -> Breaker:
    for event in events:
        breaker = after_letter(breaker, event, outcome(status))
    return breaker


def opened() -> Breaker:
    return fail(new_breaker("acc_1", Mode.LIVE), ["a", "b", "c"] * 3 + ["a"])


@pytest.mark.parametrize(
    ("status", "counts"),
    [
        (None, True),
        (301, True),
        (302, True),
        (408, True),
        (429, True),
        (500, True),
        (503, True),
        (599, True),
        (200, False),
        (204, False),
        (400, False),
        (401, False),
        (404, False),
        (410, False),
        (422, False),
    ],
)
def test_timeouts_redirects_408_429_and_5xx_count_and_other_4xx_do_not(status: int | None, counts: bool) -> None:
    assert counts_against(outcome(status)) is counts


def test_it_opens_after_10_failures_in_a_row_from_at_least_3_events() -> None:
    nine = fail(new_breaker("acc_1", Mode.LIVE), ["a", "b", "c"] * 3)
    assert not nine.is_open
    ten = fail(nine, ["a"])
    assert (ten.is_open, ten.opened_at, ten.next_probe_at) == (True, NOON, NOON + timedelta(seconds=30))


def test_one_failing_event_never_opens_it() -> None:
    assert not fail(new_breaker("acc_1", Mode.LIVE), ["a"] * 50 + ["b"] * 50).is_open


def test_a_success_in_between_starts_the_count_anew() -> None:
    nine = fail(new_breaker("acc_1", Mode.LIVE), ["a", "b", "c"] * 3)
    assert not fail(after_letter(nine, "d", outcome(200)), ["a", "b", "c"] * 3).is_open


def test_the_pauses_between_probes_are_those_of_decisions_7_and_the_last_repeats() -> None:
    assert [pause.total_seconds() for pause in PAUSES] == [30, 60, 120, 300, 600, 1800, 3600]
    breaker, pauses = opened(), []
    for _ in range(9):
        assert breaker.next_probe_at is not None
        at = breaker.next_probe_at
        breaker = after_letter(breaker, "a", outcome(500, at, probe=True))
        assert breaker.next_probe_at is not None
        pauses.append(breaker.next_probe_at - at)
    assert pauses == [*PAUSES[1:], PAUSES[-1], PAUSES[-1], PAUSES[-1]]


@pytest.mark.parametrize("status", [200, 404])
def test_a_probe_that_somebody_answers_closes_it(status: int) -> None:
    breaker = after_letter(opened(), "a", outcome(status, NOON + timedelta(seconds=30), probe=True))
    assert (breaker.is_open, breaker.failures, breaker.failed_events) == (False, 0, ())


def test_letters_that_were_under_way_when_it_opened_change_no_pause() -> None:
    assert after_letter(opened(), "c", outcome(500)).next_probe_at == NOON + PAUSES[0]


def test_closed_by_hand_what_was_sent_before_says_nothing_any_more() -> None:
    later = NOON + timedelta(minutes=1)
    breaker = closed(opened(), by_hand_at=later)
    assert not breaker.is_open
    assert after_letter(breaker, "a", outcome(500, NOON)).failures == 0
    assert after_letter(breaker, "a", outcome(500, later)).failures == 1


def test_an_open_one_lets_nothing_through_and_a_failing_one_no_more_than_it_may_take() -> None:
    assert room(opened(), 8) == 0
    assert room(new_breaker("acc_1", Mode.LIVE), 8) == 8
    assert room(fail(new_breaker("acc_1", Mode.LIVE), ["a"] * 7), 8) == 3
    assert room(fail(new_breaker("acc_1", Mode.LIVE), ["a"] * 30), 8) == 1


def test_its_id_names_account_and_mode() -> None:
    assert lane_of(new_breaker("acc_1", Mode.TEST).id) == ("acc_1", Mode.TEST)
