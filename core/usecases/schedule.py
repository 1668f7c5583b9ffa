"""When a job comes back after a run of it, and when a provider that gave no end is asked again: the one way of each."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta

import msgspec

from ...ports.bundle import Ports
from ...ports.jobs import Job
from ...ports.storage import Unit
from .units import retrying

ASK_AGAIN = (
    timedelta(seconds=10),
    timedelta(seconds=30),
    timedelta(minutes=2),
    timedelta(minutes=10),
    timedelta(hours=1),
    timedelta(hours=6),
)
"""When a provider is asked again about an outcome that nobody knows (ARCHITECTURE.md "Three ends")."""

_SHORTEST = timedelta(seconds=1)


def pause_after(asked: int) -> timedelta:
    """How long after the last of `asked` questions the next one comes; the ladder's last step is for ever."""
    return ASK_AGAIN[min(max(asked, 1), len(ASK_AGAIN)) - 1]


def next_ask(check_after: float | None, asked: int, now: datetime) -> datetime:
    """When to ask again: when the provider says that it is worthwhile (in seconds), else by the ladder."""
    return now + (pause_after(asked) if check_after is None else hinted(check_after))


def hinted(check_after: float) -> timedelta:
    """The pause that a provider asks for, in seconds, within the bounds of ours."""
    return max(timedelta(seconds=min(check_after, ASK_AGAIN[-1].total_seconds())), _SHORTEST)


def next_late_look(pauses: Sequence[timedelta], since: datetime, now: datetime, *, advanced: bool) -> datetime | None:
    """When we look once more, after these pauses since something was over, in case a notice was lost; None: no more.
    `advanced` (simulated.py): after the last of them only."""
    return next((at for pause in (pauses[-1:] if advanced else pauses) if (at := since + pause) > now), None)


class FollowUp(msgspec.Struct, frozen=True):
    """A kind of job of which each object has one: what is to be done about it next. Its id is the kind and the
    object's."""

    kind: str

    def id_of(self, object_id: str) -> str:
        """The one job of this kind that the object has."""
        return f"{self.kind}:{object_id}"

    def first(self, object_id: str, due: datetime, now: datetime) -> Job:
        """The job of an object that the same unit makes: nobody has it yet, so nothing is read."""
        return Job(id=self.id_of(object_id), kind=self.kind, argument=object_id, due=due, created_at=now)

    async def plan(self, unit: Unit, object_id: str, due: datetime, now: datetime, *, anew: bool = False) -> None:
        """Have it done at `due`, whoever has it in hand: what he knows is old, and so he neither moves nor removes it.
        `anew`: it is another piece of work, whose attempts are counted from the start."""
        job = await unit[Job].get(self.id_of(object_id))
        if job is None:
            unit[Job].add(self.first(object_id, due, now))
        else:
            set_due(unit, job, due, anew=anew)

    async def keep(self, unit: Unit, object_id: str, due: datetime, now: datetime) -> None:
        """Have a job there: one that stands is left as it is, so a run may call it for the job that it has in hand."""
        if await unit[Job].get(self.id_of(object_id)) is None:
            unit[Job].add(self.first(object_id, due, now))

    async def hurry(self, unit: Unit, object_id: str, due: datetime) -> None:
        """Have one that waits done at `due`; whoever has it in hand says himself when it comes back."""
        job = await unit[Job].get(self.id_of(object_id))
        if job is not None and job.leased_until is None:
            unit[Job].change(job, due=due)

    async def drop(self, unit: Unit, object_id: str) -> None:
        """There is nothing left to do."""
        job = await unit[Job].get(self.id_of(object_id))
        if job is not None:
            unit[Job].remove(job)


def is_ours(present: Job | None, job: Job) -> bool:
    """Whether the job is still as it was claimed: nobody else has it, and it stands for no other work since. Attempts
    do not tell, since they begin anew; a version alone does not, since a job may be removed and planned again."""
    return present is not None and (present.version, present.created_at) == (job.version, job.created_at)


def set_due(unit: Unit, job: Job, due: datetime | None, *, anew: bool = False) -> None:
    """Have the job, as read in this unit, done again at `due`; None: it is done, and goes. `anew`: its attempts are
    forgotten, because it is a standing job or begins another piece of work."""
    if due is None:
        unit[Job].remove(job)
        return
    attempts = 0 if anew else job.attempts
    unit[Job].save(msgspec.structs.replace(job, due=due, leased_until=None, attempts=attempts))


async def reschedule(
    ports: Ports, job: Job, next_due: Callable[[Unit], Awaitable[datetime | None]], *, anew: bool = False
) -> None:
    """After a run, have the claimed job done again when `next_due` says, as the object stands in that unit; None: it is
    done, and goes. One that is not ours any more is left to whoever has it, or planned it."""

    async def work(unit: Unit) -> None:
        present = await unit[Job].get(job.id)
        if present is not None and is_ours(present, job):
            set_due(unit, present, await next_due(unit), anew=anew)

    await retrying(ports.storage, work)


async def reschedule_at(ports: Ports, job: Job, due: datetime | None, *, anew: bool = False) -> None:
    """The same, where the time is known already."""

    async def known(_unit: Unit) -> datetime | None:
        return due

    await reschedule(ports, job, known, anew=anew)
