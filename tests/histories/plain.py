"""An independent storage, as a package from elsewhere would bring one: written from the port alone (ports/storage.py),
over plain records, without the tables, codecs and statements that our storages share. A mistake that all of ours share
is not in it. It is slow, and works in one process only.

The entry point `plain` of `cambist.storages` names `open_plain` (places.py).
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

from cambist.frontends.conformance.storage.kit import KIT_CATALOGUE
from cambist.ports.clock import Clock
from cambist.ports.faults import Unavailable
from cambist.ports.jobs import Job
from cambist.ports.storage import Storage
from cambist.ports.tools import StorageTools, WakeUp
from tests.histories.plain_repository import Change, PlainUnit, State, replaced


async def open_plain(tools: StorageTools) -> Storage:
    """A storage for `database_url = "plain://anything"`."""
    return PlainStorage(tools.clock, tools.wake_up)


class PlainStorage:
    """Fills cambist.ports.Storage."""

    def __init__(self, clock: Clock, wake_up: WakeUp) -> None:
        self._clock = clock
        self._wake_up = wake_up
        self._state: State = {table.kind: {} for table in KIT_CATALOGUE}
        self._closed = False

    @property
    def by_own_clock(self) -> bool:
        return True

    def seen(self) -> State:
        """Return the committed state. A commit replaces this object, so a reader keeps an unchanging one."""
        if self._closed:
            raise Unavailable("closed")
        return self._state

    async def apply(self, changes: Sequence[Change], jobs: Sequence[Job]) -> None:
        """Make the changes in their order, or none."""
        state = {kind: dict(records) for kind, records in self.seen().items()}
        for change in changes:
            change(state)
        self._state = state
        if jobs:
            await self._wake_up(jobs)

    @asynccontextmanager
    async def unit(self) -> AsyncIterator[PlainUnit]:
        unit = PlainUnit(self.seen, self.apply)
        yield unit
        unit.is_over = True

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[PlainUnit]:
        taken: list[State] = []

        def seen() -> State:
            if not taken:
                taken.append(self.seen())
            return taken[0]

        unit = PlainUnit(seen, self.apply)
        unit.is_over = True
        yield unit

    async def get(self, kind: type[Any], record_id: str, /) -> Any:
        return await PlainUnit(self.seen, self.apply)[kind].get(record_id)

    async def recent(self, kind: type[Any], record_id: str, /, *, within: float = 0.0) -> Any:
        return await self.get(kind, record_id)

    async def claim(
        self, limit: int, lease: float, *, kind: str | None = None, but_kind: str | None = None
    ) -> list[Job]:
        if lease <= 0 or (kind is not None and but_kind is not None):
            raise ValueError("a lease is longer than nothing; either one kind or all but one")
        now = self._clock.now()
        due = [job for job in self._free() if job.due <= now and _is_of(job, kind, but_kind)]
        taken = []
        for job in sorted(due, key=lambda job: (job.due, job.id))[:limit]:
            held = {"attempts": job.attempts + 1, "version": job.version + 1}
            taken.append(replaced(job, leased_until=now + timedelta(seconds=lease), **held))
        self._put(taken)
        return taken

    async def renew(self, jobs: Sequence[Job], lease: float) -> None:
        if lease <= 0:
            raise ValueError("a lease is longer than nothing")
        until = self._clock.now() + timedelta(seconds=lease)
        ours = [self.seen()[Job].get(job.id) for job in jobs if self._version(job.id) == job.version]
        self._put([replaced(job, leased_until=until) for job in ours if job and job.leased_until is not None])

    async def next_due(self) -> datetime | None:
        return min((job.due for job in self._free()), default=None)

    async def now(self) -> datetime:
        return self._clock.now()

    async def scan(
        self,
        kind: type[Any],
        *,
        batch: int = 1000,
        readable: bool = False,
        **criteria: Any,
    ) -> AsyncIterator[Sequence[Any]]:
        if batch < 1:
            raise ValueError("a batch holds one at least")
        after = ""
        while found := await PlainUnit(self.seen, self.apply)[kind].after(after, batch, criteria):
            yield found
            after = found[-1].id

    async def check(self) -> None:
        self.seen()

    async def close(self) -> None:
        self._closed = True

    def _free(self) -> list[Job]:
        now = self._clock.now()
        return [job for job in self.seen()[Job].values() if job.leased_until is None or job.leased_until <= now]

    def _version(self, job_id: str) -> int | None:
        known = self.seen()[Job].get(job_id)
        return None if known is None else known.version

    def _put(self, jobs: Sequence[Job]) -> None:
        self._state = {**self._state, Job: {**self._state[Job], **{job.id: job for job in jobs}}}


def _is_of(job: Job, kind: str | None, but_kind: str | None) -> bool:
    of, colon, _ = job.id.partition(":")
    return (kind is None or (colon != "" and of == kind)) and (but_kind is None or colon == "" or of != but_kind)
