"""The worker: claims due jobs and runs them concurrently until it is stopped (ARCHITECTURE.md "Units and jobs").

Deliveries and other jobs are claimed separately and do not share slots. Each receiver is served by its own task with
its own limits (core/usecases/webhooks/dispatcher.py). A job that waits for a slow provider gives its slot back
meanwhile, and such calls are limited per provider (frontends/guard). So neither receivers nor banks that hang delay the
others.
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from contextlib import nullcontext, suppress

from ...core.usecases.job_kinds import Handler
from ...core.usecases.jobs import HANDLERS, RENEW, WORKER_LEASE, is_held, run
from ...core.usecases.operators.unreadable import take_up
from ...core.usecases.recurring_jobs import start_recurring_jobs
from ...core.usecases.webhooks.dispatcher import WEBHOOKS, Dispatcher
from ...core.usecases.webhooks.outbox import DELIVER
from ...ports.bundle import Ports
from ...ports.faults import Fault, Unavailable
from ...ports.jobs import Job
from ...ports.storage import Losable
from ..layers.guard.asker import job_asks
from ..telemetry.logs import job_context
from ..telemetry.telemetry import Ending, Telemetry
from .clock import MachineClock

SWEEP = 1.0
"""Seconds after which the worker polls for due jobs without a wake-up: another process may have written them, or a
wake-up was lost."""

POLL = 0.25
"""Seconds between two polls for new events of the receivers being served."""

TAKE_UP = 600.0
"""Seconds after which unreadable rows are tried again."""

RECEIVERS = 2560
"""Largest number of receivers served at once: receivers with deliveries under way, receivers that webhooks/limiter.py
lets wait, and some spare."""

WATCH = 0.5
"""Seconds between two checks whether the storage is lost."""

LEAVING = 0.5
"""Seconds for cancelled jobs to end when the worker leaves, and the same again for releasing their leases."""

RECURRING_POLL = 60.0
"""Seconds between two checks for missing recurring jobs."""

_RECURRING_PAUSES = (1.0, 2.0, 5.0, 10.0, 20.0)
"""Seconds before recurring jobs are written again after the first failures; then `RECURRING_POLL`."""

log = logging.getLogger("cambist.worker")


class Worker:
    """One claiming loop of a process.

    `at_once`: slots for jobs other than deliveries; a job that waits for a slow provider uses none. `webhooks`: largest
    number of webhooks under way.
    """

    def __init__(
        self, ports: Ports, *, at_once: int = 64, webhooks: int = WEBHOOKS, telemetry: Telemetry | None = None
    ) -> None:
        self._ports = ports
        self._telemetry = telemetry
        self._at_once = at_once
        self._dispatcher = Dispatcher(ports, at_once=webhooks)
        self._handlers: Mapping[str, Handler] = {**HANDLERS, DELIVER: lambda _, job: self._dispatcher.run(job)}
        self._running: dict[asyncio.Task[None], Job] = {}
        self._serving: dict[asyncio.Task[None], Job] = {}
        self._waiting = 0
        """Number of running jobs that wait for a slow provider and use no slot."""
        self._claimed = asyncio.Event()
        """Not set while the storage is asked for jobs: jobs of the answer are leased, and not yet under way."""
        self._claimed.set()
        self._serves = asyncio.Event()
        self._works = asyncio.Event()
        self._stopping = False
        self._lost: str | None = None
        self._resting: asyncio.Task[None] | None = None
        self._clock = MachineClock(ports)
        self._ailing = False
        """Whether something failed since the last poll for jobs: the next poll comes after a sweep, not at once."""

    async def work(self) -> None:
        """Run until `stop()`; then finish the jobs under way. Raises: Unavailable when the storage is lost."""
        besides = [
            asyncio.create_task(each)
            for each in (
                self._keep_recurring_jobs(),
                self._take_up(),
                self._look(),
                self._renew(),
                self._watch_storage(),
            )
        ]
        try:
            while not self._stopping:
                await self._poll_once()
            if self._lost is not None:
                raise Unavailable(self._lost)
            while self.under_way:
                await self.finished()
        finally:
            for task in (*besides, *self._running, *self._serving):
                task.cancel()

    async def _poll_once(self) -> None:
        """Claim and begin due jobs; without any, rest. A failure is logged and retried after a sweep."""
        self._ailing = False
        try:
            await self._clock.look(self._jobs())
        except Exception:
            log.exception("what is due could not be put right after the clock was set; it is tried again")
            self._ailing = True
        begun = await self._begin_due(self._room_for_receivers(), kind=DELIVER)
        begun += await self._begin_due(self._room_for_others(), but_kind=DELIVER)
        if not begun:
            await self._rest()

    def stop(self) -> None:
        """Claim no further jobs; `work()` returns when the jobs under way are done."""
        self._stopping = True
        self._dispatcher.stop()
        self._wake()

    @property
    def under_way(self) -> int:
        """Number of jobs under way."""
        return len(self._running) + len(self._serving)

    async def finished(self) -> bool:
        """Wait until the jobs that are leased now are done. Return whether there were any, or may have been."""
        is_claiming = not self._claimed.is_set()
        await self._claimed.wait()
        under_way = [*self._running, *self._serving]
        if under_way:
            await asyncio.wait(under_way)
        return is_claiming or bool(under_way)

    async def leave(self) -> None:
        """Cancel the jobs under way and release their leases, so that the next worker need not wait for their
        expiry."""
        under_way = {**self._running, **self._serving}
        for task in under_way:
            task.cancel()
        if under_way:
            await asyncio.wait(under_way, timeout=LEAVING)
            returning = asyncio.create_task(self._give_back(under_way.values()))
            await asyncio.wait([returning], timeout=LEAVING)
            returning.cancel()

    async def _give_back(self, jobs: Iterable[Job]) -> None:
        """Release each job in its own unit, so that a job changed by another worker does not affect the others."""
        await asyncio.gather(*(self._give_one_back(job) for job in jobs))

    async def _give_one_back(self, job: Job) -> None:
        with suppress(Exception):  # otherwise its lease expires by itself
            async with self._ports.storage.unit() as unit:
                present = await unit[Job].get(job.id)
                if present is not None and is_held(present, job) and present.leased_until is not None:
                    unit[Job].change(present, leased_until=None)
                    await unit.commit()

    def _jobs(self) -> list[Job]:
        return [*self._running.values(), *self._serving.values()]

    def _begin(self, job: Job) -> None:
        mine = self._serving if job.kind == DELIVER else self._running
        task = asyncio.create_task(self._do(job))
        mine[task] = job
        task.add_done_callback(lambda done: self._end(mine, done))
        self._works.set()
        if self._serving:
            self._serves.set()

    async def _do(self, job: Job) -> None:
        counted = nullcontext(Ending()) if self._telemetry is None else self._telemetry.job(job)
        with job_context(job), counted as ending, job_asks(self._lend_slot, self._take_slot_back):
            ending.outcome = await run(self._ports, job, self._handlers)

    def _lend_slot(self) -> None:
        if self._is_full():
            self._wake()
        self._waiting += 1

    def _take_slot_back(self) -> None:
        """Count the job again. More jobs than slots may run for a moment: no job is claimed until there are fewer."""
        self._waiting -= 1

    def _end(self, mine: dict[asyncio.Task[None], Job], task: asyncio.Task[None]) -> None:
        if self._is_full():
            self._wake()
        del mine[task]
        if not self._serving:
            self._serves.clear()
        if not self._serving and not self._running:
            self._works.clear()

    async def _keep_recurring_jobs(self) -> None:
        """Write missing recurring jobs until all exist, then check for them every minute."""
        pauses = iter(_RECURRING_PAUSES)
        while True:
            try:
                await start_recurring_jobs(self._ports)
            except Exception as fault:  # noqa: BLE001 - whatever it is, it is tried again
                pause = next(pauses, RECURRING_POLL)
                log.warning("recurring jobs could not be written, and are tried again in %.0f s: %s", pause, fault)
            else:
                pauses, pause = iter(_RECURRING_PAUSES), RECURRING_POLL
            await self._ports.clock.sleep(pause)

    async def _watch_storage(self) -> None:
        """Stop when the storage is lost: `work` raises, and the process supervisor starts a new process."""
        storage = self._ports.storage
        while isinstance(storage, Losable):
            self._lost = storage.lost()
            if self._lost is not None:
                self.stop()
                break
            await self._ports.clock.sleep(WATCH)

    async def _take_up(self) -> None:
        """Retry unreadable rows: a newer program may have been started since."""
        while True:
            try:
                await take_up(self._ports)
            except Exception as fault:  # noqa: BLE001 - whatever it is, it is tried again
                log.warning("what could not be read was not tried again: %s", fault)
            await self._ports.clock.sleep(TAKE_UP)

    async def _look(self) -> None:
        """Have the dispatcher poll for new events while receivers are served; otherwise no timer runs."""
        while True:
            await self._serves.wait()
            await self._ports.clock.sleep(POLL)
            self._dispatcher.look()

    async def _renew(self) -> None:
        """Renew the leases of all jobs under way every `RENEW` seconds, in one statement."""
        while True:
            await self._works.wait()
            await self._ports.clock.sleep(RENEW)
            jobs = self._jobs()
            try:
                await self._ports.storage.renew(jobs, WORKER_LEASE)
            except Exception:
                log.exception("the storage did not renew the leases of %d jobs", len(jobs))

    async def _rest(self) -> None:
        """Wait for a wake-up, the next due time, or one sweep; `_wake` ends the wait at once."""
        pause = await self._pause()
        if self._stopping:
            return
        if self._is_full() or self._ailing:
            pause = SWEEP  # the due job may have no free slot, or may have failed
        self._resting = resting = asyncio.create_task(self._ports.queue.wait(pause))
        try:
            await asyncio.wait([resting])
        finally:
            self._resting = None
            resting.cancel()
        fault = None if resting.cancelled() else resting.exception()
        if isinstance(fault, Exception):
            self._ails("the queue does not wait", fault)
            await self._ports.clock.sleep(SWEEP)

    def _wake(self) -> None:
        if self._resting is not None:
            self._resting.cancel()

    def _room_for_receivers(self) -> int:
        return RECEIVERS - len(self._serving)

    def _room_for_others(self) -> int:
        return self._at_once - (len(self._running) - self._waiting)

    def _is_full(self) -> bool:
        return self._room_for_receivers() <= 0 or self._room_for_others() <= 0

    async def _begin_due(self, room: int, **which: str) -> int:
        """Claim up to `room` due jobs and begin them. Return their number."""
        if room <= 0:
            return 0
        self._claimed.clear()
        try:
            claimed = await self._ports.storage.claim(room, WORKER_LEASE, **which)
            for job in claimed:
                self._begin(job)
        except Exception as fault:  # noqa: BLE001 - whatever it is, other jobs are done, and these are asked for again
            self._ails("the storage gave no jobs", fault)
            return 0
        finally:
            self._claimed.set()
        return len(claimed)

    async def _pause(self) -> float:
        """Return the seconds until the next job is due, at most `SWEEP`."""
        try:
            due = await self._ports.storage.next_due()
            if due is None:
                return SWEEP
            left = (due - await self._ports.storage.now()).total_seconds()
        except Exception as fault:  # noqa: BLE001 - as above
            self._ails("the storage does not say what is due", fault)
            return SWEEP
        return min(max(left, 0.0), SWEEP)

    def _ails(self, what: str, fault: Exception) -> None:
        """Log a failure that belongs to no job, and retry after a sweep instead of at once."""
        self._ailing = True
        log.warning("%s: %s", what, fault, exc_info=None if isinstance(fault, Fault) else fault)
