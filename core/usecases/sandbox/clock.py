"""Reads and advances the clock of a test account; an advance runs every job that falls due on the way (docs/sandbox.md
"The clock").

An advance is stored, in the account (`Account.clock`) and as a job (`ADVANCE`), before it begins. The request that
started it runs it for `PATIENCE` seconds; then, or when its process dies, a worker runs the job to the end. Meanwhile
workers leave the account's test jobs alone.

Each step claims the next jobs and sets the clock to their time in one unit, then runs them. A reader therefore never
sees the clock go back, nor an effect from a later time. Jobs run in the order of their times, each at its own; jobs of
different objects within one second run together, because they mostly wait for the disk (clock_batches.py). At the end
the remaining jobs get due times of the storage's clock (clock_dues.py).
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

import msgspec

from ....ports.bundle import Ports
from ....ports.clock import TestClock
from ....ports.faults import Fault, Unavailable
from ....ports.jobs import Job
from ....ports.storage import Unit
from ...domain.accounts.accounts import Account, Caller, Mode
from ...domain.days import iso
from ...domain.errors import Refusal
from ...domain.sandbox_clock import ClockWish, SandboxClock, begun, ended, moved, target_of
from ...domain.webhooks.breaker import Breaker
from ...domain.webhooks.events import Event
from ..accounts.accounts import find_account
from ..common.account_time import test_clock_of
from ..common.schedule import is_ours, set_due
from ..common.units import retrying
from ..settlement.days import first_own_settlement
from ..webhooks.outbox import DELIVER, deliver_id
from ..webhooks.results import TIMER
from .clock_batches import batch_of, due_in_test_time, moment_of, worth_reading
from .clock_dues import plan_straightening, straighten

ADVANCE = "sandbox.clock"

LEASE = 8.0
"""Seconds after which a worker takes over an advance whose process died."""
KEEP = 2.0
"""Seconds between two renewals of that lease."""
PATIENCE = 20.0
"""Seconds for which the request itself advances. HTTP clients wait longer, so the answer can report its progress."""
VAIN = 5.0
"""Seconds that an advance may spend on failing deliveries: one webhook without an answer, or thousands refused at once.
After that the account's webhooks wait for the end of the advance; otherwise a dead receiver would make an advance of a
year take hours.
"""

TRIES, AGAIN = 5, 1.0
"""Consecutive storage failures that an advance survives, and the pause in seconds after each. The advance continues
because a caller waits for it, and completed steps are saved.
"""
IN_HAND = 0.05
"""Seconds between two checks of a job that a worker claimed before the advance began and still runs."""

Runner = Callable[[Ports, Job], Awaitable[None]]
"""Runs a job at the current test time (jobs.py: `do`; a parameter, because jobs.py imports this module)."""


class ClockStanding(msgspec.Struct, frozen=True, kw_only=True):
    """A test clock's time, the target of a running advance (None if there is no advance), and the number of jobs and
    events of the current or last advance.
    """

    now: datetime
    target: datetime | None
    jobs_run: int
    events_emitted: int


async def read_clock(ports: Ports, caller: Caller) -> ClockStanding:
    """Return the caller's test clock."""
    async with ports.storage.unit() as unit:
        account = await find_account(unit, caller.account_id)
        clock = account.clock or SandboxClock()
        emitted = clock.events_emitted
        if clock.is_advancing:
            emitted = max(0, await _events(unit, account.id) - clock.events_before)
    return ClockStanding(
        now=ports.clock.real() + clock.ahead, target=clock.target, jobs_run=clock.jobs_run, events_emitted=emitted
    )


async def advance(ports: Ports, caller: Caller, wish: ClockWish, run: Runner) -> ClockStanding:
    """Move the caller's clock forward, and run the jobs that fall due on the way. An advance that takes longer than
    `PATIENCE` returns with its `target`, and a worker continues it.

    Raises: Refusal VALIDATION_ERROR; INVALID_STATE while another advance is under way.
    """
    with ports.clock.entered(None):
        job = await _begin(ports, caller.account_id, wish)
        async with _held(ports, job):
            ends = ports.clock.monotonic() + PATIENCE
            await _Advance(ports, job, run).go_on(until=ends)
        return await read_clock(ports, caller)


