"""Time: the machine's, and a clock that is moved by hand.

The virtual clock is an adapter and not a test aid, because the sandbox and whoever embeds the service need it too: a
whole house runs through a day in the time its work takes.
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
"""Turns of the event loop that a woken sleeper gets before time moves on: more than any chain of tasks needs that
works in memory only, and about a millisecond of real time."""


_now = datetime.now
"""Looked up once: every request asks for the time six times, and a class is asked slowly."""


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """The present moment in UTC."""
        return _now(UTC)

    def monotonic(self) -> float:
        """Seconds since the machine started, or some such moment."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Sleep on the event loop."""
        await asyncio.sleep(seconds)

    def call_later(self, seconds: float, call: Callable[[], object]) -> Alarm:
        """The event loop's."""
        return asyncio.get_running_loop().call_later(seconds, call)


class _VirtualAlarm:
    """Stands among the sleepers of a virtual clock, and is called where they are woken."""

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

    `advance` goes from one sleeper to the next in the order of their times, and lets the event loop settle after
    each, so that what a sleeper does happens at its own moment, and a sleep that it starts on the way is kept too.
    Work that leaves the event loop (threads, sockets) is not seen by counting turns: give `settle`, which returns
    when such work has come to rest. For one event loop. Time is counted in whole microseconds.
    """

    def __init__(self, start: datetime | None = None, *, settle: Callable[[], Awaitable[None]] | None = None) -> None:
        self._start = start or datetime(2026, 1, 1, tzinfo=UTC)
        self._elapsed = 0
        self._order = count()
        self._queue: list[tuple[int, int]] = []
        self._sleepers: dict[tuple[int, int], asyncio.Future[None] | _VirtualAlarm] = {}
        self._settle = settle or self._turns

    def now(self) -> datetime:
        """The moment the clock was advanced to."""
        return self._start + self._elapsed * _MICROSECOND

    def monotonic(self) -> float:
        """Seconds that the clock was advanced by."""
        return self._elapsed / 1_000_000

    async def sleep(self, seconds: float) -> None:
        """Return once the clock was advanced by `seconds`. Zero or less: gives the other tasks one turn."""
        if seconds <= 0:
            return await asyncio.sleep(0)
        ticket = self._ticket(seconds)
        sleeper = self._sleepers[ticket] = asyncio.get_running_loop().create_future()
        try:
            await sleeper
        finally:
            self._leave(ticket)

    def call_later(self, seconds: float, call: Callable[[], object]) -> Alarm:
        """Call it when the clock is advanced over that moment, as a sleeper would be woken."""
        ticket = self._ticket(seconds)
        alarm = self._sleepers[ticket] = _VirtualAlarm(call, lambda: self._leave(ticket))
        return alarm

    def _ticket(self, seconds: float) -> tuple[int, int]:
        """A place in the queue; something of this ticket is to be put among the sleepers."""
        ticket = (self._elapsed + max(1, round(seconds * 1_000_000)), next(self._order))
        heapq.heappush(self._queue, ticket)
        return ticket

    def _leave(self, ticket: tuple[int, int]) -> None:
        del self._sleepers[ticket]
        self._forget_the_cancelled()

    async def advance(self, seconds: float) -> None:
        """Let `seconds` pass. Raises ValueError when they are negative: time moves forward only."""
        if seconds < 0:
            raise ValueError("a clock is advanced forward only")
        await self._advance_to(self._elapsed + round(seconds * 1_000_000))

    async def advance_to(self, moment: datetime) -> None:
        """Let time pass until `moment`. Raises ValueError when it is over."""
        if moment < self.now():
            raise ValueError("a clock is advanced forward only")
        await self._advance_to((moment - self._start) // _MICROSECOND)

    def step(self, seconds: float) -> None:
        """Set the clock, forward or back, as NTP does it: no time passes, and nobody who sleeps wakes."""
        self._start += round(seconds * 1_000_000) * _MICROSECOND

    def next_wake(self) -> datetime | None:
        """When the first sleeper wakes; None when nobody sleeps."""
        self._drop_the_gone()
        return self._start + self._queue[0][0] * _MICROSECOND if self._queue else None

    async def _advance_to(self, end: int) -> None:
        await self._settle()
        while True:
            self._drop_the_gone()
            if not self._queue or self._queue[0][0] > end:
                break
            ticket = heapq.heappop(self._queue)
            # A sleeper may advance the clock itself; time still never goes back.
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
        """Sleeps are mostly cancelled (a wait that ended otherwise), and time may stand still for long."""
        if len(self._queue) > 2 * len(self._sleepers) + 64:
            self._queue = sorted(self._sleepers)

    async def _turns(self) -> None:
        if len(asyncio.all_tasks()) == 1:
            return  # nobody else can be woken; most tests, and half of their time
        for _ in range(_SETTLING_PASSES):
            await asyncio.sleep(0)


class ShiftingClock:
    """Another clock, ahead by the offset of the test clock that the present task has entered.

    Durations are never shifted. Every house has its own variable, so that nobody who serves two houses in one task
    takes a test clock along.
    """

    def __init__(self, machine: Clock) -> None:
        self._machine = machine
        self._test_clock: ContextVar[TestClock | None] = ContextVar("world", default=None)

    def now(self) -> datetime:
        """The machine's moment, and the test clock's offset."""
        test_clock = self._test_clock.get()
        return self._machine.now() if test_clock is None else self._machine.now() + test_clock.offset

    def real(self) -> datetime:
        """The machine's moment."""
        return self._machine.now()

    def monotonic(self) -> float:
        """The machine's."""
        return self._machine.monotonic()

    async def sleep(self, seconds: float) -> None:
        """The machine's."""
        await self._machine.sleep(seconds)

    def call_later(self, seconds: float, call: Callable[[], object]) -> Alarm:
        """The machine's."""
        return self._machine.call_later(seconds, call)

    @property
    def test_clock(self) -> TestClock | None:
        """What this task, or whoever began it, has entered."""
        return self._test_clock.get()

    def enter(self, test_clock: TestClock | None, /) -> None:
        """Be in `test_clock` until the innermost `entered` is left."""
        self._test_clock.set(test_clock)

    def entered(self, test_clock: TestClock | None, /) -> AbstractContextManager[None]:
        """Be in `test_clock` inside."""
        return _Entered(self._test_clock, test_clock)


class _Entered(msgspec.Struct, eq=False):
    """A test clock for the time of a block; every request passes here, so it is no generator, and a struct."""

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
