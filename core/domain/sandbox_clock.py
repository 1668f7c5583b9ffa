"""The clock of a test account: its offset, and an advance in progress (docs/sandbox.md "The clock")."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

import msgspec
from msgspec import Meta

from . import shared_fields as shared
from .days import read_moment
from .errors import Refusal, shape_error

LONGEST = timedelta(days=366)
"""Longest advance of one call: a year, even one with a 29 February."""

LATEST = datetime(2100, 1, 1, tzinfo=UTC)
"""Latest time of a test account: dates must remain readable for other systems."""

TOGETHER = timedelta(seconds=1)
"""An advance runs jobs together if they are at most this far apart, each at its own moment, with the clock at the last
one's. A job that one of them schedules within that time runs late by that much."""

_SHOWN = timedelta(milliseconds=1)
"""The API shows moments to the millisecond: `to` may be exactly the `now` that it showed."""


class SandboxClock(msgspec.Struct, frozen=True, kw_only=True):
    """State of a clock that was advanced. `offset` never decreases."""

    offset: int = 0
    """Microseconds by which the account is ahead of the machine's time."""
    target: datetime | None = None
    """Target of the advance in progress; null if there is none."""
    jobs_run: int = 0
    """Number of jobs run by the present or last advance."""
    events_before: int = 0
    """Number of the account's events when it began."""
    events_emitted: int = 0
    """Number of events emitted by the last advance, once it has ended."""

    @property
    def ahead(self) -> timedelta:
        return timedelta(microseconds=self.offset)

    @property
    def is_advancing(self) -> bool:
        return self.target is not None

    @property
    def was_moved(self) -> bool:
        """Whether its days differ from the service's."""
        return self.offset > 0 or self.is_advancing


class ClockWish(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of POST /sandbox/clock/advance: exactly one of the two fields."""

    seconds: Annotated[
        Annotated[int, shared.limits(minimum=1, maximum=366 * 86400)] | None,
        Meta(description="Seconds to move forward; or use `to`"),
    ] = None
    to: Annotated[shared.MomentText | None, Meta(description="Time to move to; or use `seconds`")] = None


def begun(clock: SandboxClock, target: datetime, events: int) -> SandboxClock:
    """Return the clock at the start of an advance to `target`; `events` is the account's number of events."""
    return SandboxClock(offset=clock.offset, target=target, events_before=events)


def moved(clock: SandboxClock, real: datetime, moment: datetime) -> SandboxClock:
    """Return the clock at `moment`, while the machine's clock shows `real`. It never goes back: if the work itself took
    longer than the time it advances, the clock is already later."""
    return msgspec.structs.replace(clock, offset=max(clock.offset, (moment - real) // timedelta(microseconds=1)))


def ended(clock: SandboxClock, real: datetime, events: int) -> SandboxClock:
    """Return the clock at its target after the advance; `events` is the account's number of events."""
    there = clock if clock.target is None else moved(clock, real, clock.target)
    emitted = max(0, events - clock.events_before)
    return msgspec.structs.replace(there, target=None, events_before=0, events_emitted=emitted)


def target_of(wish: ClockWish, now: datetime) -> datetime:
    """Return the target of a request. Raises: Refusal VALIDATION_ERROR."""
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
    # Limit it first: a moment plus any integer of JSON could overflow.
    most = int(LONGEST.total_seconds()) + 1
    return now + timedelta(seconds=max(-1, min(seconds, most)))
