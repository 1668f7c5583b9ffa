"""The periods for which a subscription is charged, in both schemes: their limits and names, and how often one may be
attempted (docs/subscriptions.md "Periods and attempts"). charge_decisions.py decides whether a charge may be made."""

from calendar import monthrange
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum

import msgspec

from ..accounts.accounts import Scheme
from ..days import MOSCOW, moscow_start


class Interval(StrEnum):
    """The unit of a period."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"


COUNT_HIGHEST: Mapping[Interval, int] = {Interval.DAY: 365, Interval.WEEK: 52, Interval.MONTH: 12}
"""Highest `interval_count`; the lowest is 1 (docs/subscriptions.md "Making one")."""


class Budget(msgspec.Struct, frozen=True):
    """How often one period may be attempted, and for how many hours from its first attempt."""

    attempts: int
    hours: int

    @property
    def window(self) -> timedelta:
        return timedelta(hours=self.hours)


BUDGETS: Mapping[tuple[Interval, int], Budget] = {
    (Interval.DAY, 1): Budget(2, 3),
    (Interval.DAY, 3): Budget(3, 6),
    (Interval.WEEK, 1): Budget(4, 12),
    (Interval.WEEK, 2): Budget(4, 24),
}
OTHER_BUDGET = Budget(4, 20)
"""Budget of all periods without a row in the table, such as 2, 4, 5 and 6 days (docs/decisions.md "Periods")."""


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """The constant properties of a subscription that determine its periods."""

    scheme: Scheme
    interval: Interval
    interval_count: int

    @property
    def budget(self) -> Budget | None:
        """The budget of a period; None in the calendar scheme."""
        if self.scheme is Scheme.CALENDAR:
            return None
        return BUDGETS.get((self.interval, self.interval_count), OTHER_BUDGET)


class Period(msgspec.Struct, frozen=True, kw_only=True):
    """One period: from `opens_at` to just before `closes_at`, where the next one opens. Both in UTC."""

    ref: str
    """The `period_ref`, unique within a subscription."""
    opens_at: datetime
    closes_at: datetime


def current_period(terms: Terms, anchor: datetime) -> Period:
    """Return the period that a payment at `anchor` opens and pays."""
    return calendar_period(terms.interval, anchor) if terms.scheme is Scheme.CALENDAR else window_period(terms, anchor)


def calendar_period(interval: Interval, now: datetime) -> Period:
    """Return the calendar period around `now`, by UTC: `2026-11-21`, `2026-W47` or `2026-11`; `interval_count` has no
    effect."""
    day = now.astimezone(UTC).date()
    if interval is Interval.DAY:
        ref, first, following = day.isoformat(), day, day + timedelta(days=1)
    elif interval is Interval.WEEK:
        year, week, weekday = day.isocalendar()
        first = day - timedelta(days=weekday - 1)
        ref, following = f"{year:04d}-W{week:02d}", first + timedelta(days=7)
    else:
        first = day.replace(day=1)
        ref, following = f"{day.year:04d}-{day.month:02d}", _months_later(first, 1)
    return Period(ref=ref, opens_at=_midnight_utc(first), closes_at=_midnight_utc(following))


def window_period(terms: Terms, anchor: datetime, number: int = 0) -> Period:
    """Return the period that opens `number` periods after the day of `anchor`, Moscow time.

    It is counted from the anchor in one step, never from the previous period: a shortened month (31 January, 28
    February) does not affect later periods (31 March).

    The ref contains the day on which the period opens: period 0, paid with the anchor, has the anchor's own day, and
    each period that passes unpaid gets another ref than the one before, although the anchor stays.
    """
    opens, closes = _opening(terms, anchor, number), _opening(terms, anchor, number + 1)
    return Period(
        ref=f"a{opens:%Y%m%d}-{terms.interval}{terms.interval_count}",
        opens_at=moscow_start(opens),
        closes_at=moscow_start(closes),
    )


def window_number(terms: Terms, anchor: datetime, now: datetime) -> int:
    """Return how many periods the one around `now` is after the anchor's; 0 in the paid one, and before the anchor."""
    origin, day = _moscow_day(anchor), _moscow_day(now)
    if terms.interval is Interval.MONTH:
        months = (day.year - origin.year) * 12 + day.month - origin.month
        number = months // terms.interval_count
        if _opening(terms, anchor, number) > day:
            number -= 1
    else:
        number = (day - origin) // _length(terms)
    return max(number, 0)


def _opening(terms: Terms, anchor: datetime, number: int) -> date:
    """Return the day on which period `number` after the anchor's opens."""
    origin = _moscow_day(anchor)
    if terms.interval is Interval.MONTH:
        return _months_later(origin, number * terms.interval_count)
    return origin + number * _length(terms)


def _length(terms: Terms) -> timedelta:
    """Return the length of a period of days or weeks; Moscow has no summer time, so each of its days has 24 hours."""
    return timedelta(days=terms.interval_count * (7 if terms.interval is Interval.WEEK else 1))


def _months_later(day: date, months: int) -> date:
    """Return the same day of a later month, or that month's last day if it is shorter."""
    years, month = divmod(day.month - 1 + months, 12)
    year = day.year + years
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


def _moscow_day(moment: datetime) -> date:
    return moment.astimezone(MOSCOW).date()


def _midnight_utc(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
