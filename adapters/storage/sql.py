"""What SQLite and Postgres share: reading by statements that SQLAlchemy Core wrote, units over it, snapshots and scans.

Statements run as text on the drivers (tables.py): an engine of SQLAlchemy around them would cost each read some hundred
microseconds, and every process eight megabytes.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime
from typing import Any

from sqlalchemy.engine.interfaces import Dialect

from ...ports.faults import Unavailable
from ...ports.jobs import Job
from ...ports.storage import R, Snapshot, Unit
from ...ports.unreadable import UnreadableRow
from .asides import noted
from .catalogue import Table
from .codec import Row
from .criteria import Condition, Query, conditions
from .kept import Kept, keep, kept_of
from .recent import Recent
from .tables import Tables
from .unit import Kick, Pending, Reader, WorkUnit, kick_safely, lone_read, snapshot_over

_log = logging.getLogger("cambist.storage")

Ask = Callable[[str, Sequence[Any]], Awaitable[Sequence[Row]]]
"""All rows of a statement, in the words of ports/faults.py."""


class SqlReader(Reader):
    """Reads over whatever runs a statement."""

    def __init__(self, tables: Tables, ask: Ask) -> None:
        self.tables = tables
        self._ask = ask

    async def get(self, kept: Kept[R], record_id: str) -> R | None:
        rows = await self._ask(self.tables.statements(kept).get, (record_id,))
        return kept.codec.decode(rows[0]) if rows else None

    async def find(self, kept: Kept[R], asked: Query) -> list[R]:
        return [kept.codec.decode(row) for row in await self._ask(*self.tables.found(kept, asked))]

    async def total(self, kept: Kept[R], asked: tuple[Condition, ...]) -> int:
        total: int = (await self._ask(*self.tables.count(kept, asked)))[0][0]
        return total

    async def sums(self, kept: Kept[R], field: str, by: str, asked: tuple[Condition, ...]) -> dict[Any, int]:
        value_of = kept.codec.column(by).value_of
        return {value_of(row[0]): row[1] for row in await self._ask(*self.tables.sums(kept, field, by, asked))}


class SqlStorage(ABC):
    """The half of a Storage (ports/storage.py) that does not depend on the database."""

    def __init__(self, dialect: Dialect, catalogue: Sequence[Table], kick: Kick) -> None:
        self._keeping = keep(catalogue)
        self._jobs: Kept[Job] = self._keeping[Job]
        self._tables = Tables.shared(catalogue, dialect)
        self._kick = kick
        self._recent = Recent()
        self._kicking: set[asyncio.Task[None]] = set()
        self._closed = False

    @property
    @abstractmethod
    def _reader(self) -> Reader:
        """How units read."""

    @abstractmethod
    async def _apply(self, pending: Pending) -> None:
        """Commit a unit."""

    @abstractmethod
    async def _ask(self, text: str, parameters: Sequence[Any]) -> Sequence[Row]:
        """All rows of a statement that may take long. Raises: Unavailable."""

    @abstractmethod
    def _seen_at_once(self) -> AbstractAsyncContextManager[Ask]:
        """Asks one connection, whose reads all see what the first one saw. Raises: Unavailable."""

    @abstractmethod
    async def _take_out(self, row: Row, note: UnreadableRow) -> None:
        """Take a claimed job, as this row, out of the jobs, and write the note of it, unless it moved since."""

    async def _claimed(self, rows: Sequence[Row]) -> list[Job]:
        """The jobs of claimed rows, the oldest due first. What cannot be read is set aside; where that fails, its lease
        keeps it away for a while, and the next claim tries again."""
        jobs, unreadable = self._jobs.codec.readable(rows)
        for row, fault in unreadable:
            _log.error("%s; it is set aside", fault)
            try:
                await self._take_out(row, noted(self._jobs, row, fault, await self.now(), held=True))
            except Exception:  # noqa: BLE001 - whatever keeps it here, the others are claimed and must be done
                _log.exception("it could not be set aside")
        return sorted(jobs, key=lambda job: (job.due, job.id))

    @abstractmethod
    async def now(self) -> datetime:
        """The clock by which leases and due times are judged."""

    def unit(self) -> AbstractAsyncContextManager[Unit]:
        """A new unit of work."""
        return WorkUnit(self._keeping, self._reader, Pending(), self._apply)

    def get(self, kind: type[R], record_id: str, /) -> Coroutine[Any, Any, R | None]:
        """The record as it stands."""
        return lone_read(self._keeping, self._reader, kind, record_id)

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Snapshot]:
        """Reads in one transaction, one after another, on one connection."""
        self._refuse_when_closed()
        async with self._seen_at_once() as ask:
            turn = asyncio.Lock()

            async def in_turn(text: str, parameters: Sequence[Any]) -> Sequence[Row]:
                async with turn:
                    return await ask(text, parameters)

            yield snapshot_over(self._keeping, SqlReader(self._tables, in_turn))

    async def scan(self, kind: type[R], *, batch: int = 1000, **criteria: Any) -> AsyncIterator[Sequence[R]]:
        """All records that meet the criteria, in id order; no connection is held between two batches."""
        if batch < 1:
            raise ValueError("a batch holds at least one record")
        kept = kept_of(self._keeping, kind)
        asked = conditions(kept.codec, criteria)
        last: str | None = None
        while True:
            rows = await self._ask(*self._tables.after(kept, asked, last, batch))
            if rows:
                yield [kept.codec.decode(row) for row in rows]
                last = rows[-1][kept.codec.place["id"]]
            if len(rows) < batch:
                return

    def _wrote_late(self, pending: Pending) -> None:
        """Tell of what was written after who committed it was cancelled."""
        self._recent.forget(pending)
        task = asyncio.get_running_loop().create_task(kick_safely(self._kick, pending.jobs))
        self._kicking.add(task)
        task.add_done_callback(self._kicking.discard)

    async def _kicked_late(self) -> None:
        while self._kicking:
            await asyncio.wait(self._kicking)

    def _refuse_when_closed(self) -> None:
        if self._closed:
            raise Unavailable("the storage is closed")
