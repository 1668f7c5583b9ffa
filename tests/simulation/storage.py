"""One database, as each process reaches it: over a connection with late or lost calls and answers.

The database is the storage in memory with its own clock, as a Postgres has. A unit sent to it is carried out whole or
not at all, even if its answer is lost (ports/storage.py: Unit.commit).
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from typing import Any, Protocol, TypeVar

import msgspec

from cambist.adapters.storage.memory.memory import MemoryStorage
from cambist.adapters.storage.table.table_map import table_map_of
from cambist.adapters.storage.table.unit import WakeUp, snapshot_over
from cambist.adapters.storage.table.writes import Pending
from cambist.ports.clock import Clock
from cambist.ports.faults import Unreadable
from cambist.ports.forwarding import ForwardingRepository, ForwardingStorage
from cambist.ports.jobs import Job
from cambist.ports.storage import R, Snapshot, Storage, Unit
from cambist.ports.unreadable import Resume
from tests.simulation.damage import OBJECTS, Damage, DamagedReader

T = TypeVar("T")


class Line(Protocol):
    """The way between a process and its database."""

    async def go(self, *, writes: bool = False) -> None:
        """The call is on its way. Raises: Unavailable, when it is lost, or would write and cannot."""
        ...

    async def come(self, *, wrote: bool) -> None:
        """The answer is. Raises: Unavailable, when it is lost."""
        ...

    def claimed(self) -> None:
        """Called after a claim of jobs. Raises: an error that is no port fault, if the plan garbles the claim."""
        ...


class Database(MemoryStorage):
    """The storage in memory, with a server that may fail. A failure loses the commits that did not wait for the disk
    and came after the last one that did (ports/storage.py: Unit.commit)."""

    def __init__(self, clock: Clock, wake_up: WakeUp, wrong: Callable[[str], None]) -> None:
        super().__init__(clock, wake_up)
        self._wrong = wrong
        self._claimed: dict[str, tuple[datetime, int]] = {}
        """How each job was when it was claimed last."""
        self.damage = Damage()
        self.changes = 0
        """Rows that were written so far."""
        self._reader = DamagedReader(self._rows_of, self.damage)
        self.spoils: set[tuple[str, str]] = set()
        """Tables, and accounts whose next row there cannot be read."""
        self.spoilt: set[str] = set()
        """The events that are so, or whose delivery is."""
        self._not_on_disk: list[tuple[Any, str, Any]] = []
        """Earlier versions of rows, in the order of the changes."""
        for table in self._tables.values():
            self._note_changes(table)

    def _note_changes(self, table: Any) -> None:
        put = table.put

        def noted(record_id: str, row: Any) -> None:
            before = table.rows.get(record_id)
            put(record_id, row)
            self.changes += 1
            self.damage.written(table.mapped.name, record_id)
            if table.mapped.name in ("events", "deliveries") and before is None:
                self._spoil(table.mapped.name, record_id, row[table.mapped.codec.index["account_id"]])
            if table.mapped.name == "jobs" and row is None:
                self._claimed.pop(record_id, None)
            self._not_on_disk.append((put, record_id, before))

        table.put = noted

    def _spoil(self, table: str, event_id: str, account_id: str) -> None:
        if (table, account_id) in self.spoils:
            self.spoils.discard((table, account_id))
            self.spoilt.add(event_id)
            self.damage.rows.setdefault(table, {})[event_id] = account_id

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Snapshot]:
        seen: dict[str, Any] = {}

        def rows_of(name: str) -> Any:
            if not seen:
                for table in self._tables.values():
                    table.shared = True
                    seen[table.mapped.name] = table.rows
            return seen[name]

        yield snapshot_over(self._table_maps, DamagedReader(rows_of, self.damage))

    async def scan(
        self, kind: type[R], *, batch: int = 1000, readable: bool = False, **criteria: Any
    ) -> AsyncIterator[Sequence[R]]:
        table = table_map_of(self._table_maps, kind).name
        damaged = self.damage.rows.get(table, {})
        async for found in super().scan(kind, batch=batch, **criteria):
            for record in found:
                if record.id in damaged:
                    self.damage.met(table, [record.id])
                if not readable and record.id in damaged:
                    raise Unreadable(kind.__name__, record.id, "status (KeyError)")
            yield [record for record in found if record.id not in damaged] if damaged else found

    def damageable(self, table: str, account_id: str) -> list[tuple[str, str]]:
        """Return the merchant's rows of a table; of jobs, those about the merchant's rows."""
        if table == "jobs":
            about = {each for name in OBJECTS for _, each in self.damageable(name, account_id)}
            argument = self._tables[table].mapped.codec.index["argument"]
            jobs = sorted(self._tables[table].rows.items())
            return [(table, job_id) for job_id, row in jobs if row[argument] in about or account_id in job_id]
        at = self._tables[table].mapped.codec.index["account_id"]
        rows = sorted(self._tables[table].rows.items())
        return [(table, record_id) for record_id, row in rows if row[at] == account_id]

    def mend_spoilt(self) -> None:
        """Make all damaged rows readable, and damage no more."""
        self.spoils.clear()
        for event_id in self.spoilt:
            self.mend("events", event_id)
            self.mend("deliveries", event_id)

    def mend(self, table: str, record_id: str) -> None:
        """Make the row readable again. A job moved out of its table waits until a process takes it up."""
        self.damage.written(table, record_id)
        if table == "jobs" and record_id in self.damage.aside:
            self.damage.noted.add((table, record_id))

    async def take_up(self, resume: Resume, /) -> int:
        """Implement the port SettingAside."""
        found = self.damage.readable_again()
        for table, record_id in found:
            if table == "jobs":
                self._put_back(record_id, await self.now())
            else:
                async with self.unit() as unit:
                    record = await unit[self._tables[table].mapped.kind].get(record_id)
                    if record is not None:
                        await resume(unit, record)
                    await unit.commit()
            self.damage.noted.discard((table, record_id))
        return len(found)

    def _put_back(self, job_id: str, now: datetime) -> None:
        row = self.damage.aside.pop(job_id, None)
        if row is not None and job_id not in self._tables["jobs"].rows:
            self._tables["jobs"].put(job_id, row)
            self.damage.put_back[job_id] = now

    async def count_noted(self) -> int:
        """Implement the port SettingAside."""
        return len(self.damage.noted)

    def _set_jobs_aside(self) -> None:
        """A claim takes jobs that cannot be read out of their table."""
        jobs = self._tables["jobs"]
        for job_id in [*self.damage.rows.get("jobs", ())]:
            if job_id in jobs.rows:
                self.damage.aside[job_id] = jobs.rows[job_id]
                jobs.put(job_id, None)

    async def _apply(self, pending: Pending) -> None:
        await super()._apply(pending)
        if pending.durable:
            self._not_on_disk.clear()

    async def claim(self, *given: Any, **named: Any) -> list[Job]:
        self._set_jobs_aside()
        claimed = await super().claim(*given, **named)
        self._not_on_disk.clear()
        for job in claimed:
            mark = job.created_at, job.version
            if self._claimed.get(job.id) == mark:
                self._wrong(f"job {job.id} was claimed twice as the same: its former worker cannot notice")
            self._claimed[job.id] = mark
        return claimed

    async def renew(self, jobs: Sequence[Job], lease: float) -> None:
        await super().renew(jobs, lease)
        self._not_on_disk.clear()

    def fail(self) -> int:
        """Lose the writes that are not on disk. Return how many rows that changed."""
        lost = len(self._not_on_disk)
        for put, record_id, before in reversed(self._not_on_disk):
            put(record_id, before)
        self._not_on_disk.clear()
        return lost


class FarStorage(ForwardingStorage):
    """The database at the other end of a line."""

    def __init__(
        self, storage: Storage, line: Line, told: Callable[[str], None], *, by_own_clock: bool = False
    ) -> None:
        """`told`: called with every commit that took effect. `by_own_clock`: the storage uses this machine's clock."""
        super().__init__(storage)
        self._line = line
        self._by_own_clock = by_own_clock
        self._told = told

    @property
    def by_own_clock(self) -> bool:
        """Whether the process uses its own clock instead of the database's."""
        return self._by_own_clock

    @asynccontextmanager
    async def unit(self) -> AsyncIterator[Unit]:
        async with self.inner.unit() as unit:
            yield _FarUnit(unit, self._line, self._told)

    async def get(self, kind: type[R], record_id: str, /) -> R | None:
        return await _asked(self._line, lambda: self.inner.get(kind, record_id))

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Snapshot]:
        async with self.inner.snapshot() as snapshot:
            yield _FarSnapshot(snapshot, self._line)

    async def recent(self, kind: type[R], record_id: str, /, *, within: float = 0.0) -> R | None:
        return await _asked(self._line, lambda: self.inner.recent(kind, record_id, within=within))

    async def claim(
        self, limit: int, lease: float, *, kind: str | None = None, but_kind: str | None = None
    ) -> list[Job]:
        claimed = await _asked(
            self._line, lambda: self.inner.claim(limit, lease, kind=kind, but_kind=but_kind), wrote=True
        )
        self._line.claimed()
        return claimed

    async def renew(self, jobs: Sequence[Job], lease: float) -> None:
        await _asked(self._line, lambda: self.inner.renew(jobs, lease), wrote=True)

    async def next_due(self) -> datetime | None:
        return await _asked(self._line, self.inner.next_due)

    async def now(self) -> datetime:
        return await _asked(self._line, self.inner.now)

    async def scan(
        self, kind: type[R], *, batch: int = 1000, readable: bool = False, **criteria: Any
    ) -> AsyncIterator[Sequence[R]]:
        found = self.inner.scan(kind, batch=batch, readable=readable, **criteria)
        await self._line.go()
        async for each in found:
            await self._line.come(wrote=False)
            yield each

    async def take_up(self, resume: Resume, /) -> int:
        """Do nothing if no row is recorded, without a call of the database."""
        if not await super().count_noted():
            return 0
        return await _asked(self._line, partial(super().take_up, resume), wrote=True)

    async def check(self) -> None:
        await _asked(self._line, self.inner.check)

    async def close(self) -> None:
        """Leave it open, because others use it."""


