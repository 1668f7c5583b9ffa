"""Holding a claimed job for as long as its work takes."""

from datetime import timedelta

import msgspec

from ...ports.bundle import Ports
from ...ports.faults import Stale
from ...ports.jobs import Job


class Tenure:
    """A claimed job in our hands: its lease is made longer in time, and the loss of it is noticed."""

    def __init__(self, ports: Ports, job: Job) -> None:
        self._ports = ports
        self.job = job
        """As it was when it was read last: whoever asks for it after that is not forgotten."""
        self.lost = False
        """Another worker has it: our lease ended."""
        self.ahead = timedelta(0)
        """How far the storage's clock, by which leases and due times are judged, is ahead of ours."""
        self._lease = timedelta(0)
        self._renewed_at = ports.clock.monotonic()

    async def begin(self) -> None:
        """Take the storage's time, and from it how long a lease is."""
        now = await self._ports.storage.now()
        self.ahead = now - self._ports.clock.now()
        self._lease = (self.job.leased_until or now) - now

    def is_still_ours(self, present: Job | None) -> bool:
        """Take the job as it was just read. False when it is another worker's, or gone."""
        if present is None or present.version != self.job.version:
            self.lost = True
        else:
            self.job = present
        return not self.lost

    async def read(self) -> bool:
        """Read the job anew. False when it is not ours any more."""
        async with self._ports.storage.unit() as unit:
            return self.is_still_ours(await unit[Job].get(self.job.id))

    async def was_asked(self) -> bool:
        """Whether the job changed since it was read: somebody asked for it, or took it."""
        async with self._ports.storage.unit() as unit:
            return await unit[Job].get(self.job.id) != self.job

    async def keep(self) -> None:
        """Make the lease longer when a third of it is over; to be called more often than that."""
        now = self._ports.clock.monotonic()
        if self._lease and now - self._renewed_at > self._lease.total_seconds() / 3:
            self._renewed_at = now
            until = await self._ports.storage.now() + self._lease
            await self._save(msgspec.structs.replace(self.job, leased_until=until))

    async def hand_over(self) -> None:
        """Leave the job to the next worker, at once."""
        await self._save(msgspec.structs.replace(self.job, leased_until=None))

    async def _save(self, job: Job) -> None:
        async with self._ports.storage.unit() as unit:
            saved = unit[Job].save(job)
            try:
                await unit.commit()
            except Stale:
                self.lost = True
            else:
                self.job = saved
