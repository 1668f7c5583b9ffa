"""Holds a claimed job for as long as its work takes. The worker renews the lease (frontends/worker); here the work
notices when the lease was lost all the same."""

from datetime import timedelta

import msgspec

from ....ports.bundle import Ports
from ....ports.faults import Stale
from ....ports.jobs import Job
from ..schedule import is_ours


class Lease:
    """A claimed job in our hands. Keeping a lease leaves a job's version as it is; another worker's claim does not."""

    def __init__(self, ports: Ports, job: Job) -> None:
        self._ports = ports
        self.job = job
        """The job as it was read last, so that a request made after that is noticed."""
        self.lost = False
        """Another worker has it: our lease ended."""
        self.ahead = timedelta(0)
        """How far the storage's clock, by which leases and due times are judged, is ahead of ours."""

    async def begin(self) -> None:
        """Take the storage's time."""
        self.ahead = await self._ports.storage.now() - self._ports.clock.now()

    def is_ours(self, present: Job | None) -> bool:
        """Take the job as it was just read. False when it is another worker's, or gone."""
        if present is None or not is_ours(present, self.job):
            self.lost = True
        else:
            self.job = present
        return not self.lost

    async def read(self) -> bool:
        """Read the job anew. False when it is not ours any more."""
        return self.is_ours(await self._ports.storage.get(Job, self.job.id))

    async def was_asked(self) -> bool:
        """Whether somebody asked for the job since it was read, or took it."""
        return not is_unchanged(await self._ports.storage.get(Job, self.job.id), self.job)

    async def release(self, *, pause: float = 0.0) -> None:
        """Leave the job to the next worker: at once, or after so many seconds."""
        due = self.job.due
        if pause:
            due = await self._ports.storage.now() + timedelta(seconds=pause)
        async with self._ports.storage.unit() as unit:
            # Nothing failed: the pauses after failures begin anew.
            unit[Job].save(msgspec.structs.replace(self.job, leased_until=None, due=due, attempts=0))
            try:
                await unit.commit()
            except Stale:
                self.lost = True


def is_unchanged(present: Job | None, job: Job) -> bool:
    """Whether nobody took the job or asked for it since it was read. That its lease was kept is no change."""
    return present is not None and is_ours(present, job) and present.asked == job.asked
