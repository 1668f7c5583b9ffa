"""Which use case does which durable job, and what happens to a job that fails."""

import logging
from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum

from ...ports.bundle import Ports
from ...ports.faults import Conflict, Stale, Unreadable
from ...ports.jobs import Job
from .job_kinds import JOB_KINDS, Handler
from .sandbox.clock import ADVANCE, carry_on
from .sandbox.clock_dues import STRAIGHTEN, straighten_again
from .sandbox.expiry import expire
from .schedule import is_ours, set_due
from .settlement.settlement import SETTLE
from .standing import EXPIRE, TELL_ALARMS
from .test_clock import leave_to_the_advance, test_clock_of_job
from .webhooks.outbox import DELIVER
from .webhooks.results import rest


async def _tell_recipient(ports: Ports, job: Job) -> None:
    from .alarms.telling import tell_recipient  # here: what it looks at is much, and most houses tell nobody

    await tell_recipient(ports, job)


HANDLERS: Mapping[str, Handler] = {
    **{row.kind: row.handler for row in JOB_KINDS},
    ADVANCE: lambda ports, job: carry_on(ports, job, do),
    STRAIGHTEN.kind: straighten_again,
    EXPIRE: expire,
    TELL_ALARMS.kind: _tell_recipient,
}

LEASE = 60.0
"""Seconds a claimed job is left to whoever claimed it and does not renew it; far above what any handler takes."""

WORKER_LEASE = 8.0
"""Seconds it is left to a worker, who renews it while it works on it: what a worker that died had in hand is taken up
again after so long."""

RENEW = 2.0
"""Seconds between two renewals: three may fail before a job is lost."""

_BACKOFF = tuple(timedelta(seconds=seconds) for seconds in (1, 5, 30, 120, 600))

_RESTS = 3
"""From so many failures on a receiver's job waits as its timer, so that the next event has it tried at once."""

log = logging.getLogger("cambist.jobs")


class Ended(StrEnum):
    """How the run of a job ended, for whoever counts them."""

    DONE = "done"
    OVERTAKEN = "overtaken"
    FAILED = "failed"


async def run(ports: Ports, job: Job, handlers: Mapping[str, Handler] = HANDLERS) -> Ended:
    """Do a claimed job, in its test time. A fault is logged and the job comes back after a pause: no job is ever lost
    by failing."""
    try:
        test_clock = await test_clock_of_job(ports, job)
        if test_clock is not None and test_clock.is_advancing:
            await leave_to_the_advance(ports, job)
            return Ended.OVERTAKEN
        with ports.clock.entered(test_clock):
            # At the machine's time a job is as it was claimed.
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
    """A claimed job as it is by the test clock in force; None when it is in other hands by now."""
    here = await ports.storage.get(Job, job.id)
    return here if is_ours(here, job) else None


async def run_here(ports: Ports, job: Job, handlers: Mapping[str, Handler] = HANDLERS) -> Ended:
    """Do a job as it is by the test clock in force."""
    try:
        await handlers[job.kind](ports, job)
    except (Stale, Conflict):
        # The lease ended and another worker took it, or the object moved: whoever was first has done the work, and
        # where nobody has, the lease brings the job back.
        log.info("job %s was overtaken", job.id)
        return Ended.OVERTAKEN
    except Exception:
        log.exception("job %s failed", job.id)
        await _put_back(ports, job)
        return Ended.FAILED
    return Ended.DONE


async def do(ports: Ports, job: Job) -> None:
    """The same, for whoever advances a clock."""
    await run_here(ports, job)


def is_held(present: Job | None, job: Job) -> bool:
    """Whether a claimed job is still in the hands of who claimed it. A settlement lengthens its lease in the units that
    it writes (settlement/run.py: hold_on), and its attempts never begin anew: they tell."""
    if job.kind == SETTLE:
        return present is not None and present.attempts == job.attempts
    return is_ours(present, job)


async def _put_back(ports: Ports, job: Job) -> None:
    due = ports.clock.now() + _BACKOFF[min(job.attempts, len(_BACKOFF)) - 1]
    try:
        # A job as it is stored is of a test clock that could not be entered.
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
    """Do every job that is due now, one after the other, also those that arise on the way. Returns how many.

    For embedding and tests: a service with workers has frontends/worker instead.
    """
    done = 0
    while claimed := await ports.storage.claim(limit, LEASE):
        for job in claimed:
            await run(ports, job)
        done += len(claimed)
    return done
