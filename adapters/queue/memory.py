"""The queue of a house in one process: a kick wakes its own workers."""

import asyncio
import heapq
from collections.abc import Sequence
from datetime import datetime, timedelta

from ...ports.clock import Clock
from ...ports.jobs import Job

_SOON = timedelta(seconds=1)
"""Jobs due later than that are found by the workers' own look at what is due next. Every new payment has such a job."""
_REMEMBERED = 10_000
"""Due times kept, the earliest ones; a job beyond them is found by the workers' sweep of the jobs table."""


class MemoryQueue:
    """Remembers when the kicked jobs are due, for those that are due soon.

    A job that is due wakes every waiting worker; one that will be wakes them at its time. When nobody waits, the hint
    stays until somebody does: a worker that was busy at the kick loses nothing.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due: list[datetime] = []
        self._waiters: set[asyncio.Future[bool]] = set()

    async def kick(self, jobs: Sequence[Job]) -> None:
        """Note the due times, and wake whoever waits."""
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
        """Return when a kicked job is due, or after `seconds`."""
        end = self._clock.monotonic() + seconds
        while True:
            nap = end - self._clock.monotonic()
            if self._due:
                nap = min(nap, (self._due[0] - self._clock.now()).total_seconds())
            if nap <= 0 or await self._nap(nap):
                break
        # Only now, when this waiter is sure to return: one cancelled before leaves its hint to the next.
        now = self._clock.now()
        while self._due and self._due[0] <= now:
            heapq.heappop(self._due)

    async def works(self) -> bool:
        """There is no server to lose."""
        return True

    async def close(self) -> None:
        """Nothing is open."""

    async def _nap(self, seconds: float) -> bool:
        """True when the time is over or a due job was kicked; False when a kick moved the time to wake at."""
        waiter: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        alarm = self._clock.call_later(seconds, lambda: None if waiter.done() else waiter.set_result(True))
        self._waiters.add(waiter)
        try:
            return await waiter
        finally:
            self._waiters.discard(waiter)
            alarm.cancel()