async def carry_on(ports: Ports, job: Job, run: Runner) -> None:
    """Run an advance to its end (a job)."""
    await _Advance(ports, job, run).go_on(until=None)


async def _begin(ports: Ports, account_id: str, wish: ClockWish) -> Job:
    leased_until = await ports.storage.now() + timedelta(seconds=LEASE)

    async def work(unit: Unit) -> Job:
        account = await find_account(unit, account_id)
        clock = account.clock or SandboxClock()
        real = ports.clock.real()
        target = target_of(wish, real + clock.ahead)
        if clock.target is not None:
            raise Refusal(
                "INVALID_STATE", f"The clock is being advanced to {iso(clock.target)}; GET shows its progress"
            )
        began = begun(clock, target, await _events(unit, account_id))
        unit[Account].save(msgspec.structs.replace(account, clock=began))
        await first_own_settlement(unit, account_id, real + clock.ahead, clock.ahead)
        known = await unit[Job].get(advance_id(account_id))
        job = known or Job(id=advance_id(account_id), kind=ADVANCE, argument=account_id, due=real, created_at=real)
        job = msgspec.structs.replace(job, leased_until=leased_until, attempts=job.attempts + 1)
        return unit[Job].add(job) if known is None else unit[Job].save(job)

    return await retrying(ports.storage, work, again_on=("jobs_id",))


def advance_id(account_id: str) -> str:
    """Return the id of the job that advances an account's clock."""
    return f"{ADVANCE}:{account_id}"


async def _events(unit: Unit, account_id: str) -> int:
    return await unit[Event].total(account_id=account_id, mode=Mode.TEST)


@asynccontextmanager
async def _held(ports: Ports, job: Job) -> AsyncIterator[None]:
    """Renew the lease of `job` while the block runs, as a worker does for its jobs. A failed renewal is repeated by the
    next one; if none succeeds, the lease ends and a worker takes the advance over.
    """

    async def keep() -> None:
        while True:
            await ports.clock.sleep(KEEP)
            with contextlib.suppress(Fault):
                await ports.storage.renew([job], LEASE)

    keeping = asyncio.create_task(keep())
    try:
        yield
    finally:
        keeping.cancel()


class _Next(msgspec.Struct, frozen=True):
    """Result of a step. If all fields are empty there is nothing to run; take another step."""

    batch: Sequence[tuple[Job, TestClock | None]] = ()
    """Jobs to run together, each with its test clock."""
    wait: bool = False
    """Whether a worker is still running the next job."""
    over: bool = False
    """Whether the clock is at its target, and this step's unit has ended the advance."""
    lost: bool = False
    """Whether another process has taken the advance over, or the account is gone."""


