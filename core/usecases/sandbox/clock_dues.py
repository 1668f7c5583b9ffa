"""Sets the due times of a test clock's jobs after the clock was moved (docs/sandbox.md "The clock").

A job has two times: `moment`, its due time on the test clock, and `due`, the same on the storage's clock, by which
workers claim. An advance changes the offset between the clocks, so `due` is computed anew as `moment` minus the offset.
That happens once at the end of an advance, because the advance itself uses the moments.
"""

from datetime import datetime, timedelta
from functools import partial

import msgspec

from ....ports.bundle import Ports
from ....ports.jobs import Job
from ....ports.storage import Unit
from ...domain.accounts.accounts import Account
from ..common.schedule import FollowUp, reschedule_at
from ..common.units import retrying

STRAIGHTEN = FollowUp("sandbox.dues")

_AT_ONCE = 200
"""Jobs in one unit."""
_POLLS = (timedelta(seconds=2), timedelta(seconds=8), timedelta(seconds=50))
"""Pauses before further runs: a unit that read the account just before an advance ended may commit jobs with the old
offset just after it.
"""


async def plan_straightening(unit: Unit, account_id: str, now: datetime) -> None:
    """Plan the job that recomputes due times, due at `now`. Call it in the unit that ends an advance."""
    await STRAIGHTEN.plan(unit, account_id, now, now, anew=True)


async def straighten_again(ports: Ports, job: Job) -> None:
    """Recompute due times for an advance whose process died before doing so, and again after each of `_POLLS` (a
    job).
    """
    await straighten(ports, job.argument)
    passed = job.attempts - 1
    await reschedule_at(ports, job, ports.clock.now() + _POLLS[passed] if passed < len(_POLLS) else None)


async def straighten(ports: Ports, account_id: str) -> None:
    """Recompute `due` of all jobs of an account's test clock, `_AT_ONCE` in each unit. Leased jobs are left out; their
    runs set it. Do nothing while the clock is being advanced.
    """
    seen, found = 0, _AT_ONCE
    while found == _AT_ONCE:
        found = await retrying(ports.storage, partial(_straighten, ports, account_id, seen))
        seen += found


async def _straighten(ports: Ports, account_id: str, seen: int, unit: Unit) -> int:
    """Recompute the jobs after the first `seen`, and return how many were read."""
    account = await unit[Account].get(account_id)
    clock = None if account is None else account.clock
    if clock is None or clock.is_advancing:
        return 0
    now = await ports.storage.now()
    jobs = await unit[Job].find(world=account_id, order="moment", limit=_AT_ONCE, offset=seen)
    for job in jobs:
        is_held = job.leased_until is not None and job.leased_until > now
        if job.moment is not None and job.due != job.moment - clock.ahead and not is_held:
            unit[Job].save(msgspec.structs.replace(job, due=job.moment - clock.ahead))
    return len(jobs)
