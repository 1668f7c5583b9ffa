"""Where the clock of a test account may be moved to (docs/sandbox.md "The clock")."""

from datetime import UTC, datetime, timedelta

import pytest

from cambist.core.domain.errors import FieldFault, Refusal
from cambist.core.domain.sandbox_clock import ClockWish, SandboxClock, begun, ended, moved, target_of
from tests.tables import table

NOW = datetime(2027, 3, 1, 12, 0, 0, 500_700, UTC)
LEAP_YEAR = timedelta(days=366)
TICK = timedelta(microseconds=1)


def at(moment: datetime) -> ClockWish:
    return ClockWish(to=moment.isoformat())


@table(
    ("wish", "target"),
    [
        (ClockWish(seconds=0), NOW),
        (ClockWish(seconds=1), NOW + timedelta(seconds=1)),
        (ClockWish(seconds=366 * 86_400), NOW + LEAP_YEAR),
        (at(NOW + LEAP_YEAR), NOW + LEAP_YEAR),
        (at(NOW), NOW),
        # The millisecond that was shown is now.
        (at(NOW - timedelta(milliseconds=1) + TICK), NOW),
    ],
)
def test_a_clock_is_moved_forward_by_a_year_at_most(wish: ClockWish, target: datetime) -> None:
    assert target_of(wish, NOW) == target


@table(
    ("wish", "now", "field"),
    [
        (ClockWish(), NOW, None),
        (ClockWish(seconds=1, to="2027-03-01T13:00:00Z"), NOW, None),
        (ClockWish(seconds=-1), NOW, "seconds"),
        (ClockWish(seconds=366 * 86_400 + 1), NOW, "seconds"),
        (ClockWish(seconds=10**30), NOW, "seconds"),
        (ClockWish(seconds=-(10**30)), NOW, "seconds"),
        (at(NOW - timedelta(milliseconds=1)), NOW, "to"),
        (at(NOW + LEAP_YEAR + TICK), NOW, "to"),
        (at(datetime(2100, 1, 1, 0, 0, 1, tzinfo=UTC)), datetime(2099, 12, 31, tzinfo=UTC), "to"),
    ],
)
def test_impossible_target_is_refused_naming_its_field(wish: ClockWish, now: datetime, field: str | None) -> None:
    with pytest.raises(Refusal) as refusal:
        target_of(wish, now)
    assert (refusal.value.code, refusal.value.status) == ("VALIDATION_ERROR", 400)
    named = [each.path for each in refusal.value.details or () if isinstance(each, FieldFault)]
    assert named == ([] if field is None else [field])


def test_the_last_moment_of_a_test_account_is_the_end_of_the_century() -> None:
    end = datetime(2100, 1, 1, tzinfo=UTC)
    assert target_of(at(end), end - timedelta(days=1)) == end


def test_a_clock_never_goes_back_and_counts_the_events_of_an_advance() -> None:
    clock = begun(SandboxClock(offset=5_000_000, jobs_run=3, events_emitted=9), NOW + timedelta(seconds=60), events=4)
    assert (clock.jobs_run, clock.events_emitted, clock.is_advancing) == (0, 0, True)
    on_its_way = moved(clock, NOW, NOW + timedelta(seconds=20))
    assert on_its_way.ahead == timedelta(seconds=20)
    assert moved(on_its_way, NOW, NOW + timedelta(seconds=19)).ahead == timedelta(seconds=20)
    there = ended(on_its_way, NOW, events=6)
    assert there == SandboxClock(offset=60_000_000, events_emitted=2)
    assert ended(begun(there, NOW, events=7), NOW, events=5).events_emitted == 0, "some were forgotten meanwhile"


@table(
    ("clock", "was_moved"),
    [(SandboxClock(), False), (SandboxClock(offset=1), True), (SandboxClock(target=NOW), True)],
)
def test_the_days_of_a_moved_clock_are_its_own(clock: SandboxClock, was_moved: bool) -> None:
    assert clock.was_moved is was_moved
