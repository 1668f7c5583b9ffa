"""What SQLite and Postgres share: reading through SQLAlchemy Core, units over it, snapshots and scans.

Only `get`, commits and claims have a shorter way, straight on the driver (sqlite.py, postgres.py).
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from ...ports.faults import Unavailable
from ...ports.jobs import Job
from ...ports.storage import R, Snapshot, Unit
from .catalogue import Table
from .criteria import Condition, Query, conditions
from .kept import Kept, keep, kept_of
from .recent import Recent
from .tables import Tables
from .unit import Kick, Reader, View, WorkUnit, Write, kick_safely

Translate = Callable[[Exception], Exception | None]
"""A driver's or SQLAlchemy's exception in the words of ports/faults.py; None for what is a bug of ours."""
Connect = Callable[[], AbstractAsyncContextManager[AsyncConnection]]


@contextmanager
def translated(translate: Translate) -> Iterator[None]:
    """Raise what happens inside in the words of ports/faults.py."""
    try:
        yield
    except Exception as fault:
        known = translate(fault)
        if known is None:
            raise
        # A cause's own text may quote values of the row (Postgres' DETAIL); only an outage's cause says nothing of it.
        raise known from (fault if isinstance(known, Unavailable) else None)


class SqlReader(Reader):
    """Reads over connections of an engine. `get` here is the long way round, for snapshots."""

    def __init__(self, tables: Tables, connect: Connect, translate: Translate) -> None:
        self.tables = tables
        self._connect = connect
        self._translate = translate

    async def get(self, kept: Kept[R], record_id: str) -> R | None:
        table = self.tables.of[kept.name]
        rows = await self.rows(sa.select(table).where(table.c.id == record_id))
        return kept.codec.decode(rows[0]) if rows else None

    async def find(self, kept: Kept[R], asked: Query) -> list[R]:
        return [kept.codec.decode(row) for row in await self.rows(self.tables.select(kept, asked))]

    async def total(self, kept: Kept[R], asked: tuple[Condition, ...]) -> int:
        total: int = (await self.rows(self.tables.count(kept, asked)))[0][0]
        return total

    async def sums(self, kept: Kept[R], field: str, by: str, asked: tuple[Condition, ...]) -> dict[Any, int]:
        value_of = kept.codec.column(by).value_of
        return {value_of(row[0]): row[1] for row in await self.rows(self.tables.sums(kept, field, by, asked))}

    async def rows(self, statement: sa.Executable) -> Sequence[Sequence[Any]]:
        """All rows of a statement. Raises Unavailable."""
        with translated(self._translate):
            async with self._connect() as connection:
                rows: Sequence[Sequence[Any]] = (await connection.execute(statement)).all()
        return rows


class SqlStorage(ABC):
    """The half of a Storage (ports/storage.py) that does not depend on the database."""

    def __init__(self, engine: AsyncEngine, catalogue: Sequence[Table], kick: Kick, translate: Translate) -> None:
        self._keeping = keep(catalogue)
        self._jobs: Kept[Job] = self._keeping[Job]
        self._engine = engine
        self._tables = Tables.shared(catalogue, engine.dialect)
        self._kick = kick
        self._translate = translate
        self._reads = SqlReader(self._tables, self._connect, translate)
        self._recent = Recent()
        self._kicking: set[asyncio.Task[None]] = set()
        self._closed = False

    @property
    @abstractmethod
    def _reader(self) -> Reader:
        """How units read."""

    @abstractmethod
    async def _apply(self, writes: Sequence[Write], jobs: Sequence[Job]) -> None:
        """Commit a unit."""

    @abstractmethod
    async def _begin_snapshot(self, connection: AsyncConnection) -> None:
        """Let all further reads of the connection see what its first one saw."""

    def unit(self) -> AbstractAsyncContextManager[Unit]:
        """A new unit of work."""
        return WorkUnit(self._keeping, self._reader, self._apply)

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Snapshot]:
        """Reads in one transaction, one after another, on one connection."""
        async with AsyncExitStack() as stack:
            with translated(self._translate):
                connection = await stack.enter_async_context(self._connect())
                await self._begin_snapshot(connection)
            turn = asyncio.Lock()

            @asynccontextmanager
            async def same() -> AsyncIterator[AsyncConnection]:
                async with turn:
                    yield connection

            yield View(self._keeping, SqlReader(self._tables, same, self._translate))

    async def scan(self, kind: type[R], *, batch: int = 1000, **criteria: Any) -> AsyncIterator[Sequence[R]]:
        """All records that meet the criteria, in id order; no connection is held between two batches."""
        if batch < 1:
            raise ValueError("a batch holds at least one record")
        kept = kept_of(self._keeping, kind)
        asked = conditions(kept.codec, criteria)
        last: str | None = None
        while True:
            rows = await self._reads.rows(self._tables.after(kept, asked, last, batch))
            if rows:
                yield [kept.codec.decode(row) for row in rows]
                last = rows[-1][kept.codec.place["id"]]
            if len(rows) < batch:
                return

    def _wrote_late(self, writes: Sequence[Write], jobs: Sequence[Job]) -> None:
        """Tell of what was written after who committed it was cancelled."""
        self._recent.forget(writes)
        task = asyncio.get_running_loop().create_task(kick_safely(self._kick, jobs))
        self._kicking.add(task)
        task.add_done_callback(self._kicking.discard)

    async def _kicked_late(self) -> None:
        while self._kicking:
            await asyncio.wait(self._kicking)

    def _refuse_when_closed(self) -> None:
        if self._closed:
            raise Unavailable("the storage is closed")

    @asynccontextmanager
    async def _connect(self) -> AsyncIterator[AsyncConnection]:
        self._refuse_when_closed()
        async with self._engine.connect() as connection:
            yield connection
