"""The jobs of a test clock, due by the storage's clock when they are due by its own, once that was moved
(docs/sandbox.md "The clock").

Nobody rewrites them while a clock is being advanced: whoever advances it goes by their moments.
"""

from datetime import datetime, timedelta
from functools import partial

import msgspec

from ....ports.bundle import Ports
from ....ports.jobs import Job
from ....ports.storage import Unit
from ...domain.accounts.accounts import Account
from ..schedule import FollowUp, come_back
from ..units import retrying

STRAIGHTEN = FollowUp("sandbox.dues")

_AT_ONCE = 200
# Units that read the account just before the end of an advance may still write jobs as it was then.
_LOOKS = (timedelta(seconds=2), timedelta(seconds=8), timedelta(seconds=50))


async def plan_straightening(unit: Unit, account_id: str, now: datetime) -> None:
    """Have it done from `now` on; to be called in the unit in which an advance comes to its end."""
    await STRAIGHTEN.plan(unit, account_id, now, now, anew=True)


async def straighten_again(ports: Ports, job: Job) -> None:
    """The job that straightens after an advance, for whoever did not come so far; and a few times more, for units that
    were begun before the end and committed after it."""
    await straighten(ports, job.argument)
    passed = job.attempts - 1
    await come_back(ports, job, ports.clock.now() + _LOOKS[passed] if passed < len(_LOOKS) else None)


async def straighten(ports: Ports, account_id: str) -> None:
    """Have the jobs of a test clock due by the storage's clock when they are due by its own."""
    seen, found = 0, _AT_ONCE
    while found == _AT_ONCE:
        found = await retrying(ports.storage, partial(_straighten, ports, account_id, seen))
        seen += found


async def _straighten(ports: Ports, account_id: str, seen: int, unit: Unit) -> int:
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
