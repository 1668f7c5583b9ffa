"""Times of a job's next run, and of the next poll of a provider that gave no outcome. Every job uses these
functions."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta

import msgspec

from ....ports.bundle import Ports
from ....ports.jobs import Job
from ....ports.storage import Unit
from .units import unit_of_work

ASK_AGAIN = (
    timedelta(seconds=10),
    timedelta(seconds=30),
    timedelta(minutes=2),
    timedelta(minutes=10),
    timedelta(hours=1),
    timedelta(hours=6),
)
"""Backoff schedule for polling a provider about an unknown outcome (ARCHITECTURE.md "Three outcomes")."""

_SHORTEST = timedelta(seconds=1)


def pause_after(asked: int) -> timedelta:
    """Return the pause after `asked` polls. The last step of the schedule repeats forever."""
    return ASK_AGAIN[min(max(asked, 1), len(ASK_AGAIN)) - 1]


def next_ask(check_after: float | None, asked: int, now: datetime) -> datetime:
    """Return the next poll: after the provider's own pause, in seconds, or by the backoff schedule."""
    return now + (pause_after(asked) if check_after is None else hinted(check_after))


def hinted(check_after: float) -> timedelta:
    """Return the pause that a provider requests, in seconds, within our limits."""
    return max(timedelta(seconds=min(check_after, ASK_AGAIN[-1].total_seconds())), _SHORTEST)


def next_late_status_poll(
    pauses: Sequence[timedelta], since: datetime, now: datetime, *, advanced: bool
) -> datetime | None:
    """Return the next late poll after an object's end, in case a notification was lost. `pauses` count from `since`.
    None: no more polls. `advanced` (simulated.py): only the last pause is used."""
    return next((at for pause in (pauses[-1:] if advanced else pauses) if (at := since + pause) > now), None)


class FollowUp(msgspec.Struct, frozen=True):
    """A kind of job that each object has once, for the next work on the object. The job's id consists of the kind and
    the object's id."""

    kind: str

    def id_of(self, object_id: str) -> str:
        """Return the id of the object's job of this kind."""
        return f"{self.kind}:{object_id}"

    def first(self, object_id: str, due: datetime, now: datetime) -> Job:
        """Return the job of an object that the same unit creates. No such job can exist yet, so nothing is read."""
        return Job(id=self.id_of(object_id), kind=self.kind, argument=object_id, due=due, created_at=now)

    async def plan(self, unit: Unit, object_id: str, due: datetime, now: datetime, *, anew: bool = False) -> None:
        """Make the job due at `due`, even if a worker has it. The worker's version is then old, so it neither moves nor
        removes the job. `anew`: it is new work, so attempts restart."""
        job = await unit[Job].get(self.id_of(object_id))
        if job is None:
            unit[Job].add(self.first(object_id, due, now))
        else:
            set_due(unit, job, due, anew=anew)

    async def keep(self, unit: Unit, object_id: str, due: datetime, now: datetime) -> None:
        """Add the job if it does not exist. An existing job stays as it is, so a run may call this for its own job."""
        if await unit[Job].get(self.id_of(object_id)) is None:
            unit[Job].add(self.first(object_id, due, now))

    async def hurry(self, unit: Unit, object_id: str, due: datetime) -> None:
        """Make a waiting job due at `due`. A worker that is running it decides the next run itself."""
        job = await unit[Job].get(self.id_of(object_id))
        if job is not None and job.leased_until is None:
            unit[Job].change(job, due=due)

    async def drop(self, unit: Unit, object_id: str) -> None:
        """Remove the job, because nothing is left to do."""
        job = await unit[Job].get(self.id_of(object_id))
        if job is not None:
            unit[Job].remove(job)


def is_ours(present: Job | None, job: Job) -> bool:
    """Return whether the job is unchanged since it was claimed: no other worker has it, and it stands for no other
    work. Attempts cannot show this, because they restart. A version alone cannot either, because a job may be removed
    and planned again."""
    return present is not None and (present.version, present.created_at) == (job.version, job.created_at)


def set_due(unit: Unit, job: Job, due: datetime | None, *, anew: bool = False) -> None:
    """Make the job, as read in this unit, due at `due`. None: it is done and is removed. `anew`: its attempts restart,
    because it is a recurring job or begins new work."""
    if due is None:
        unit[Job].remove(job)
        return
    attempts = 0 if anew else job.attempts
    unit[Job].save(msgspec.structs.replace(job, due=due, leased_until=None, attempts=attempts))


@unit_of_work()
async def reschedule(
    _: Ports, unit: Unit, job: Job, next_due: Callable[[Unit], Awaitable[datetime | None]], *, anew: bool = False
) -> None:
    """Reschedule the claimed job after a run, at the time that `next_due` computes in the unit. None: it is done and is
    removed. If the job is no longer ours, leave it unchanged."""
    present = await unit[Job].get(job.id)
    if present is not None and is_ours(present, job):
        set_due(unit, present, await next_due(unit), anew=anew)


async def reschedule_at(ports: Ports, job: Job, due: datetime | None, *, anew: bool = False) -> None:
    """Reschedule the claimed job at a known time."""

    async def known(_unit: Unit) -> datetime | None:
        return due

    await reschedule(ports, job, known, anew=anew)
