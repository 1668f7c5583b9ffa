"""Which jobs of a test clock come next while its clock is advanced, and which of them at once
(docs/sandbox.md "The clock")."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

import msgspec

from ....ports.bundle import Ports
from ....ports.jobs import Job
from ....ports.storage import AtMost, Unit
from ...domain.accounts.accounts import Account
from ...domain.settlement.settlement import next_run
from ..settlement.days import OWN_DAILY, anything_waits
from ..settlement.settlement import SETTLE
from ..webhooks.outbox import DELIVER
from ..webhooks.results import TIMER

TOGETHER = timedelta(seconds=1)
"""Jobs so close to one another are done at once. What a job plans for within it is done that much late."""

_MOST = 32
"""Jobs in a batch: more hardly share their commits better."""
_FEW = 6
"""Jobs that are read at least: more than ever are left out."""

_ALONE = frozenset({OWN_DAILY.kind, SETTLE, DELIVER, TIMER})
"""Work on the whole account: it finds all that was due before it done, and nothing is done beside it."""


def moment_of(job: Job) -> datetime:
    """When a job of a test clock is due there; to be asked outside of all test time."""
    return job.due if job.moment is None else job.moment


async def due_in_test_time(
    ports: Ports, unit: Unit, account: Account, until: datetime, *, but: Collection[str], most: int
) -> Sequence[Job]:
    """The next jobs of the account's test clock that are due by then, in the order of their times; `most` of them,
    which is told by the last batch (`worth_reading`).

    Its daily settlement comes only on days on which anything waits for it: else it is put off, in this unit, to the
    first one after the next other job, before which no job makes anything wait. What a request pays in the moment in
    which this unit commits is settled then, too.
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
    """How many jobs to read after a batch of so many: batches beside one another are alike, and few jobs are in
    most."""
    return _MOST if last_batch is None else min(max(2 * last_batch, _FEW), _MOST)


def batch_of(due: Sequence[Job]) -> Sequence[Job]:
    """The first of them, and what can be done at the same time: what is due within a moment, each of another object."""
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