async def _asked(line: Line, call: Callable[[], Awaitable[T]], *, wrote: bool = False) -> T:
    await line.go(writes=wrote)
    answer = await call()
    await line.come(wrote=wrote)
    return answer


class _FarRepository(ForwardingRepository[Any], eq=False):
    line: Line

    async def get(self, record_id: str, /) -> Any:
        return await _asked(self.line, lambda: self.inner.get(record_id))

    async def find(self, **asked: Any) -> list[Any]:
        return await _asked(self.line, lambda: self.inner.find(**asked))

    async def page(self, number: int, size: int, /, **asked: Any) -> list[Any]:
        return await _asked(self.line, lambda: self.inner.page(number, size, **asked))

    async def total(self, **criteria: Any) -> int:
        return await _asked(self.line, lambda: self.inner.total(**criteria))

    async def sums(self, field: str, /, **asked: Any) -> dict[Any, int]:
        return await _asked(self.line, lambda: self.inner.sums(field, **asked))


class _FarUnit(msgspec.Struct, eq=False):
    unit: Unit
    line: Line
    told: Callable[[str], None]

    @property
    def _pending(self) -> Any:
        """The writes, which the fence of a cell reads in the process."""
        unit: Any = self.unit
        return unit._pending

    def __getitem__(self, kind: type[R], /) -> Any:
        return _FarRepository(self.unit[kind], self.line)

    async def commit(self, *, durable: bool = True) -> None:
        await self.line.go(writes=True)
        await self.unit.commit(durable=durable)
        self.told("commit")
        await self.line.come(wrote=True)


class _FarSnapshot(msgspec.Struct, eq=False):
    snapshot: Snapshot
    line: Line

    def __getitem__(self, kind: type[R], /) -> Any:
        return _FarRepository(self.snapshot[kind], self.line)


# Texts: an exception that is raised again and again keeps the frames of each time, and a world with them.
FULL = "the disk of the database is full"
LOST = "the connection to the database broke"
