"""How often a provider is asked (docs/adapters.md "How often a provider is asked")."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.core.domain.gateways.polling import backup_poll_age, late_poll_pause, poll_pause, slot_at
from tests.tables import table

NOW = datetime(2026, 11, 22, 12, 0, 7, 250_000, UTC)


@table(("age", "pause"), [(0, 3), (45, 3), (46, 46 / 15), (120, 8), (300, 20), (450, 30), (9000, 30)])
def test_the_first_looks_come_after_seconds_and_then_after_tens(age: float, pause: float) -> None:
    assert poll_pause(timedelta(seconds=age)).total_seconds() == pytest.approx(pause)


@table(
    ("age", "is_proven", "due"),
    [
        (0, True, 30),
        (29.9, True, 30),
        (30, True, 60),
        (59.9, True, 60),
        (60, True, 120),
        (299.9, True, 300),
        (300, True, 600),
        (599.9, True, 600),
        (600, True, 900),
        (0, False, 30),
        (300, False, 360),
        (3600, False, 3660),
    ],
)
def test_backup_polls_follow_the_documented_ages(age: float, is_proven: bool, due: float) -> None:
    """Also where a poll was late: the next one is at its own age."""
    assert backup_poll_age(timedelta(seconds=age), is_proven=is_proven) == timedelta(seconds=due)


@table(("age", "pause"), [(0, 60), (360, 60), (900, 150), (21_600, 3600)])
def test_late_money_is_polled_for_ever_more_rarely(age: float, pause: float) -> None:
    assert late_poll_pause(timedelta(seconds=age)).total_seconds() == pytest.approx(pause)


def test_unpaid_payment_of_fifteen_minutes_costs_67_polls_and_22_late_ones() -> None:
    ages = [timedelta(0)]
    while ages[-1] < timedelta(minutes=15):
        ages.append(ages[-1] + poll_pause(ages[-1]))
    assert len(ages) == 67
    late = [timedelta(minutes=15)]
    while late[-1] < timedelta(hours=6):
        late.append(late[-1] + late_poll_pause(late[-1]))
    assert len(late) == 22


@table(
    ("polls", "begin", "seconds", "kept", "common"),
    [
        (600, NOW.replace(second=0, microsecond=0), 10, 40, 60),
        (60, NOW.replace(second=0, microsecond=0), 10, 4, 6),
        (6, NOW.replace(second=0, microsecond=0), 10, 0, 1),
        (5, NOW.replace(second=0, microsecond=0), 60, 2, 3),
        (1, NOW.replace(second=0, microsecond=0), 60, 0, 1),
        (0, NOW.replace(second=0, microsecond=0), 60, 0, 1),
    ],
)
def test_a_minutes_looks_are_spread_over_it_and_some_are_kept(
    polls: int, begin: datetime, seconds: int, kept: int, common: int
) -> None:
    assert slot_at(NOW, polls) == (begin, seconds, kept, common)


@given(st.integers(1, 100_000), st.datetimes(timezones=st.just(UTC)))
def test_no_minute_has_more_looks_than_may_be(polls: int, at: datetime) -> None:
    slot = slot_at(at, polls)
    assert slot.begin <= at < slot.begin + timedelta(seconds=slot.seconds)
    assert 1 <= (slot.kept + slot.common) * 60 // slot.seconds <= polls


@table(("number", "seconds"), [(7, 10), (8, 10 + 10 / 6), (12, 10 + 50 / 6), (13, 20), (19, 30)])
def test_the_first_of_them_comes_back_at_the_start_of_the_next_slot(number: int, seconds: float) -> None:
    slot = slot_at(NOW, 60)
    assert (slot.turn_after(number) - slot.begin).total_seconds() == pytest.approx(seconds)


@given(st.integers(1, 5000), st.integers(1, 3000))
def test_polls_over_the_limit_are_spread_over_later_slots(polls: int, too_many: int) -> None:
    slot = slot_at(NOW, polls)
    turns = [slot.turn_after(slot.common + number) for number in range(1, too_many + 1)]
    assert min(turns) >= slot.begin + timedelta(seconds=slot.seconds)
    assert turns == sorted(turns)
    in_each = Counter(round((turn - slot.begin).total_seconds(), 6) // slot.seconds for turn in turns)
    assert max(in_each.values()) <= slot.common
