"""Time: the machine's clock, and a virtual clock that is moved by hand.

The virtual clock is not only for tests: the sandbox and embedding programs use it too. A whole app runs through a day
in the time that its work takes.
"""

import asyncio
import heapq
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from itertools import count

import msgspec

from ..ports.clock import Alarm, Clock, TestClock

_MICROSECOND = timedelta(microseconds=1)
_SETTLING_PASSES = 64
"""Turns of the event loop that a woken sleeper gets before time moves on: more than any chain of in-memory tasks needs,
and about a millisecond of real time."""


_now = datetime.now
"""A module-level name, because every request reads the time six times, and the attribute of the class is slow to look
up."""


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """Return the present moment in UTC."""
        return _now(UTC)

    def monotonic(self) -> float:
        """Return seconds since an arbitrary start, such as the machine's."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Sleep on the event loop."""
        await asyncio.sleep(seconds)

    def call_later(self, seconds: float, call: Callable[[], object]) -> Alarm:
        """Call the function later on the event loop."""
        return asyncio.get_running_loop().call_later(seconds, call)


class _VirtualAlarm:
    """An entry among the sleepers of a virtual clock that calls a function when it is woken."""

    def __init__(self, call: Callable[[], object], forget: Callable[[], None]) -> None:
        self._call = call
        self._forget = forget
        self._is_over = False

    def done(self) -> bool:
        return self._is_over

    def cancel(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._forget()

    def set_result(self, _: None) -> None:
        self.cancel()
        self._call()


class VirtualClock:
    """A clock that stands still until it is advanced.

    `advance` wakes the sleepers in the order of their times, and lets the event loop settle after each. So each sleeper
    acts at its own moment, and new sleeps that it starts are respected. Counting turns does not cover work outside the
    event loop (threads, sockets): pass `settle`, which must return once such work is done. The clock serves one event
    loop. It counts whole microseconds.
    """

    def __init__(self, start: datetime | None = None, *, settle: Callable[[], Awaitable[None]] | None = None) -> None:
        self._start = start or datetime(2026, 1, 1, tzinfo=UTC)
        self._elapsed = 0
        self._order = count()
        self._queue: list[tuple[int, int]] = []
        self._sleepers: dict[tuple[int, int], asyncio.Future[None] | _VirtualAlarm] = {}
        self._settle = settle or self._turns

    def now(self) -> datetime:
        """Return the moment that the clock was advanced to."""
        return self._start + self._elapsed * _MICROSECOND

    def monotonic(self) -> float:
        """Return the seconds that the clock was advanced by."""
        return self._elapsed / 1_000_000

    async def sleep(self, seconds: float) -> None:
        """Return once the clock was advanced by `seconds`. For zero or less, give the other tasks one turn."""
        if seconds <= 0:
            return await asyncio.sleep(0)
        ticket = self._ticket(seconds)
        sleeper = self._sleepers[ticket] = asyncio.get_running_loop().create_future()
        try:
            await sleeper
        finally:
            self._leave(ticket)

    def call_later(self, seconds: float, call: Callable[[], object]) -> Alarm:
        """Call the function when the clock passes this moment, just as a sleeper is woken."""
        ticket = self._ticket(seconds)
        alarm = self._sleepers[ticket] = _VirtualAlarm(call, lambda: self._leave(ticket))
        return alarm

    def _ticket(self, seconds: float) -> tuple[int, int]:
        """Reserve a place in the queue. The caller must add the ticket's sleeper."""
        ticket = (self._elapsed + max(1, round(seconds * 1_000_000)), next(self._order))
        heapq.heappush(self._queue, ticket)
        return ticket

    def _leave(self, ticket: tuple[int, int]) -> None:
        del self._sleepers[ticket]
        self._forget_the_cancelled()

    async def advance(self, seconds: float) -> None:
        """Let `seconds` pass. Raises ValueError for negative seconds, because time moves only forward."""
        if seconds < 0:
            raise ValueError("a clock is advanced forward only")
        await self._advance_to(self._elapsed + round(seconds * 1_000_000))

    async def advance_to(self, moment: datetime) -> None:
        """Let time pass until `moment`. Raises ValueError if it is in the past."""
        if moment < self.now():
            raise ValueError("a clock is advanced forward only")
        await self._advance_to((moment - self._start) // _MICROSECOND)

    def step(self, seconds: float) -> None:
        """Set the clock forward or back, as NTP does: no time passes, and no sleeper wakes."""
        self._start += round(seconds * 1_000_000) * _MICROSECOND

    def next_wake(self) -> datetime | None:
        """Return when the first sleeper wakes; None without sleepers."""
        self._drop_the_gone()
        return self._start + self._queue[0][0] * _MICROSECOND if self._queue else None

    async def _advance_to(self, end: int) -> None:
        await self._settle()
        while True:
            self._drop_the_gone()
            if not self._queue or self._queue[0][0] > end:
                break
            ticket = heapq.heappop(self._queue)
            # A sleeper may advance the clock itself, but time never goes back.
            self._elapsed = max(self._elapsed, ticket[0])
            self._sleepers[ticket].set_result(None)
            await self._settle()
        self._elapsed = max(self._elapsed, end)
        await self._settle()

    def _drop_the_gone(self) -> None:
        while self._queue and self._is_gone(self._queue[0]):
            heapq.heappop(self._queue)

    def _is_gone(self, ticket: tuple[int, int]) -> bool:
        sleeper = self._sleepers.get(ticket)
        return sleeper is None or sleeper.done()

    def _forget_the_cancelled(self) -> None:
        """Rebuild the queue without cancelled entries. Most sleeps are cancelled, and the clock may stand still for
        long."""
        if len(self._queue) > 2 * len(self._sleepers) + 64:
            self._queue = sorted(self._sleepers)

    async def _turns(self) -> None:
        if len(asyncio.all_tasks()) == 1:
            return  # no other task can be woken; this saves half the time of most tests
        for _ in range(_SETTLING_PASSES):
            await asyncio.sleep(0)


class ShiftingClock:
    """Another clock, shifted by the offset of the current task's test clock.

    Durations are never shifted. Every app has its own variable, so a task that serves two apps does not carry a test
    clock from one to the other.
    """

    def __init__(self, machine: Clock) -> None:
        self._machine = machine
        self._test_clock: ContextVar[TestClock | None] = ContextVar("world", default=None)

    def now(self) -> datetime:
        """Return the machine's time plus the test clock's offset."""
        test_clock = self._test_clock.get()
        return self._machine.now() if test_clock is None else self._machine.now() + test_clock.offset

    def real(self) -> datetime:
        """Return the machine's time."""
        return self._machine.now()

    def monotonic(self) -> float:
        """Return the machine's monotonic time."""
        return self._machine.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Sleep on the machine's clock."""
        await self._machine.sleep(seconds)

    def call_later(self, seconds: float, call: Callable[[], object]) -> Alarm:
        """Call the function later on the machine's clock."""
        return self._machine.call_later(seconds, call)

    @property
    def test_clock(self) -> TestClock | None:
        """Test clock that this task or its parent has entered."""
        return self._test_clock.get()

    def enter(self, test_clock: TestClock | None, /) -> None:
        """Use `test_clock` until the innermost `entered` block ends."""
        self._test_clock.set(test_clock)

    def entered(self, test_clock: TestClock | None, /) -> AbstractContextManager[None]:
        """Use `test_clock` inside the block."""
        return _Entered(self._test_clock, test_clock)


class _Entered(msgspec.Struct, eq=False):
    """Context manager of a test clock. Every request uses it, so it is a struct and not a slower generator."""

    _variable: ContextVar[TestClock | None]
    _test_clock: TestClock | None
    _before: TestClock | None = None

    def __enter__(self) -> None:
        self._before = self._variable.get()
        if self._test_clock is not self._before:
            self._variable.set(self._test_clock)

    def __exit__(self, *_: object) -> None:
        if self._variable.get() is not self._before:
            self._variable.set(self._before)
