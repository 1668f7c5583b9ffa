"""Periods of subscriptions over random calendars (docs/subscriptions.md "Periods and attempts"): how they are cut and
named. Decisions about charges in them are in test_charge_decisions.py."""

from calendar import monthrange
from datetime import UTC, date, datetime, timedelta

from hypothesis import example, given
from hypothesis import strategies as st

from cambist.core.domain.accounts.accounts import Scheme
from cambist.core.domain.days import iso_moscow
from cambist.core.domain.subscriptions.periods import (
    COUNT_HIGHEST,
    Interval,
    Terms,
    calendar_period,
    current_period,
    window_number,
    window_period,
)
from tests.domain.subscription_kit import MSK, TICK, moscow, terms
from tests.tables import table

ALL_TERMS = [terms(interval, count) for interval in Interval for count in range(1, COUNT_HIGHEST[interval] + 1)]
HARD_DAYS = [
    date(y, m, d) for y in (2023, 2024, 2025) for m, d in ((1, 29), (1, 30), (1, 31), (2, 28), (8, 31), (12, 31))
]
HARD_DAYS.append(date(2024, 2, 29))

DAYS = st.sampled_from(HARD_DAYS) | st.dates(date(2000, 1, 1), date(2100, 12, 31))
SINCE_MIDNIGHT = st.sampled_from([timedelta(0), timedelta(days=1) - TICK, timedelta(hours=3), timedelta(hours=21)])
SINCE_MIDNIGHT |= st.timedeltas(timedelta(0), timedelta(days=1) - TICK)
ANCHORS = st.builds(lambda day, since: moscow(day.year, day.month, day.day) + since, DAYS, SINCE_MIDNIGHT)


def counted(origin: date, terms: Terms, number: int) -> date:
    """The day on which a period opens, by counting calendar leaves one by one."""
    if terms.interval is not Interval.MONTH:
        days = terms.interval_count * {Interval.DAY: 1, Interval.WEEK: 7}[terms.interval]
        return date.fromordinal(origin.toordinal() + days * number)
    year, month = origin.year, origin.month
    for _ in range(terms.interval_count * number):
        year, month = (year + 1, 1) if month == 12 else (year, month + 1)
    return date(year, month, min(origin.day, monthrange(year, month)[1]))


