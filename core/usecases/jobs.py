"""Handlers of durable jobs, and the handling of failed jobs."""

import logging
from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum

from ...ports.bundle import Ports
from ...ports.faults import Conflict, Stale, Unreadable
from ...ports.jobs import Job
from ..domain.errors import Refusal
from .common.account_time import leave_to_the_advance, test_clock_of_job
from .common.schedule import is_ours, set_due
from .job_kinds import JOB_KINDS, Handler
from .recurring_jobs import EXPIRE, TELL_ALARMS
from .sandbox.clock import ADVANCE, carry_on
from .sandbox.clock_dues import STRAIGHTEN, straighten_again
from .sandbox.expiry import expire
from .settlement.settlement import SETTLE
from .webhooks.outbox import DELIVER
from .webhooks.results import rest


async def _tell_recipient(ports: Ports, job: Job) -> None:
    from .alarms.telling import tell_recipient  # here: a large import, and most apps send no alarms

    await tell_recipient(ports, job)


HANDLERS: Mapping[str, Handler] = {
    **{row.kind: row.handler for row in JOB_KINDS},
    ADVANCE: lambda ports, job: carry_on(ports, job, do),
    STRAIGHTEN.kind: straighten_again,
    EXPIRE: expire,
    TELL_ALARMS.kind: _tell_recipient,
}

LEASE = 60.0
"""Lease of a claimed job without renewal, in seconds. It is far longer than any handler takes."""

WORKER_LEASE = 8.0
"""Lease of a job claimed by a worker, in seconds. The worker renews it; when a worker dies, its jobs are reclaimed
after the lease expires."""

RENEW = 2.0
"""Seconds between two renewals. Three may fail before the job is lost."""

_BACKOFF = tuple(timedelta(seconds=seconds) for seconds in (1, 5, 30, 120, 600))

_RESTS = 3
"""Number of failures from which a receiver's job is replaced by its timer, so that the next event makes it run at
once."""

log = logging.getLogger("cambist.jobs")


class Ended(StrEnum):
    """Result of a job's run, for metrics."""

    DONE = "done"
    OVERTAKEN = "overtaken"
    FAILED = "failed"


async def run(ports: Ports, job: Job, handlers: Mapping[str, Handler] = HANDLERS) -> Ended:
    """Run a claimed job in its test time. A fault is logged and the job is retried after a pause, so a failure never
    loses a job."""
    try:
        test_clock = await test_clock_of_job(ports, job)
        if test_clock is not None and test_clock.is_advancing:
            await leave_to_the_advance(ports, job)
            return Ended.OVERTAKEN
        with ports.clock.entered(test_clock):
            # In real time the job is as it was claimed.
            here = job if test_clock is None or not test_clock.offset else await _as_it_is(ports, job)
            return Ended.OVERTAKEN if here is None else await run_here(ports, here, handlers)
    except Stale:
        return Ended.OVERTAKEN
    except Unreadable as fault:
        log.warning("job %s was not begun: %s", job.id, fault)
        await _put_back(ports, job)
        return Ended.FAILED
    except Exception:
        log.exception("job %s was not begun; its lease will bring it back", job.id)
        return Ended.FAILED


async def _as_it_is(ports: Ports, job: Job) -> Job | None:
    """Return a claimed job by the current test clock. None when another worker has it by now."""
    here = await ports.storage.get(Job, job.id)
    return here if is_ours(here, job) else None


async def run_here(ports: Ports, job: Job, handlers: Mapping[str, Handler] = HANDLERS) -> Ended:
    """Run a job that is given by the current test clock."""
    try:
        await handlers[job.kind](ports, job)
    except (Stale, Conflict):
        # The lease ended and another worker claimed the job, or the object changed. Either the other one did the work,
        # or the lease brings the job back.
        log.info("job %s was overtaken", job.id)
        return Ended.OVERTAKEN
    except Exception as fault:
        if isinstance(fault, Refusal) and fault.code == "ACCOUNT_MOVING":
            log.info("job %s waits: its account is being moved to another cell", job.id)
        else:
            log.exception("job %s failed", job.id)
        await _put_back(ports, job)
        return Ended.FAILED
    return Ended.DONE


async def do(ports: Ports, job: Job) -> None:
    """Run a job during an advance of a test clock."""
    await run_here(ports, job)


def is_held(present: Job | None, job: Job) -> bool:
    """Return whether the claimed job is still this worker's. A settlement extends its lease in the units that it writes
    (settlement/run.py: hold_on), so its version changes; its attempts never restart and identify the claim."""
    if job.kind == SETTLE:
        return present is not None and present.attempts == job.attempts
    return is_ours(present, job)


async def _put_back(ports: Ports, job: Job) -> None:
    due = ports.clock.now() + _BACKOFF[min(job.attempts, len(_BACKOFF)) - 1]
    try:
        # The stored job shows that its test clock could not be entered.
        if (
            job.kind == DELIVER
            and job.attempts >= _RESTS
            and job.world == (ports.clock.test_clock and ports.clock.test_clock.id)
        ):
            await rest(ports, job, due)
            return
        async with ports.storage.unit() as unit:
            present = await unit[Job].get(job.id)
            if present is not None and is_held(present, job):
                set_due(unit, present, due)
                await unit.commit()
    except Exception:
        log.exception("job %s could not be put back; its lease will bring it", job.id)


async def run_due(ports: Ports, *, limit: int = 100) -> int:
    """Run every due job in sequence, including new ones, and return their number.

    For embedding and tests. A service with workers uses frontends/worker instead.
    """
    done = 0
    while claimed := await ports.storage.claim(limit, LEASE):
        for job in claimed:
            await run(ports, job)
        done += len(claimed)
    return done
