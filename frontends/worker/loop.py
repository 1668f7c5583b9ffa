"""The worker: claims due jobs and does them side by side, until told to stop.

Deliveries do not take the places of other jobs: every receiver is served by a task of its own, under bounds of its own
(core/usecases/deliveries.py), so that receivers that hang hold up nobody.
"""

import asyncio
import logging
from collections.abc import Mapping

from ...core.usecases.deliveries import Dispatcher
from ...core.usecases.jobs import HANDLERS, LEASE, Handler, run, start_standing
from ...core.usecases.outbox import DELIVER
from ...ports.bundle import Ports
from ...ports.faults import Fault
from ...ports.jobs import Job

SWEEP = 1.0
"""Seconds after which the worker looks by itself: work that another process wrote, or a kick that was lost."""

LOOK = 0.25
"""Seconds after which receivers that are being served are looked at again, for events that came meanwhile."""

RECEIVERS = 1024
"""Receivers served at once, at most."""

log = logging.getLogger("cambist.worker")


class Worker:
    """One claiming loop; `at_once` bounds how many jobs other than deliveries are under way."""

    def __init__(self, ports: Ports, *, at_once: int = 64) -> None:
        self._ports = ports
        self._at_once = at_once
        self._dispatcher = Dispatcher(ports)
        self._handlers: Mapping[str, Handler] = {**HANDLERS, DELIVER: lambda _, job: self._dispatcher.run(job)}
        self._running: set[asyncio.Task[None]] = set()
        self._serving: set[asyncio.Task[None]] = set()
        self._ended = asyncio.Event()
        self._serves = asyncio.Event()
        self._stopping = False
        self._resting: asyncio.Task[None] | None = None

    async def work(self) -> None:
        """Run until `stop()`; then finish what is under way."""
        looking = asyncio.create_task(self._look())
        try:
            await self._start_standing()
            while not self._stopping:
                claimed = await self._claim()
                for job in claimed:
                    self._begin(job)
                if not claimed:
                    await self._rest()
            while under_way := self._running | self._serving:
                await asyncio.wait(under_way)
        finally:
            for task in (looking, *self._running, *self._serving):
                task.cancel()

    def stop(self) -> None:
        """Claim nothing more; `work()` returns when the jobs under way are done."""
        self._stopping = True
        self._dispatcher.stop()
        self._ended.set()
        if self._resting is not None:
            self._resting.cancel()

    def _begin(self, job: Job) -> None:
        mine = self._serving if job.kind == DELIVER else self._running
        task = asyncio.create_task(run(self._ports, job, self._handlers))
        mine.add(task)
        task.add_done_callback(lambda done: self._end(mine, done))
        if self._serving:
            self._serves.set()

    def _end(self, mine: set[asyncio.Task[None]], task: asyncio.Task[None]) -> None:
        mine.discard(task)
        self._ended.set()
        if not self._serving:
            self._serves.clear()

    async def _start_standing(self) -> None:
        try:
            await start_standing(self._ports)
        except Fault:
            log.exception("the storage does not take the standing jobs; the next start will write them")

    async def _look(self) -> None:
        """Let receivers that are being served look around. Nothing ticks while there are none."""
        while True:
            await self._serves.wait()
            await self._ports.clock.sleep(LOOK)
            self._dispatcher.look()

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

    def _room(self) -> int:
        return 0 if len(self._serving) >= RECEIVERS else self._at_once - len(self._running)

    async def _claim(self) -> list[Job]:
        while (room := self._room()) <= 0 and not self._stopping:
            self._ended.clear()
            await self._ended.wait()
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