class TestWindow:
    @given(st.sampled_from(ALL_TERMS), ANCHORS, st.integers(0, 60))
    @example(terms(), moscow(2026, 1, 31), 1)
    @example(terms(Interval.MONTH, 12), moscow(2024, 2, 29), 4)
    def test_the_anchor_plus_any_number_of_periods_never_drifts(
        self, terms: Terms, anchor: datetime, number: int
    ) -> None:
        """The anchor plus so many units, the month's end clamped, Moscow time
        (docs/subscriptions.md "Periods and attempts"); each period from the anchor itself, so that a short month pulls
        none after it down; and each ends where the next begins."""
        origin = anchor.astimezone(MSK).date()
        period = window_period(terms, anchor, number)
        for moment, expected in ((period.opens_at, number), (period.closes_at, number + 1)):
            day = counted(origin, terms, expected)
            assert moment == datetime(day.year, day.month, day.day, tzinfo=MSK)
        assert period.closes_at == window_period(terms, anchor, number + 1).opens_at

    @given(st.sampled_from(ALL_TERMS), ANCHORS, st.integers(0, 40), st.floats(0, 1))
    def test_every_moment_lies_in_the_period_of_its_number(
        self, terms: Terms, anchor: datetime, number: int, part: float
    ) -> None:
        period = window_period(terms, anchor, number)
        between = period.opens_at + (period.closes_at - period.opens_at - TICK) * part
        for moment in (period.opens_at, between, period.closes_at - TICK):
            assert window_number(terms, anchor, moment) == number
        assert window_number(terms, anchor, period.closes_at) == number + 1

    @table(
        ("terms", "now", "number"),
        [
            (terms(), moscow(2026, 2, 27), 0),
            (terms(), moscow(2026, 2, 28), 1),
            (terms(), moscow(2026, 3, 30), 1),
            (terms(), moscow(2028, 2, 28), 24),
            (terms(), moscow(2028, 2, 29), 25),
            (terms(Interval.MONTH, 5), moscow(2027, 9, 29), 3),
            (terms(Interval.MONTH, 5), moscow(2027, 9, 30), 4),
            (terms(), moscow(2026, 1, 30), 0),
            (terms(Interval.MONTH, 12), moscow(2025, 12, 31), 0),
        ],
    )
    def test_months_are_counted_from_the_anchor(self, terms: Terms, now: datetime, number: int) -> None:
        assert window_number(terms, moscow(2026, 1, 31, 9), now) == number

    @given(st.sampled_from(ALL_TERMS), ANCHORS, st.timedeltas(timedelta(0), timedelta(days=4000)))
    def test_before_the_anchor_it_is_the_paid_period(self, terms: Terms, anchor: datetime, before: timedelta) -> None:
        """A bank's clock may be ahead of ours."""
        assert window_number(terms, anchor, anchor - before) == 0

    @given(st.sampled_from(ALL_TERMS), ANCHORS)
    def test_the_time_of_day_of_a_payment_does_not_matter(self, terms: Terms, anchor: datetime) -> None:
        """The anchor is a date: charges made a little later each time do not push the next ones on."""
        day = anchor.astimezone(MSK).date()
        assert window_period(terms, anchor, 1) == window_period(terms, moscow(day.year, day.month, day.day), 1)

    @given(st.sampled_from(ALL_TERMS), ANCHORS, st.lists(st.integers(0, 40), min_size=2, max_size=2, unique=True))
    def test_no_two_periods_of_an_anchor_have_one_ref(self, terms: Terms, anchor: datetime, two: list[int]) -> None:
        first, second = (window_period(terms, anchor, number).ref for number in sorted(two))
        assert first < second

    @table(
        ("anchor", "number", "ref", "opens_at"),
        [
            (moscow(2026, 1, 31), 0, "a20260131-month1", moscow(2026, 1, 31)),
            (moscow(2026, 1, 31), 1, "a20260228-month1", moscow(2026, 2, 28)),
            (moscow(2026, 1, 31), 2, "a20260331-month1", moscow(2026, 3, 31)),
            (moscow(2024, 1, 31), 1, "a20240229-month1", moscow(2024, 2, 29)),
            (moscow(2026, 12, 31, 23, 59), 1, "a20270131-month1", moscow(2027, 1, 31)),
            # The same evening is the next day in Moscow already.
            (datetime(2026, 1, 30, 21, tzinfo=UTC), 1, "a20260228-month1", moscow(2026, 2, 28)),
            (datetime(2026, 1, 30, 20, 59, 59, 999999, tzinfo=UTC), 1, "a20260228-month1", moscow(2026, 2, 28)),
            (datetime(2026, 2, 27, 20, 59, tzinfo=UTC), 1, "a20260327-month1", moscow(2026, 3, 27)),
            (datetime(2026, 2, 27, 21, 0, tzinfo=UTC), 1, "a20260328-month1", moscow(2026, 3, 28)),
        ],
    )
    def test_known_months(self, anchor: datetime, number: int, ref: str, opens_at: datetime) -> None:
        period = window_period(terms(), anchor, number)
        assert (period.ref, period.opens_at) == (ref, opens_at)

    @table(
        ("terms", "ref"),
        [
            (terms(Interval.DAY, 3), "a20260203-day3"),
            (terms(Interval.DAY, 365), "a20270131-day365"),
            (terms(Interval.WEEK, 2), "a20260214-week2"),
            (terms(Interval.WEEK, 52), "a20270130-week52"),
            (terms(Interval.MONTH, 12), "a20270131-month12"),
        ],
    )
    def test_refs_say_when_they_open_and_how_long_they_are(self, terms: Terms, ref: str) -> None:
        """The form is `aYYYYMMDD-<interval><count>` (docs/subscriptions.md "Periods and attempts")."""
        assert window_period(terms, moscow(2026, 1, 31, 12), 1).ref == ref

    def test_a_payment_opens_the_period_of_its_own_day(self) -> None:
        assert current_period(terms(), moscow(2026, 1, 31, 12)).ref == "a20260131-month1"


