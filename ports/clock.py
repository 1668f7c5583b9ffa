"""Time and chance: the only two things a rule may not make up by itself."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from typing import ClassVar, Protocol

import msgspec


class Alarm(Protocol):
    """What a clock will call."""

    def cancel(self) -> None:
        """Call it no more. Changes nothing once it was called."""
        ...


class Clock(Protocol):
    """The service's time. A virtual clock lets a whole service, with its workers, run through a year in a test."""

    def now(self) -> datetime:
        """The present moment, aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds since some fixed moment, never going back; for durations only."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds` of this clock's time."""
        ...

    def call_later(self, seconds: float, call: Callable[[], object], /) -> Alarm:
        """Call `call` on the event loop after `seconds` of this clock's time, unless the alarm is cancelled before.
        For what may take long: it costs less than a task that sleeps."""
        ...


class TestClock(msgspec.Struct, frozen=True):
    """A time of its own, in which all objects of one test account live (docs/sandbox.md "The clock")."""

    __test__: ClassVar[bool] = False
    """It is no test: pytest takes classes of such a name for some."""

    id: str
    """The account's."""
    offset: timedelta = timedelta(0)
    """How far it is ahead of the machine's time; never less than before."""
    is_advancing: bool = False
    """Its clock is being advanced: jobs are done by whoever advances it, at their own times, and by nobody else."""


class TestTimeClock(Clock, Protocol):
    """A clock that knows in whose time the present task lives. What a task begins lives in the same one."""

    def now(self) -> datetime:
        """The present moment by the test clock in force; the machine's outside of all."""
        ...

    def real(self) -> datetime:
        """The machine's moment, whatever test clock is in force: for receivers' clocks, keys and limits."""
        ...

    @property
    def test_clock(self) -> TestClock | None:
        """The test clock that was entered; None in live mode, and for what is no account's."""
        ...

    def enter(self, test_clock: TestClock | None, /) -> None:
        """Be in `test_clock` from now on, until whoever called `entered` before leaves."""
        ...

    def entered(self, test_clock: TestClock | None, /) -> AbstractContextManager[None]:
        """Be in `test_clock` inside, and after it where one was before."""
        ...


class Ids(Protocol):
    """Identifiers and secrets."""

    def uuid(self) -> str:
        """A new UUID as text, version 7: time-ordered, so that new rows land at the end of an index; 74 random bits."""
        ...

    def secret(self, size: int) -> str:
        """`size` random bytes from the operating system, as hex."""
        ...
