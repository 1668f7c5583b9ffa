"""Requests refused by a rate limit, by minute and counter, for operators (docs/limits.md "Requests").

Their origin is not stored, neither address nor key: there is one row for each counter and minute, however many requests
and processes there are.
"""

from datetime import UTC, datetime

import msgspec


class LimitHits(msgspec.Struct, frozen=True, kw_only=True):
    """How many requests one of the four limits refused in one minute, in all processes."""

    id: str
    """Begins with the minute, so that a range of ids is a period of time."""
    minute: datetime
    """First moment of the minute."""
    counter: str
    """Bucket and kind: `money:ip`, `money:key`, `general:ip`, `general:key`."""
    count: int = 0
    version: int = 0


def hits_from(moment: datetime) -> str:
    """Return a lower bound for ids of the minute of `moment` and later; all earlier ids are below it."""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M}"


def limit_hits(counter: str, minute: int, count: int) -> LimitHits:
    """Return `count` requests refused by a limit in the minute that begins at the Unix second `minute`."""
    moment = datetime.fromtimestamp(minute, UTC)
    return LimitHits(id=f"{hits_from(moment)}:{counter}", minute=moment, counter=counter, count=count)
