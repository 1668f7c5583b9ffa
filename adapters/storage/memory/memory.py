"""Storage in memory: for embedding without a database, for demos and for simulations.

It holds the same rows as the databases and compares the same plain values, so that code that works here works
there. It runs on one event loop, and loses everything when the process ends.
"""

import asyncio
import heapq
from collections.abc import AsyncIterator, Coroutine, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime
from typing import Any

from ....ports.clock import Clock
from ....ports.faults import Unavailable
from ....ports.jobs import Job
from ....ports.storage import R, Snapshot, Unit
from ..table.catalogue import CATALOGUE, Table
from ..table.codec import Row, microseconds, moment
from ..table.criteria import conditions
from ..table.table_map import TableMap, TableMaps, keep, table_map_of
from ..table.unit import (
    WakeUp,
    WorkUnit,
    lease_microseconds,
    lone_read,
    no_wake_up,
    refuse_both,
    snapshot_over,
    wake_up_safely,
)
from ..table.writes import Pending
from .rows import Reader, Rows, TableRows, matching

_EVER = 2**63 - 1
"""Latest possible due time of a job, in microseconds."""


class MemoryStorage:
    """Storage (ports/storage.py) in memory.

    `clock` decides leases and due times. Each claim scans all jobs, which is fast enough for some thousands of
    them.
    """

    def __init__(self, clock: Clock, wake_up: WakeUp = no_wake_up, *, catalogue: Iterable[Table] = CATALOGUE) -> None:
        self._clock = clock
        self._wake_up = wake_up
        self._table_maps: TableMaps = keep(catalogue)
        self._tables = {mapped.name: TableRows(mapped) for mapped in self._table_maps.values()}
        self._reader = Reader(self._rows_of)
        self._jobs: TableMap[Job] = self._table_maps[Job]
        self._closed = False

    def unit(self) -> AbstractAsyncContextManager[Unit]:
        """Return a new unit of work."""
        return WorkUnit(self._table_maps, self._reader, Pending(), self._apply)

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Snapshot]:
        """Return reads as of the first one.

        The tables are shared from then on, and a writer copies a table before changing it.
        """
        seen: dict[str, Rows] = {}

        def rows_of(name: str) -> Rows:
            self._refuse_when_closed()
            if not seen:
                for table in self._tables.values():
                    table.shared = True
                    seen[table.mapped.name] = table.rows
            return seen[name]

        yield snapshot_over(self._table_maps, Reader(rows_of))

    def get(self, kind: type[R], record_id: str, /) -> Coroutine[Any, Any, R | None]:
        """Return the current record."""
        return lone_read(self._table_maps, self._reader, kind, record_id)

    async def recent(self, kind: type[R], record_id: str, /, *, within: float = 0.0) -> R | None:  # noqa: ARG002
        """Return the current record."""
        return await self._reader.get(table_map_of(self._table_maps, kind), record_id)

    @property
    def by_own_clock(self) -> bool:
        """Return True, as the port Clocked defines it."""
        return True

    async def claim(
        self, limit: int, lease: float, *, kind: str | None = None, but_kind: str | None = None
    ) -> list[Job]:
        """Claim due jobs, the oldest due first."""
        refuse_both(kind, but_kind)
        table, index = self._tables[self._jobs.name], self._jobs.codec.index
        self._refuse_when_closed()
        now, span = microseconds(self._clock.now()), lease_microseconds(lease)
        claimed: list[Job] = []
        for _, job_id in heapq.nsmallest(limit, self._free(now, now, kind, but_kind)):
            row = list(table.rows[job_id])
            row[index["attempts"]] += 1
            row[index["version"]] += 1
            row[index["leased_until"]] = now + span
            table.put(job_id, row)
            claimed.append(self._jobs.codec.decode(row))
        return claimed

    async def renew(self, jobs: Sequence[Job], lease: float) -> None:
        """Extend leases."""
        table, index = self._tables[self._jobs.name], self._jobs.codec.index
        self._refuse_when_closed()
        until = microseconds(self._clock.now()) + lease_microseconds(lease)
        for job in jobs:
            row = table.rows.get(job.id)
            if row is not None and row[index["version"]] == job.version and row[index["leased_until"]] is not None:
                mapped = list(row)
                mapped[index["leased_until"]] = until
                table.put(job.id, mapped)

    async def next_due(self) -> datetime | None:
        """Return when the earliest job without a live lease is due."""
        found = min(self._free(microseconds(self._clock.now()), _EVER), default=None)
        return None if found is None else moment(found[0])

    def _free(
        self, now: int, until: int, kind: str | None = None, but_kind: str | None = None
    ) -> list[tuple[int, str]]:
        """Return due time and id of the jobs that are due by `until` and have no live lease.

        An id begins with the kind. Each claim of each worker calls this, and most jobs are not due, so the due time
        is tested first.
        """
        due, lease = (self._jobs.codec.index[name] for name in ("due", "leased_until"))
        wanted, other = f"{kind}:", f"{but_kind}:"
        return [
            (row[due], job_id)
            for job_id, row in self._rows_of(self._jobs.name).items()
            if row[due] <= until
            and (row[lease] is None or row[lease] <= now)
            and (kind is None or job_id.startswith(wanted))
            and (but_kind is None or not job_id.startswith(other))
        ]

    async def now(self) -> datetime:
        """Return the time of the injected clock."""
        return self._clock.now()

    async def scan(
        self,
        kind: type[R],
        *,
        batch: int = 1000,
        readable: bool = False,  # noqa: ARG002 - every row in memory is readable
        **criteria: Any,
    ) -> AsyncIterator[Sequence[R]]:
        """Yield all records that meet the criteria, in the order of ids.

        A record that changes during the scan is tested when its batch is read.
        """
        if batch < 1:
            raise ValueError("a batch holds at least one record")
        mapped = table_map_of(self._table_maps, kind)
        asked = conditions(mapped.codec, criteria)
        ids = sorted(self._rows_of(mapped.name))
        found: list[R] = []
        for record_id in ids:
            row = self._rows_of(mapped.name).get(record_id)
            if row is not None and matching({record_id: row}, mapped, asked):
                found.append(mapped.codec.decode(row))
            if len(found) == batch:
                yield found
                found = []
        if found:
            yield found

    async def check(self) -> None:
        """Raise Unavailable if the storage is closed. Memory always reads and writes until then."""
        self._refuse_when_closed()

    async def close(self) -> None:
        """Refuse work from now on."""
        self._closed = True

    def _refuse_when_closed(self) -> None:
        if self._closed:
            raise Unavailable("the storage is closed")

    def _rows_of(self, name: str) -> Rows:
        self._refuse_when_closed()
        return self._tables[name].rows

    async def _apply(self, pending: Pending) -> None:
        # Let other tasks run once, as a real commit does. Otherwise no unit would ever lose a race in memory, and tests
        # of use cases would miss the conflicts that units exist for.
        await asyncio.sleep(0)
        self._refuse_when_closed()
        undo: list[tuple[TableRows, str, Row | None]] = []
        try:
            for write in pending.all_writes():
                table = self._tables[write.mapped.name]
                before = table.rows.get(write.id)
                table.apply(write)
                undo.append((table, write.id, before))
        except BaseException:
            for table, record_id, before in reversed(undo):
                table.put(record_id, before)
            raise
        await wake_up_safely(self._wake_up, pending.jobs)
