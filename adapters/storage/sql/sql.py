"""Code shared by SQLite and Postgres: reads with statements from SQLAlchemy Core, units on top of them, snapshots and
scans.

Statements run as text on the drivers (tables.py). An SQLAlchemy engine would add some hundred microseconds to each
read, and eight megabytes to every process.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import Context
from datetime import datetime
from typing import Any

import msgspec
from sqlalchemy.engine.interfaces import Dialect

from ....ports.faults import Conflict, Stale, Unavailable, Unreadable
from ....ports.jobs import Job
from ....ports.storage import R, Snapshot, Unit
from ....ports.unreadable import Resume, UnreadableRow
from ..table.catalogue import Table
from ..table.codec import Row
from ..table.criteria import Condition, Query, Unread, conditions
from ..table.table_map import TableMap, keep, table_map_of
from ..table.unit import Reader, WakeUp, WorkUnit, lone_read, snapshot_over, wake_up_safely
from ..table.writes import Pending
from .asides import note_of, unpacked
from .notes import Notes
from .recent import Recent
from .tables import Tables

_log = logging.getLogger("cambist.storage")

Met = Callable[[TableMap[Any], Row, Unreadable], None]
Ask = Callable[[str, Sequence[Any]], Awaitable[Sequence[Row]]]
"""Function that returns all rows of a statement, with the errors of ports/faults.py."""


class SqlReader(Reader):
    """Reader over any function that runs a statement. It passes each unreadable row to `met`."""

    def __init__(self, tables: Tables, ask: Ask, met: Met) -> None:
        self.tables = tables
        self._ask = ask
        self._met = met

    async def get(self, mapped: TableMap[R], record_id: str) -> R | None:
        row = await self._row(mapped, record_id)
        if row is None:
            return None
        try:
            return mapped.codec.decode(row)
        except Unreadable as fault:
            self._met(mapped, row, fault)
            raise

    async def find(self, mapped: TableMap[R], asked: Query) -> list[R]:
        rows = await self._rows(mapped, asked)
        records, unreadable = self.records(mapped, rows, asked.unread)
        while unreadable and asked.unread is Unread.NEXT and len(rows) == asked.limit:
            asked = msgspec.structs.replace(asked, offset=asked.offset + asked.limit, limit=unreadable)
            rows = await self._rows(mapped, asked)
            more, unreadable = self.records(mapped, rows, asked.unread)
            records += more
        return records

    def records(self, mapped: TableMap[R], rows: Sequence[Row], unread: Unread) -> tuple[list[R], int]:
        """Return the records of rows, and how many are unreadable. Raises Unreadable if the query asks for that."""
        records, unreadable = mapped.codec.readable(rows)
        for row, fault in unreadable:
            self._met(mapped, row, fault)
        if unreadable and unread is Unread.RAISE:
            raise unreadable[0][1]
        return records, len(unreadable)

    async def _row(self, mapped: TableMap[Any], record_id: str) -> Row | None:
        rows = await self._ask(self.tables.statements(mapped).get, (record_id,))
        return rows[0] if rows else None

    async def _rows(self, mapped: TableMap[Any], asked: Query) -> Sequence[Row]:
        return await self._ask(*self.tables.found(mapped, asked))

    async def total(self, mapped: TableMap[R], asked: tuple[Condition, ...]) -> int:
        total: int = (await self._ask(*self.tables.count(mapped, asked)))[0][0]
        return total

    async def sums(self, mapped: TableMap[R], field: str, by: str, asked: tuple[Condition, ...]) -> dict[Any, int]:
        value_of = mapped.codec.column(by).value_of
        return {value_of(row[0]): row[1] for row in await self._ask(*self.tables.sums(mapped, field, by, asked))}


class SqlStorage(ABC):
    """The half of a Storage (ports/storage.py) that does not depend on the database."""

    def __init__(self, dialect: Dialect, catalogue: Sequence[Table], wake_up: WakeUp) -> None:
        self._table_maps = keep(catalogue)
        self._jobs: TableMap[Job] = self._table_maps[Job]
        self._tables = Tables.shared(catalogue, dialect)
        self._wake_up = wake_up
        self._recent = Recent()
        self._kicking: set[asyncio.Task[None]] = set()
        self._notes = Notes(self.unit, self.now, self._begin)
        self._closed = False

    @property
    @abstractmethod
    def _reader(self) -> Reader:
        """Return the reader of units."""

    @abstractmethod
    async def _apply(self, pending: Pending) -> None:
        """Commit a unit."""

    @abstractmethod
    async def _ask(self, text: str, parameters: Sequence[Any]) -> Sequence[Row]:
        """Return all rows of a statement that may take long. Raises: Unavailable."""

    @abstractmethod
    def _seen_at_once(self) -> AbstractAsyncContextManager[Ask]:
        """Return a function that reads on one connection, in one snapshot. Raises: Unavailable."""

    @abstractmethod
    async def _take_out(self, row: Row, note: UnreadableRow) -> None:
        """Move a job, read as this row, out of the jobs and store its note, unless the job changed since."""

    async def _claimed(self, rows: Sequence[Row]) -> list[Job]:
        """Return the jobs of claimed rows, the oldest due first.

        Unreadable rows are quarantined. If that fails, their lease hides them for a while, and the next claim tries
        again.
        """
        jobs, unreadable = self._jobs.codec.readable(rows)
        for row, fault in unreadable:
            _log.error("%s; it is set aside", fault)
            await self._set_aside(row, fault)
        return sorted(jobs, key=lambda job: (job.due, job.id))

    async def _set_aside(self, row: Row, fault: Unreadable) -> None:
        try:
            await self._take_out(row, note_of(self._jobs, row, fault, await self.now(), held=True))
        except Exception:  # noqa: BLE001 - whatever fails here, the other jobs are claimed and must be done
            _log.exception("it could not be set aside")
        self._notes.forget(self._jobs.name, fault.record_id)

    @abstractmethod
    async def now(self) -> datetime:
        """Return the time of the clock that decides leases and due times."""

    def unit(self) -> AbstractAsyncContextManager[Unit]:
        """Return a new unit of work."""
        return WorkUnit(self._table_maps, self._reader, Pending(), self._apply)

    def get(self, kind: type[R], record_id: str, /) -> Coroutine[Any, Any, R | None]:
        """Return the current record."""
        return lone_read(self._table_maps, self._reader, kind, record_id)

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Snapshot]:
        """Return reads in one transaction, one after another, on one connection."""
        self._refuse_when_closed()
        async with self._seen_at_once() as ask:
            lock = asyncio.Lock()

            async def one_by_one(text: str, parameters: Sequence[Any]) -> Sequence[Row]:
                async with lock:
                    return await ask(text, parameters)

            yield snapshot_over(self._table_maps, SqlReader(self._tables, one_by_one, self._met))

    async def scan(
        self, kind: type[R], *, batch: int = 1000, readable: bool = False, **criteria: Any
    ) -> AsyncIterator[Sequence[R]]:
        """Yield all records that meet the criteria, in the order of ids. No connection is held between two batches."""
        if batch < 1:
            raise ValueError("a batch holds at least one record")
        mapped = table_map_of(self._table_maps, kind)
        asked = conditions(mapped.codec, criteria)
        last: str | None = None
        reader, unread = SqlReader(self._tables, self._ask, self._met), Unread.NEXT if readable else Unread.RAISE
        while True:
            rows = await self._ask(*self._tables.after(mapped, asked, last, batch))
            if rows:
                records, _ = reader.records(mapped, rows, unread)
                if records:
                    yield records
                last = rows[-1][mapped.codec.index["id"]]
            if len(rows) < batch:
                return

    async def count_noted(self) -> int:
        """Return the number of unreadable rows, as the port SettingAside defines it."""
        await self._woken_up_late()
        await self._notes.again()
        async with self.unit() as unit:
            return await unit[UnreadableRow].total()

    async def take_up(self, resume: Resume, /) -> int:
        """Take up the rows that can be read now, as the port SettingAside defines it."""
        taken = 0
        await self._notes.again()
        async for batch in self.scan(UnreadableRow, readable=True):
            for note in batch:
                taken += await self._taken_up(note, resume)
        return taken

    async def _taken_up(self, note: UnreadableRow, resume: Resume) -> bool:
        mapped = next((each for each in self._table_maps.values() if each.name == note.source), None)
        if mapped is None:
            return False
        try:
            if note.held is None:
                await self._resume(mapped, note, resume)
            else:
                await self._put_back(note, mapped.codec.decode(unpacked(note.held)))
        except (Unreadable, ValueError, Stale):
            return False
        except Conflict:  # another process wrote the record meanwhile
            if note.held is None:
                return False
            await self._put_back(note, None)
        self._notes.forget(note.source, note.row_id)
        _log.info("%s %s can be read again", note.source, note.row_id)
        return True

    async def _resume(self, mapped: TableMap[Any], note: UnreadableRow, resume: Resume) -> None:
        async with self.unit() as unit:
            record = await unit[mapped.kind].get(note.row_id)
            unit[UnreadableRow].remove(note)
            if record is not None:
                await resume(unit, record)
            await unit.commit()

    async def _put_back(self, note: UnreadableRow, job: Job | None) -> None:
        async with self.unit() as unit:
            unit[UnreadableRow].remove(note)
            if job is not None:
                unit[Job].add(msgspec.structs.replace(job, leased_until=None))
            await unit.commit()

    def _met(self, mapped: TableMap[Any], row: Row, fault: Unreadable) -> None:
        """Report an unreadable row in the log and in a note. An unreadable job is quarantined."""
        if not mapped.of_jobs:
            self._notes.met(mapped, row, fault)
        elif self._notes.is_new(mapped, fault):
            self._begin(self._set_aside(row, fault))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Run work in the background, in a new context, because it belongs to no single request."""
        task = asyncio.get_running_loop().create_task(work, context=Context())
        self._kicking.add(task)
        task.add_done_callback(self._kicking.discard)

    def _wrote_late(self, pending: Pending) -> None:
        """Clear the cache and wake workers for a unit that was written after its caller was cancelled."""
        self._recent.forget(pending)
        task = asyncio.get_running_loop().create_task(wake_up_safely(self._wake_up, pending.jobs))
        self._kicking.add(task)
        task.add_done_callback(self._kicking.discard)

    async def _woken_up_late(self) -> None:
        while self._kicking:
            await asyncio.wait(self._kicking)

    def _refuse_when_closed(self) -> None:
        if self._closed:
            raise Unavailable("the storage is closed")
