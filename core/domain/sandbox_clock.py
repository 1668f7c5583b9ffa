"""The clock of a test account: how far it is ahead, and an advance of it that is under way
(docs/sandbox.md "The clock")."""

from datetime import UTC, datetime, timedelta

import msgspec

from .days import read_moment
from .errors import Refusal, shape_error

LONGEST = timedelta(days=366)
"""Of one call: a year, also one with a 29 February in it."""

LATEST = datetime(2100, 1, 1, tzinfo=UTC)
"""No test account lives beyond it: dates stay what other systems can read."""

TOGETHER = timedelta(seconds=1)
"""Jobs at most so far apart an advance runs together, each at its own moment, and with the clock at the last one's. A
job that one of them plans within that time runs late by as much."""

_SHOWN = timedelta(milliseconds=1)
"""The interface shows moments to the millisecond: `to` may be the very `now` that it showed."""


class SandboxClock(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of a clock that was moved. `offset` never falls."""

    offset: int = 0
    """Microseconds that the account is ahead of the machine's time."""
    target: datetime | None = None
    """Where the advance under way leads; null at rest."""
    jobs_run: int = 0
    """By the advance under way, or the last one."""
    events_before: int = 0
    """How many events the account had when it began."""
    events_emitted: int = 0
    """By the last advance, once it is at its end."""

    @property
    def ahead(self) -> timedelta:
        return timedelta(microseconds=self.offset)

    @property
    def is_advancing(self) -> bool:
        return self.target is not None

    @property
    def was_moved(self) -> bool:
        """Its days are not the service's any more."""
        return self.offset > 0 or self.is_advancing


class ClockWish(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of POST /sandbox/clock/advance: one of the two."""

    seconds: int | None = None
    to: str | None = None


def begun(clock: SandboxClock, target: datetime, events: int) -> SandboxClock:
    """An advance to `target` begins, while the account has so many events."""
    return SandboxClock(offset=clock.offset, target=target, events_before=events)


def moved(clock: SandboxClock, real: datetime, moment: datetime) -> SandboxClock:
    """The clock when it has come to `moment`, while the machine's is at `real`. It never goes back: where the work
    itself took longer than the time it leads through, it is later already."""
    return msgspec.structs.replace(clock, offset=max(clock.offset, (moment - real) // timedelta(microseconds=1)))


def ended(clock: SandboxClock, real: datetime, events: int) -> SandboxClock:
    """The clock at its target, and at rest, while the account has so many events."""
    there = clock if clock.target is None else moved(clock, real, clock.target)
    emitted = max(0, events - clock.events_before)
    return msgspec.structs.replace(there, target=None, events_before=0, events_emitted=emitted)


def target_of(wish: ClockWish, now: datetime) -> datetime:
    """Where a wish leads. Raises: Refusal VALIDATION_ERROR."""
    if (wish.seconds is None) == (wish.to is None):
        raise Refusal("VALIDATION_ERROR", "Give either seconds or to")
    name = "to" if wish.seconds is None else "seconds"
    target = read_moment("to", wish.to) if wish.to is not None else _later(now, wish.seconds or 0)
    if now - _SHOWN < target < now:
        return now
    if target < now:
        raise shape_error(name, "the clock moves forward only")
    if target - now > LONGEST:
        raise shape_error(name, f"at most {LONGEST.days} days at once")
    if target > LATEST:
        raise shape_error(name, f"at most up to {LATEST.date().isoformat()}")
    return target


def _later(now: datetime, seconds: int) -> datetime:
    # Bounded first: no sum of a moment and any integer that JSON can hold may overflow.
    most = int(LONGEST.total_seconds()) + 1
    return now + timedelta(seconds=max(-1, min(seconds, most)))
