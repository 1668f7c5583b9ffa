"""When a job comes back after a run of it: the one way of saying so."""

from datetime import datetime

import msgspec

from ...ports.bundle import Ports
from ...ports.jobs import Job
from ...ports.storage import Unit
from .units import retrying


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