class _Advance:
    """One advance in one process. Its own reads and writes use no test time; only the run of a job enters the job's
    time.
    """

    def __init__(self, ports: Ports, job: Job, run: Runner) -> None:
        self._ports = ports
        self._job = job
        self._account_id = job.argument
        self._run = run
        self._vain: dict[str, float] = {}
        """Seconds spent on deliveries without a good answer, by endpoint."""
        self._done: dict[str, int] = {}
        """Versions of the last batch's jobs, by id. A job found again at this version was not moved by its own run."""

    async def go_on(self, *, until: float | None) -> None:
        """Step until the advance ends or is lost; past `until` (seconds of the monotonic clock) hand it to a worker.
        Raises: Unavailable, after more than TRIES consecutive failures.
        """
        clock, failed = self._ports.clock, 0
        while until is None or clock.monotonic() < until:
            try:
                if await self._ended_with_next():
                    return
                failed = 0
            except Unavailable:
                failed += 1
                if failed > TRIES:
                    raise
                await clock.sleep(AGAIN)
        await self._hand_over()

    async def _ended_with_next(self) -> bool:
        """Take the next step and run its jobs. Return whether the advance ended or was lost."""
        found = await retrying(self._ports.storage, self._step)
        if found.over:
            await straighten(self._ports, self._account_id)
        elif found.batch:
            await self._do(found.batch)
        elif found.wait:
            await self._ports.clock.sleep(IN_HAND)
        return found.over or found.lost

    async def _step(self, unit: Unit) -> _Next:
        """In one unit, claim the next jobs (count their attempts, and set the clock to their time), or end the
        advance.
        """
        account = await unit[Account].get(self._account_id)
        holding = await unit[Job].get(self._job.id)
        if account is None or account.clock is None or holding is None or not self._is_ours(holding):
            return _Next(lost=True)
        clock, real = account.clock, self._ports.clock.real()
        due: Sequence[Job] = ()
        if clock.target is not None:
            due = await due_in_test_time(
                self._ports,
                unit,
                account,
                clock.target,
                but=self._left_out(),
                most=worth_reading(len(self._done) or None),
            )
        # Nothing is left before the target: end the advance in this unit.
        if not due:
            rests = ended(clock, real, await _events(unit, account.id))
            unit[Account].save(msgspec.structs.replace(account, clock=rests))
            unit[Job].remove(holding)
            await plan_straightening(unit, account.id, await self._ports.storage.now())
            return _Next(over=True)
        first = due[0]
        if first.leased_until is not None and first.leased_until > await self._ports.storage.now():
            return _Next(wait=True)
        if self._done.get(first.id) == first.version:
            # The job's run lost a race against another writer and left the job unchanged. Run it again, as after an
            # expired lease.
            later = moment_of(first) + timedelta(seconds=LEASE)
            unit[Job].save(msgspec.structs.replace(first, moment=later))
            return _Next()
        return self._take(unit, account, clock, batch_of(due))

    def _take(self, unit: Unit, account: Account, clock: SandboxClock, jobs: Sequence[Job]) -> _Next:
        """Claim each job at its own time, and set the account's clock to the last of them."""
        batch, real = [], self._ports.clock.real()
        for job in jobs:
            clock = moved(clock, real, moment_of(job))
            there = test_clock_of(msgspec.structs.replace(account, clock=clock), Mode.TEST)
            taken = unit[Job].save(msgspec.structs.replace(job, attempts=job.attempts + 1, leased_until=None))
            # While test time is entered, `due` is the job's time on that clock.
            batch.append((msgspec.structs.replace(taken, due=moment_of(job)), there))
        clock = msgspec.structs.replace(clock, jobs_run=clock.jobs_run + len(batch))
        unit[Account].save(msgspec.structs.replace(account, clock=clock))
        return _Next(batch=batch)

    def _is_ours(self, present: Job) -> bool:
        """Return whether this process still owns the stored job of the advance. Renewing a lease keeps the version;
        another claim or advance raises it.
        """
        return is_ours(present, self._job)

    def _left_out(self) -> tuple[str, ...]:
        dead = [endpoint for endpoint, spent in self._vain.items() if spent >= VAIN]
        return tuple(job_id for each in dead for job_id in (deliver_id(each), f"{TIMER}:{each}"))

    async def _do(self, batch: Sequence[tuple[Job, TestClock | None]]) -> None:
        self._done = {job.id: job.version for job, _ in batch}
        if len(batch) > 1:
            async with asyncio.TaskGroup() as together:
                for job, test_clock in batch:
                    together.create_task(self._do_in(test_clock, job))
            return
        [(job, test_clock)] = batch
        clock = self._ports.clock
        began = clock.monotonic()
        await self._do_in(test_clock, job)
        if job.kind == DELIVER and await self._fails(job.argument):
            self._vain[job.argument] = self._vain.get(job.argument, 0.0) + clock.monotonic() - began

    async def _do_in(self, test_clock: TestClock | None, job: Job) -> None:
        with self._ports.clock.entered(test_clock):
            await self._run(self._ports, job)

    async def _fails(self, endpoint: str) -> bool:
        breaker = await self._ports.storage.get(Breaker, endpoint)
        return breaker is not None and breaker.failures > 0

    async def _hand_over(self) -> None:
        """Make the job of the advance due now, for a worker."""
        now = await self._ports.storage.now()

        async def work(unit: Unit) -> None:
            present = await unit[Job].get(self._job.id)
            if present is not None and self._is_ours(present):
                set_due(unit, present, now)

        await retrying(self._ports.storage, work)
