"""The clock of a sandbox: time stands still until a test moves it."""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

from ...core.usecases.jobs import run_due
from ...ports.bundle import Ports

Advance = Callable[[float], Awaitable[None]]


class Clock:
    """The sandbox's clock. It stands still until the test moves it."""

    def __init__(self, now: Callable[[], datetime], move: Callable[[float], None]) -> None:
        self._now = now
        self._move = move

    def now(self) -> datetime:
        """Return the current time in UTC."""
        return self._now()

    def advance(self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0) -> None:
        """Let time pass. Everything that becomes due on the way runs at its time."""
        self._move(timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds).total_seconds())

    def advance_to(self, moment: datetime) -> None:
        """Let time pass until `moment`. Raises: ValueError if it is in the past."""
        self._move((moment - self._now()).total_seconds())


class AsyncClock:
    """The clock of a service for tests in the event loop. It stands still until the test moves it."""

    def __init__(self, ports: Ports, advance: Advance) -> None:
        self._ports = ports
        self._advance = advance

    def now(self) -> datetime:
        """Return the current time in UTC."""
        return self._ports.clock.now()

    async def advance(self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0) -> None:
        """Let time pass. Everything that becomes due on the way runs at its time."""
        passed = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
        await pass_time(self._ports, self._advance, passed.total_seconds())

    async def advance_to(self, moment: datetime) -> None:
        """Let time pass until `moment`. Raises: ValueError if it is in the past."""
        await pass_time(self._ports, self._advance, (moment - self.now()).total_seconds())


async def pass_time(ports: Ports, advance: Advance, seconds: float) -> None:
    """Move the clock, and run every job that becomes due on the way at its time. Raises: ValueError below zero."""
    if seconds < 0:
        raise ValueError("time moves forward only")
    end = ports.clock.now() + timedelta(seconds=seconds)
    while True:
        await run_due(ports)
        due = await ports.storage.next_due()
        if due is None or due > end:
            break
        await advance(max(0.0, (due - ports.clock.now()).total_seconds()))
    await advance(max(0.0, (end - ports.clock.now()).total_seconds()))
