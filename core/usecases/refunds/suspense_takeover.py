"""Jobs of earlier versions that return suspended money. These versions know only the longer operation ids, and must not
process returns under the current ids (docs/adapters.md "Operation ids").
"""

from ....ports.bundle import Ports
from ....ports.jobs import Job
from ....ports.storage import Unit
from ..schedule import FollowUp, is_ours
from ..units import retrying
from .suspense_progress import RETURN

FORMER_RETURN = FollowUp("suspense.return")
"""The job kind of earlier versions."""


async def take_over(ports: Ports, job: Job) -> None:
    """Replace the job of an earlier version by one of this version."""

    async def work(unit: Unit) -> None:
        present = await unit[Job].get(job.id)
        if is_ours(present, job) and present is not None:
            unit[Job].remove(present)
            now = ports.clock.now()
            await RETURN.keep(unit, job.argument, now, now)

    await retrying(ports.storage, work, again_on=("jobs_id",))
