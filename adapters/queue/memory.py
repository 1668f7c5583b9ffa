"""Queue of an app in one process: a wake-up wakes its own workers."""

import asyncio
import heapq
from collections.abc import Sequence
from datetime import datetime, timedelta

from ...ports.clock import Clock
from ...ports.jobs import Job

_SOON = timedelta(seconds=1)
"""Jobs due later are found when workers poll for the next due job. Every new payment has such a job."""
_REMEMBERED = 10_000
"""Number of stored due times, the earliest ones. Other jobs are found by the workers' sweep of the jobs table."""


class MemoryQueue:
    """Store the due times of woken up jobs that are due soon.

    A due job wakes every waiting worker at once; a later one wakes them at its time. If no worker waits, the hint stays
    until one does, so a busy worker misses nothing.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due: list[datetime] = []
        self._waiters: set[asyncio.Future[bool]] = set()

    async def wake_up(self, jobs: Sequence[Job]) -> None:
        """Store the due times, and wake the waiting workers."""
        now = self._clock.now()
        known = len(self._due)
        for job in jobs:
            if job.due <= now + _SOON:
                heapq.heappush(self._due, job.due)
        if len(self._due) == known:
            return
        if len(self._due) > 2 * _REMEMBERED:
            self._due = sorted(set(self._due))[:_REMEMBERED]
        is_due = self._due[0] <= now
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(is_due)

    async def wait(self, seconds: float) -> None:
        """Return when a woken up job is due, or after `seconds`."""
        end = self._clock.monotonic() + seconds
        while True:
            nap = end - self._clock.monotonic()
            if self._due:
                nap = min(nap, (self._due[0] - self._clock.now()).total_seconds())
            if nap <= 0 or await self._nap(nap):
                break
        # Clear the hints only here, when this waiter is sure to return. A waiter cancelled earlier leaves them to the
        # next one.
        now = self._clock.now()
        while self._due and self._due[0] <= now:
            heapq.heappop(self._due)

    async def works(self) -> bool:
        """Return True: there is no server that could fail."""
        return True

    async def close(self) -> None:
        """Do nothing, because nothing is open."""

    async def _nap(self, seconds: float) -> bool:
        """Return True when the time is over or a due job was woken up; False when a wake-up changed the wake-up
        time."""
        waiter: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        alarm = self._clock.call_later(seconds, lambda: None if waiter.done() else waiter.set_result(True))
        self._waiters.add(waiter)
        try:
            return await waiter
        finally:
            self._waiters.discard(waiter)
            alarm.cancel()
