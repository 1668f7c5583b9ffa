"""Storage in a SQLite file, for one serving process and others (command line, console) beside it."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from math import inf
from pathlib import Path
from typing import Any, Self

from sqlalchemy import exc
from sqlalchemy.dialects.sqlite import pysqlite

from ....ports.clock import Clock
from ....ports.faults import Unavailable
from ....ports.jobs import Job
from ....ports.storage import R
from ....ports.unreadable import UnreadableRow
from ..sql.asides import take_out_of_sqlite, tolerant
from ..sql.revisions import require_head
from ..sql.room import Room, check_disk
from ..sql.schema import HEARTBEAT
from ..sql.sql import Ask, SqlStorage
from ..sql.statements import JobStatements, beat
from ..table.catalogue import CATALOGUE, Table
from ..table.codec import Row, microseconds, nearest_moment
from ..table.table_map import table_map_of
from ..table.unit import Reader, WakeUp, lease_microseconds, no_wake_up, refuse_both, wake_up_safely
from ..table.writes import Pending
from . import file as sqlite_file
from .committer import Committer
from .migrate import migrate_sqlite, sqlite_current
from .open_file import OpenFile
from .pool import ReadingPool, ask_on
from .reads import HotReader, Reading
from .turnstile import Turnstile
from .units import Units, Work


def _absolute(path: Path | str) -> Path:
    """Return an absolute path, so that a later change of the working directory has no effect."""
    return Path(path).absolute()


def _open_file(path: Path, *, migrate: bool) -> tuple[sqlite3.Connection, sqlite3.Connection]:
    """Open the connection that writes and the one that reads.

    The writer comes first: a reader cannot create the log.
    """
    if migrate:
        migrate_sqlite(path)
    else:
        require_head(sqlite_current(path))
    writing = sqlite_file.connect(path)
    try:
        writing.execute("SELECT count(*) FROM sqlite_master").fetchone()  # opens the log
        return writing, sqlite_file.connect_to_read(path, wait=False)
    except BaseException:
        writing.close()
        raise


def _is_full(fault: BaseException | None) -> bool:
    return isinstance(fault, sqlite3.Error) and getattr(fault, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL


class SqliteStorage(SqlStorage):
    """Storage (ports/storage.py) in one file. `clock` decides leases and due times.

    Units go through the group commit (committer.py). `get` runs on the event loop, on its own connection: a read by
    primary key takes 10 microseconds, and a hop to a thread several times that. All longer reads run in threads.
    """

    def __init__(
        self,
        path: Path,
        writing: sqlite3.Connection,
        reading: sqlite3.Connection,
        clock: Clock,
        wake_up: WakeUp,
        catalogue: Sequence[Table],
        busy: float,
    ) -> None:
        super().__init__(pysqlite.dialect(), catalogue, wake_up)
        self._clock = clock
        self._path = path
        self._room = Room(clock.monotonic, _is_full)
        self._units = Units(self._tables)
        self._opened_file = OpenFile(path)
        self._committer = Committer(
            writing, Turnstile(path), self._opened_file, begin=self._units.begin, end=self._units.end, busy=busy
        )
        self._seen: int | None = None
        self._looked = False
        self._reading = Reading(path, reading, self._opened_file)
        self._long = ReadingPool(path)
        self._hot = HotReader(self._tables, self._ask, self._reading, self._met)

    @property
    def _job_statements(self) -> JobStatements:
        return self._tables.jobs(self._jobs.name)

    @property
    def by_own_clock(self) -> bool:
        """Return True, as the port Clocked defines it."""
        return True

    @classmethod
    async def open(
        cls,
        path: Path | str,
        clock: Clock,
        wake_up: WakeUp = no_wake_up,
        *,
        migrate: bool = True,
        catalogue: Sequence[Table] = CATALOGUE,
        patient: bool = False,
    ) -> Self:
        """Open the file. With `migrate`, create it if it does not exist and migrate its schema.

        With `patient`, writes wait longer for other processes. Raises SchemaMismatch when the schema does not fit;
        Unavailable when the file cannot be opened.
        """
        where = _absolute(path)
        try:
            writing, reading = await asyncio.to_thread(_open_file, where, migrate=migrate)
        except (sqlite3.Error, exc.DBAPIError, OSError) as fault:
            raise Unavailable(f"SQLite could not open {where}: {fault}") from fault
        busy = sqlite_file.BUSY_PATIENT if patient else sqlite_file.BUSY
        return cls(where, writing, reading, clock, wake_up, catalogue, busy)

    @property
    def _reader(self) -> Reader:
        return self._hot

    async def _ask(self, text: str, parameters: Sequence[Any]) -> Sequence[Row]:
        self._refuse_when_closed()
        self._opened_file.require()
        return await self._long.ask(text, parameters)

    @asynccontextmanager
    async def _seen_at_once(self) -> AsyncIterator[Ask]:
        self._opened_file.require()
        async with self._long.connection() as connection:
            await ask_on(connection, "BEGIN", ())
            yield partial(ask_on, connection)
            await ask_on(connection, "ROLLBACK", ())

    async def recent(self, kind: type[R], record_id: str, /, *, within: float = 0.0) -> R | None:  # noqa: ARG002
        """Return the current record. The file shows whether another process wrote since the cached read."""
        if not self._looked and not self._look():
            return await self.get(kind, record_id)
        known = self._recent.known(kind, record_id, inf)
        if known is not None:
            return known[1]
        return await self._recent.read(table_map_of(self._table_maps, kind), record_id, self._hot.get)

    def _look(self) -> bool:
        """Clear the cache if another process wrote since. Return False if that cannot be determined now."""
        seen = self._committer.others_wrote()
        if seen is None:
            return False
        if seen != self._seen:
            self._recent.forget_all()
            self._seen = seen
        # One check is enough for everything that runs in this iteration of the loop.
        self._looked = True
        asyncio.get_running_loop().call_soon(self._poll_again)
        return True

    def _poll_again(self) -> None:
        self._looked = False

    async def claim(
        self, limit: int, lease: float, *, kind: str | None = None, but_kind: str | None = None
    ) -> list[Job]:
        """Claim due jobs. Nothing is written when none is due, so that a worker may poll often."""
        span = lease_microseconds(lease)
        refuse_both(kind, but_kind)
        due = await self.next_due()
        if limit <= 0 or due is None or due > self._clock.now():
            return []
        if (kind or but_kind) is not None and not await self._is_due(kind, but_kind):
            return []

        def work(cursor: sqlite3.Cursor) -> list[Row]:
            now = microseconds(self._clock.now())
            claim = self._job_statements.claim(limit=limit, lease=span, now=now, kind=kind, but_kind=but_kind)
            # A row that cannot be decoded would fail the whole transaction, with all units in it.
            cursor.connection.text_factory = tolerant
            try:
                rows: list[Row] = cursor.execute(*claim).fetchall()
            finally:
                cursor.connection.text_factory = str
            return rows

        return await self._claimed(await self._committer.run(work))

    async def _take_out(self, row: Row, note: UnreadableRow) -> None:
        await self._committer.run(lambda cursor: take_out_of_sqlite(cursor, self._jobs, row, note))

    async def _is_due(self, kind: str | None, but_kind: str | None) -> bool:
        now = microseconds(self._clock.now())
        return bool(await self._reading.all(*self._job_statements.any_due(now=now, kind=kind, but_kind=but_kind)))

    async def renew(self, jobs: Sequence[Job], lease: float) -> None:
        """Extend leases, in one transaction."""
        span = lease_microseconds(lease)
        if not jobs:
            return

        def work(cursor: sqlite3.Cursor) -> None:
            now = microseconds(self._clock.now())
            for job in jobs:
                cursor.execute(
                    *self._job_statements.renew.with_values(now=now, lease=span, id_=job.id, version_=job.version)
                )

        await self._committer.run(work)

    async def next_due(self) -> datetime | None:
        """Return when the earliest job without a live lease is due."""
        now = microseconds(self._clock.now())
        rows = await self._reading.all(*self._job_statements.next_due.with_values(now=now))
        return nearest_moment(rows[0][0]) if rows else None

    async def now(self) -> datetime:
        """Return the time of the injected clock."""
        return self._clock.now()

    def lost(self) -> str | None:
        """Return why writes are lost, as the port Losable defines it.

        Compares the open file with the file at its path.
        """
        return self._opened_file.look()

    async def check(self) -> None:
        """Write and read the heartbeat, and check free disk space. Concurrent checks share one commit."""
        self._refuse_when_closed()
        self._room.check()
        try:
            check_disk(self._path)
        except OSError as fault:
            raise Unavailable(f"SQLite's file cannot be seen: {fault}") from fault
        now = microseconds(self._clock.now())
        await self._committer.run(lambda cursor: cursor.execute(beat("?"), (now,)).rowcount)
        await self._ask(f"SELECT beaten_at FROM {HEARTBEAT}", ())  # noqa: S608 - nothing from outside

    async def close(self) -> None:
        """Write the waiting units, then close the file."""
        if self._closed:
            return
        await self._notes.again()
        self._closed = True
        await self._committer.close()
        await self._woken_up_late()
        self._reading.close()
        self._recent.forget_all()
        await self._long.close()

    async def _apply(self, pending: Pending) -> None:
        work = Work(self._units, pending, self._wrote_late)
        try:
            await self._committer.run(work.carry_out, quick=work.hope, late=work.tell_late, durable=pending.durable)
        except Unavailable as fault:
            self._room.refused(fault)
            raise
        else:
            self._room.taken()
        finally:
            self._recent.forget(pending)
        await wake_up_safely(self._wake_up, pending.jobs)
