"""Limit of the bytes that an account can make the service write in a UTC day, so that no key fills the shared disk
(docs/limits.md "Data")."""

from datetime import UTC, datetime, timedelta

import msgspec

from .accounts import Mode

PER_REQUEST = 512
"""Bytes counted for a request besides its body: rows of the object, of its key, event and jobs."""
COPIES = 2
"""Number of stored copies of a body: in the object, and its relevant part in the object's events."""
MEGABYTE = 1024 * 1024
KEPT = timedelta(days=8)
"""Retention of a day's count, for operators."""


class WrittenBytes(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes written by the requests of one account and mode in one UTC day, in all processes."""

    id: str
    """Begins with the day, so that a range of ids is a period of days."""
    account_id: str
    mode: Mode
    bytes: int = 0
    version: int = 0


class DailyBytes(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of one account for a day in each mode, in megabytes."""

    live: int = 2048
    test: int = 200

    def most(self, mode: Mode) -> int:
        """Return the limit in bytes."""
        return (self.test if mode is Mode.TEST else self.live) * MEGABYTE


def written_id(day: str, account_id: str, mode: Mode) -> str:
    """Return the id of the row of a day (`2026-11-27`)."""
    return f"{day}:{account_id}:{mode}"


def day_of_bytes(moment: datetime) -> str:
    """Return the UTC day of a moment."""
    return f"{moment.astimezone(UTC):%Y-%m-%d}"


def size_of(body: bytes) -> int:
    """Return the number of bytes counted for a request with this body."""
    return PER_REQUEST + COPIES * len(body)


def until_midnight(moment: datetime) -> int:
    """Return the seconds until the next UTC day begins, at least 1."""
    moment = moment.astimezone(UTC)
    tomorrow = (moment + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
    return max(1, -int((moment - tomorrow).total_seconds() // 1))
