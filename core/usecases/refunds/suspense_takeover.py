"""Jobs that send suspended money back, written by programs which know the longer operation ids alone: those must not
take up what is sent by the present ids (docs/adapters.md "Operation ids")."""

from ....ports.bundle import Ports
from ....ports.jobs import Job
from ....ports.storage import Unit
from ..schedule import FollowUp, is_ours
from ..units import retrying
from .suspense_progress import RETURN

FORMER_RETURN = FollowUp("suspense.return")
"""Their kind."""


async def take_over(ports: Ports, job: Job) -> None:
    """The job of an earlier version: it becomes this one's."""

    async def work(unit: Unit) -> None:
        present = await unit[Job].get(job.id)
        if is_ours(present, job) and present is not None:
            unit[Job].remove(present)
            now = ports.clock.now()
            await RETURN.keep(unit, job.argument, now, now)

    await retrying(ports.storage, work, again_on=("jobs_id",))
