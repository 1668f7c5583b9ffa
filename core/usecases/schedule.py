"""When a job comes back after a run of it, and when a provider that gave no end is asked again: the one way of each."""

from collections.abc import Sequence
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
    if check_after is None:
        return now + pause_after(asked)
    hint = timedelta(seconds=min(check_after, ASK_AGAIN[-1].total_seconds()))
    return now + max(hint, _SHORTEST)


def next_late_look(pauses: Sequence[timedelta], since: datetime, now: datetime, *, advanced: bool) -> datetime | None:
    """When we look once more, after these pauses since something was over, in case a notice was lost; None: no more.
    `advanced` (simulated.py): after the last of them only."""
    return next((at for pause in (pauses[-1:] if advanced else pauses) if (at := since + pause) > now), None)


def set_due(unit: Unit, job: Job, due: datetime | None, *, anew: bool = False) -> None:
    """Have the job, as read in this unit, done again at `due`; None: it is done, and goes. `anew`: its attempts are
    forgotten, because it is a standing job or begins another piece of work."""
    if due is None:
        unit[Job].remove(job)
        return
    attempts = 0 if anew else job.attempts
    unit[Job].save(msgspec.structs.replace(job, due=due, leased_until=None, attempts=attempts))


async def come_back(ports: Ports, job: Job, due: datetime | None, *, anew: bool = False) -> None:
    """The same in a unit of its own, where the job still stands."""

    async def work(unit: Unit) -> None:
        present = await unit[Job].get(job.id)
        if present is not None:
            set_due(unit, present, due, anew=anew)

    await retrying(ports.storage, work)
