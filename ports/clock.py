"""Time and randomness: the only two inputs that a rule may not produce itself."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from typing import ClassVar, Protocol

import msgspec


class Alarm(Protocol):
    """A scheduled call of a clock."""

    def cancel(self) -> None:
        """Cancel the call. Has no effect after the call was made."""
        ...


class Clock(Protocol):
    """The service's time. A virtual clock lets a whole service, with its workers, run through a year in a test."""

    def now(self) -> datetime:
        """Return the present moment, timezone-aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds since some fixed moment, never going back; for durations only."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds` of this clock's time."""
        ...

    def call_later(self, seconds: float, call: Callable[[], object], /) -> Alarm:
        """Call `call` on the event loop after `seconds` of this clock's time, unless the alarm is cancelled before. Use
        it for long waits: it costs less than a sleeping task."""
        ...


class TestClock(msgspec.Struct, frozen=True):
    """A separate time in which all objects of one test account live (docs/sandbox.md "The clock")."""

    __test__: ClassVar[bool] = False
    """Tells pytest that this class is not a test."""

    id: str
    """The account's id."""
    offset: timedelta = timedelta(0)
    """How far the clock is ahead of the machine's time; it never decreases."""
    is_advancing: bool = False
    """The clock is being advanced: only the advancing process runs its jobs, each at its own time."""


class TestTimeClock(Clock, Protocol):
    """A clock that knows the test clock of the current task. Tasks started by it inherit that test clock."""

    def now(self) -> datetime:
        """Return the present moment by the test clock in force; by the machine's clock if there is none."""
        ...

    def real(self) -> datetime:
        """Return the machine's moment, whatever test clock is in force: for receivers' clocks, keys and limits."""
        ...

    @property
    def test_clock(self) -> TestClock | None:
        """The current test clock; None in live mode, and for work that belongs to no account."""
        ...

    def enter(self, test_clock: TestClock | None, /) -> None:
        """Use `test_clock` from now on, until the surrounding `entered` block ends."""
        ...

    def entered(self, test_clock: TestClock | None, /) -> AbstractContextManager[None]:
        """Use `test_clock` inside the block, and the previous one after it."""
        ...


class Ids(Protocol):
    """Identifiers and secrets."""

    def uuid(self) -> str:
        """Return a new UUID as text, version 7: time-ordered, so that new rows land at the end of an index; 74 random
        bits."""
        ...

    def secret(self, size: int) -> str:
        """Return `size` random bytes from the operating system, as hex."""
        ...
