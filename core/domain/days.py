"""Moments and days in the form of the API (docs/concepts.md "Amounts and times": ISO 8601, UTC)."""

import re
from datetime import UTC, date, datetime, time, timedelta, timezone

import msgspec

from .errors import shape_error

MOSCOW = timezone(timedelta(hours=3), "MSK")
"""Moscow has kept UTC+3 all year since 2014: no time zone database is needed."""

_MOMENT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ]([01][0-9]|2[0-3]):[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?"
    r"([Zz]|[+-][0-9]{2}:?[0-9]{2})\Z"
)

LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
"""Earlier than everything: as a bound it lets an index find all rows with a moment."""


def iso(moment: datetime) -> str:
    """Return `2026-11-21T09:00:00.123Z`: UTC to the millisecond."""
    # Ours are already in UTC, and every answer contains some: msgspec formats them in a fifth of the time.
    text: str = msgspec.to_builtins(moment if moment.tzinfo is UTC else moment.astimezone(UTC))
    return f"{text[:23]}Z" if moment.microsecond else f"{text[:19]}.000Z"


def iso_moscow(moment: datetime) -> str:
    """Return `2026-02-28T00:00:00.000+03:00`: `next_allowed_at` is in Moscow time
    (docs/concepts.md "Amounts and times")."""
    return moment.astimezone(MOSCOW).isoformat(timespec="milliseconds")


def moscow_start(day: date) -> datetime:
    """Return the first moment of a day in Moscow, in UTC."""
    return datetime.combine(day, time(), MOSCOW).astimezone(UTC)


def moscow_day(day: date) -> tuple[datetime, datetime]:
    """Return the first moment of a Moscow day and of the next one, in UTC."""
    begin = moscow_start(day)
    return begin, begin + timedelta(days=1)


def iso_or_none(moment: datetime | None) -> str | None:
    """Return `iso` of the moment, or None."""
    return None if moment is None else iso(moment)


def parse_moment(text: str) -> datetime | None:
    """Parse a date and time with a zone, in the form of RFC 3339 (seconds and fraction are optional), as UTC. None if
    it is not valid."""
    if not _MOMENT.match(text):
        return None
    try:
        return datetime.fromisoformat(text.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def read_moment(name: str, text: str) -> datetime:
    """Read the value `name` of a request as a moment in UTC. Raises: Refusal VALIDATION_ERROR."""
    in_utc = parse_moment(text)
    if in_utc is None:
        raise shape_error(
            name, "must be ISO 8601 with a time zone, such as 2026-11-21T09:00:00Z (in a URL, + is written %2B)"
        )
    return in_utc
