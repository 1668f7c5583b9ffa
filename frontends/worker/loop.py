"""The worker: claims due jobs and does them side by side, until told to stop."""

import asyncio
import logging

from ...core.usecases.jobs import LEASE, run
from ...ports.bundle import Ports
from ...ports.faults import Fault
from ...ports.jobs import Job

SWEEP = 1.0
"""Seconds after which the worker looks by itself: work that another process wrote, or a kick that was lost."""

log = logging.getLogger("cambist.worker")


class Worker:
    """One claiming loop; `at_once` bounds how many jobs are under way."""

    def __init__(self, ports: Ports, *, at_once: int = 64) -> None:
        self._ports = ports
        self._free = asyncio.Semaphore(at_once)
        self._at_once = at_once
        self._running: set[asyncio.Task[None]] = set()
        self._stopping = False
        self._resting: asyncio.Task[None] | None = None

    async def work(self) -> None:
        """Run until `stop()`; then finish what is under way."""
        while not self._stopping:
            claimed = await self._claim()
            for job in claimed:
                await self._free.acquire()
                task = asyncio.create_task(self._do(job))
                self._running.add(task)
                task.add_done_callback(self._running.discard)
            if not claimed:
                await self._rest()
        if self._running:
            await asyncio.gather(*self._running)

    def stop(self) -> None:
        """Claim nothing more; `work()` returns when the jobs under way are done."""
        self._stopping = True
        if self._resting is not None:
            self._resting.cancel()

    async def _rest(self) -> None:
        """Until a kick, until the next job is due, or for one sweep; `stop()` ends it at once."""
        pause = await self._pause()
        if self._stopping:
            return
        self._resting = asyncio.create_task(self._ports.queue.wait(pause))
        try:
            await self._resting
        except asyncio.CancelledError:
            if not self._stopping:
                self._resting.cancel()
                raise
        finally:
            self._resting = None

    async def _claim(self) -> list[Job]:
        room = self._at_once - len(self._running)
        if room <= 0:
            await self._free.acquire()
            self._free.release()
            room = 1
        try:
            return await self._ports.storage.claim(room, LEASE)
        except Fault:
            log.exception("the storage gave no jobs")
            return []

    async def _pause(self) -> float:
        try:
            due = await self._ports.storage.next_due()
            if due is None:
                return SWEEP
            left = (due - await self._ports.storage.now()).total_seconds()
        except Fault:
            log.exception("the storage does not say what is due")
            return SWEEP
        return min(max(left, 0.0), SWEEP)

    async def _do(self, job: Job) -> None:
        try:
            await run(self._ports, job)
        finally:
            self._free.release()
