"""Deletion of requests after thirty days (docs/concepts.md "Your requests")."""

from datetime import datetime, timedelta

import msgspec

from ....ports.bundle import Ports
from ....ports.jobs import Job
from ....ports.storage import Between, Unit
from ...domain.accounts.accounts import Account, Mode
from ...domain.accounts.request_log import BATCHES, KEPT, RequestCount, hour_of, hour_start, ids_from, owner_prefix
from ..common.units import retrying
from .request_log import Owner

PRUNE = "requests.prune"
"""Daily job that deletes old requests of all accounts."""

_BATCH = 500
"""Rows per unit of work."""
_PORTION = 20_000
"""Number of rows to delete before other jobs get their turn, long before the job's lease ends."""
_AGAIN = timedelta(seconds=1)
_EVERY = timedelta(days=1)


def first_pruning(ports: Ports) -> Job:
    """Return the recurring job. A worker writes it at its start. It is first due after a day: no request is old before,
    and workers of an older version, which are being replaced then, do not know the job."""
    now = ports.clock.now()
    return Job(id=PRUNE, kind=PRUNE, argument="", due=now + _EVERY, created_at=now)


async def prune(ports: Ports, job: Job) -> None:
    """Delete the requests and counts of hours that ended more than KEPT ago. Repeat at once until all are deleted, then
    after a day."""
    now = ports.clock.now()
    before = hour_start(hour_of(now - KEPT))
    left = _PORTION
    async for accounts in ports.storage.scan(Account, readable=True):
        for account in accounts:
            for mode in Mode:
                left = await _prune(ports, (account.id, mode), before, left)
    due = now + (_EVERY if left > 0 else _AGAIN)
    async with ports.storage.unit() as unit:
        unit[Job].save(msgspec.structs.replace(job, due=due, leased_until=None, attempts=0))
        await unit.commit()


async def _prune(ports: Ports, owner: Owner, before: datetime, left: int) -> int:
    """Delete old requests of one owner. Return how many rows may still be deleted; none if some may be left."""
    old = Between(owner_prefix(*owner), ids_from(*owner, before))

    async def work(unit: Unit) -> int:
        deleted = 0
        for kind in BATCHES:
            batches = await unit[kind].find(id=old, limit=_BATCH - deleted, readable=True)
            for batch in batches:
                unit[kind].remove(batch)
            deleted += len(batches)
            if deleted == _BATCH:
                return deleted
        hours = Between(owner_prefix(*owner), f"{owner_prefix(*owner)}{hour_of(before)}")
        for count in await unit[RequestCount].find(id=hours, limit=_BATCH, readable=True):
            unit[RequestCount].remove(count)
        return deleted

    while left > 0:
        deleted = await retrying(ports.storage, work)
        left -= deleted
        if deleted < _BATCH:
            break
    return left
