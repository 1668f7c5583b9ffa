"""Chooses the jobs of a test clock that an advance runs next, and groups them into batches (docs/sandbox.md "The
clock").
"""

from collections.abc import Collection, Sequence
from datetime import datetime

import msgspec

from ....ports.bundle import Ports
from ....ports.jobs import Job
from ....ports.storage import AtMost, Unit
from ...domain.accounts.accounts import Account
from ...domain.sandbox_clock import TOGETHER
from ...domain.settlement.settlement import next_run
from ..settlement.days import OWN_DAILY, anything_waits
from ..settlement.settlement import SETTLE
from ..webhooks.outbox import DELIVER
from ..webhooks.results import TIMER

_MOST = 32
"""Most jobs in a batch; larger batches hardly share commits any better."""
_FEW = 6
"""Fewest jobs read; more than `but` of `due_in_test_time` ever excludes."""

_ALONE = frozenset({OWN_DAILY.kind, SETTLE, DELIVER, TIMER})
"""Kinds that work on the whole account and therefore run alone, after all earlier jobs and with no job beside them."""


def moment_of(job: Job) -> datetime:
    """Return a job's due time on its test clock. Call it without a test time entered, because jobs are then as
    stored.
    """
    return job.due if job.moment is None else job.moment


async def due_in_test_time(
    ports: Ports, unit: Unit, account: Account, until: datetime, *, but: Collection[str], most: int
) -> Sequence[Job]:
    """Return the next jobs of the account's test clock that are due by `until`, in order, without the ids in `but`; at
    most `most` of them (`worth_reading`).

    A daily settlement with nothing to settle is postponed in this unit, to its first run after the next other job:
    until that job runs, nothing can begin to wait. A payment that a request makes while this unit commits is settled by
    that run, too.
    """
    found = await unit[Job].find(world=account.id, moment=AtMost(until), order="moment", limit=most, quick=True)
    due = [job for job in found if job.id not in but]
    if not due or due[0].kind != OWN_DAILY.kind or due[0].leased_until is not None:
        return due
    if await anything_waits(ports, unit, account):
        return due
    daily, *others = due
    after = moment_of(others[0]) if others else until
    unit[Job].save(msgspec.structs.replace(daily, moment=next_run(max(after, moment_of(daily)))))
    return others


def worth_reading(last_batch: int | None) -> int:
    """Return how many jobs to read after a batch of `last_batch`: twice as many, because consecutive batches have about
    the same size, and most are small.
    """
    return _MOST if last_batch is None else min(max(2 * last_batch, _FEW), _MOST)


def batch_of(due: Sequence[Job]) -> Sequence[Job]:
    """Return the first job and the following jobs that can run with it: due within `TOGETHER`, each of a different
    object, none leased or of a kind in `_ALONE`.
    """
    first, *others = due
    batch, objects = [first], {first.argument}
    if first.kind in _ALONE:
        return batch
    for job in others:
        is_near = moment_of(job) - moment_of(first) <= TOGETHER
        if not is_near or job.kind in _ALONE or job.argument in objects or job.leased_until is not None:
            break
        batch.append(job)
        objects.add(job.argument)
    return batch