class TestCalendar:
    @given(st.sampled_from(Interval), ANCHORS)
    def test_every_moment_lies_in_its_period_and_periods_adjoin(self, interval: Interval, now: datetime) -> None:
        period = calendar_period(interval, now)
        assert period.opens_at <= now < period.closes_at
        assert calendar_period(interval, period.opens_at) == period
        assert calendar_period(interval, period.closes_at - TICK) == period
        assert calendar_period(interval, period.closes_at).opens_at == period.closes_at
        assert calendar_period(interval, period.closes_at).ref > period.ref

    @given(ANCHORS)
    def test_keys_are_by_utc(self, now: datetime) -> None:
        """`YYYY-MM-DD`, `YYYY-Www` or `YYYY-MM`, by UTC (docs/subscriptions.md "The calendar scheme")."""
        utc = now.astimezone(UTC)
        assert calendar_period(Interval.DAY, now).ref == utc.strftime("%Y-%m-%d")
        assert calendar_period(Interval.WEEK, now).ref == utc.strftime("%G-W%V")
        assert calendar_period(Interval.MONTH, now).ref == utc.strftime("%Y-%m")

    @table(
        ("now", "refs"),
        [
            (datetime(2026, 12, 31, 23, 59, 59, tzinfo=UTC), ("2026-12-31", "2026-W53", "2026-12")),
            (datetime(2027, 1, 1, tzinfo=UTC), ("2027-01-01", "2026-W53", "2027-01")),
            (datetime(2024, 12, 30, tzinfo=UTC), ("2024-12-30", "2025-W01", "2024-12")),
            (moscow(2024, 3, 1, 2, 59), ("2024-02-29", "2024-W09", "2024-02")),
        ],
    )
    def test_known_keys(self, now: datetime, refs: tuple[str, str, str]) -> None:
        assert tuple(calendar_period(interval, now).ref for interval in Interval) == refs

    @table("count", [1, 2, 12])
    def test_the_count_takes_no_part(self, count: int) -> None:
        now = moscow(2026, 5, 5)
        wanted = calendar_period(Interval.MONTH, now)
        assert current_period(terms(Interval.MONTH, count, Scheme.CALENDAR), now) == wanted


@table(
    ("interval", "count", "attempts", "hours"),
    [
        (Interval.DAY, 1, 2, 3),
        (Interval.DAY, 3, 3, 6),
        (Interval.WEEK, 1, 4, 12),
        (Interval.WEEK, 2, 4, 24),
        (Interval.MONTH, 1, 4, 20),
        (Interval.MONTH, 12, 4, 20),
        (Interval.WEEK, 3, 4, 20),
        (Interval.DAY, 2, 4, 20),
        (Interval.DAY, 7, 4, 20),
        (Interval.DAY, 14, 4, 20),
    ],
)
def test_the_budget_is_the_one_of_the_table(interval: Interval, count: int, attempts: int, hours: int) -> None:
    """The table of docs/subscriptions.md "Periods and attempts"."""
    budget = terms(interval, count).budget
    assert budget is not None
    assert (budget.attempts, budget.hours) == (attempts, hours)


def test_the_calendar_scheme_has_no_budget() -> None:
    assert terms(scheme=Scheme.CALENDAR).budget is None


def test_the_bounds_of_the_count() -> None:
    """The bounds of docs/subscriptions.md "Making one"."""
    assert dict(COUNT_HIGHEST) == {"day": 365, "week": 52, "month": 12}


def test_next_allowed_at_is_printed_in_moscow_time() -> None:
    """`next_allowed_at` is in Moscow time (docs/concepts.md "Amounts and times")."""
    assert iso_moscow(datetime(2026, 2, 27, 21, tzinfo=UTC)) == "2026-02-28T00:00:00.000+03:00"
