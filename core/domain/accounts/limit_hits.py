"""Requests that a rate limit refused, by minute and counter, for whoever looks after the service
(docs/limits.md "Requests").

Of whom they were nothing is kept, neither address nor key: one row tells of one counter in one minute, whoever floods
and however many processes refuse.
"""

from datetime import UTC, datetime

import msgspec


class LimitHits(msgspec.Struct, frozen=True, kw_only=True):
    """How many requests one of the four limits refused in one minute, in all processes."""

    id: str
    """Begins with the minute, so that a range of ids is a span of time."""
    minute: datetime
    """Its first moment."""
    counter: str
    """Bucket, and what is counted by: `money:ip`, `money:key`, `general:ip`, `general:key`."""
    count: int = 0
    version: int = 0


def hits_from(moment: datetime) -> str:
    """What no id of the minute of `moment` or of a later one is below, and every earlier one is."""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M}"


def limit_hits(counter: str, minute: int, count: int) -> LimitHits:
    """`count` requests refused by a limit in the minute that begins at the Unix second `minute`."""
    moment = datetime.fromtimestamp(minute, UTC)
    return LimitHits(id=f"{hits_from(moment)}:{counter}", minute=moment, counter=counter, count=count)
