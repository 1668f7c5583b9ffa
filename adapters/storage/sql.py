"""What SQLite and Postgres share: reading through SQLAlchemy Core, units over it, snapshots and scans.

Only `get`, commits and claims have a shorter way, straight on the driver (sqlite.py, postgres.py).
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from itertools import groupby
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine.interfaces import Dialect
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from ...ports.faults import Unavailable
from ...ports.jobs import Job
from ...ports.storage import R, Snapshot, Unit
from .catalogue import Table
from .criteria import Condition, Query, Relation, conditions
from .schema import metadata
from .statements import Statement, TableStatements
from .unit import Accrue, Kept, Kick, Reader, View, WorkUnit, Write, keep, kept_of

Translate = Callable[[Exception], Exception | None]
"""A driver's or SQLAlchemy's exception in the words of ports/faults.py; None for what is a bug of ours."""
Connect = Callable[[], AbstractAsyncContextManager[AsyncConnection]]

_ROWS_TOGETHER = 64
"""Accrued rows in one statement at most: databases bound the number of parameters."""


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


class Tables:
    """The catalogue's tables and their statements, for one dialect."""

    def __init__(self, schema: sa.MetaData, dialect: Dialect) -> None:
        self.of = schema.tables
        self._dialect = dialect
        self._statements: dict[str, TableStatements] = {}
        self._questions: dict[Any, tuple[str, list[Any]]] = {}

    def statements(self, kept: Kept[Any]) -> TableStatements:
        """A table's statements, made when they are first asked for: all of them together would make every command of
        the command line wait."""
        known = self._statements.get(kept.name)
        if known is None:
            known = self._statements[kept.name] = TableStatements(kept, self.of[kept.name], self._dialect)
        return known

    def of_unit(self, writes: Sequence[Write]) -> list[tuple[Write, Statement]]:
        """A unit's statements, in order: one for each write, but one for many rows that are accrued in one table,
        after all others, as the unit gives them."""
        found: list[tuple[Write, Statement]] = []
        accruals: list[Accrue] = []
        for write in writes:
            if type(write) is Accrue:
                accruals.append(write)
            else:
                found.append((write, self.statements(write.kept).of(write)))
        for _, group in groupby(accruals, key=lambda accrual: accrual.kept.name):
            rows = list(group)
            for start in range(0, len(rows), _ROWS_TOGETHER):
                part = rows[start : start + _ROWS_TOGETHER]
                found.append((part[0], self.statements(part[0].kept).accrue(part)))
        return found

    def select(self, kept: Kept[Any], asked: Query) -> sa.Select[Any]:
        """The rows that a query asks for."""
        table = self.of[kept.name]
        found = sa.select(table)
        if not asked.offset:
            return self._bounded(found, table, asked)
        # Of the pages before only ids are walked, which the indexes hold; whole rows are read for this page only.
        ids = self._bounded(sa.select(table.c.id), table, asked).offset(asked.offset)
        return found.where(table.c.id.in_(ids)).order_by(*_order(table, asked))

    def question(self, kept: Kept[Any], asked: Query) -> Statement:
        """What `select` asks, as text for the driver. A text is made once for all questions of its form; there are as
        many forms as there are places in the code that ask quickly."""
        conditions = [_padded(each) for each in asked.conditions]
        values = [value for each in conditions for value in _values(each)]
        form = (
            kept.name,
            tuple((each.field, each.relation, len(_values(each))) for each in conditions),
            *(asked.order, asked.descending, asked.offset),
        )
        known = self._questions.get(form)
        if known is None:
            whole = msgspec.structs.replace(asked, conditions=tuple(conditions))
            compiled: Any = self.select(kept, whole).compile(
                dialect=self._dialect, compile_kwargs={"render_postcompile": True}
            )
            parameters = [compiled.params[name] for name in compiled.positiontup]
            if parameters[: len(values) + 1] != [*values, asked.limit]:
                raise ValueError(f"the parameters of {compiled} are not the values in their order, and the limit")
            known = self._questions[form] = str(compiled), parameters[len(values) + 1 :]
        text, rest = known
        return text, [*values, asked.limit, *rest]

    def count(self, kept: Kept[Any], asked: tuple[Condition, ...]) -> sa.Select[Any]:
        """How many rows meet all conditions."""
        table = self.of[kept.name]
        return sa.select(sa.func.count()).select_from(table).where(*(_clause(table, each) for each in asked))

    def sums(self, kept: Kept[Any], field: str, by: str, asked: tuple[Condition, ...]) -> sa.Select[Any, Any]:
        """Rows of a value and a sum. Postgres adds integers up to a decimal, hence the cast."""
        table = self.of[kept.name]
        amount: sa.ColumnElement[Any] = sa.cast(sa.func.sum(table.c[field]), sa.BigInteger)
        clauses = [_clause(table, each) for each in asked]
        return sa.select(table.c[by], amount).where(*clauses).group_by(table.c[by])

    def after(self, kept: Kept[Any], asked: tuple[Condition, ...], last: str | None, limit: int) -> sa.Select[Any]:
        """The next rows in the order of ids; from the first one when `last` is None."""
        table = self.of[kept.name]
        clauses = [_clause(table, each) for each in asked]
        if last is not None:
            clauses.append(table.c.id > last)
        return sa.select(table).where(*clauses).order_by(table.c.id).limit(limit)

    def _bounded(self, found: sa.Select[Any], table: sa.Table, asked: Query) -> sa.Select[Any]:
        clauses = [_clause(table, each) for each in asked.conditions]
        return found.where(*clauses).order_by(*_order(table, asked)).limit(asked.limit)


def _order(table: sa.Table, asked: Query) -> list[sa.ColumnElement[Any]]:
    column = table.c[asked.order]
    order: sa.ColumnElement[Any] = column.desc() if asked.descending else column.asc()
    if asked.nulls:
        order = order.nulls_first() if asked.descending else order.nulls_last()
    return [order] if asked.order == "id" else [order, table.c.id.desc() if asked.descending else table.c.id.asc()]


def _values(condition: Condition) -> tuple[Any, ...]:
    match condition.relation:
        case Relation.NULL:
            return ()
        case Relation.ONE_OF | Relation.ONE_OF_OR_NULL:
            return tuple(condition.value)
        case _:
            return (condition.value,)


def _padded(condition: Condition) -> Condition:
    """Several values made up to a power of two by the last one, so that there are few forms of them."""
    if condition.relation not in (Relation.ONE_OF, Relation.ONE_OF_OR_NULL) or not condition.value:
        return condition
    size = 1 << (len(condition.value) - 1).bit_length()
    values = (*condition.value, *condition.value[-1:] * (size - len(condition.value)))
    return Condition(condition.field, condition.relation, values)


def _clause(table: sa.Table, condition: Condition) -> sa.ColumnElement[bool]:
    column, value = table.c[condition.field], condition.value
    match condition.relation:
        case Relation.EQUAL:
            return column == sa.literal(value, column.type)
        case Relation.AT_MOST:
            return column <= sa.literal(value, column.type)
        case Relation.AT_LEAST:
            return column >= sa.literal(value, column.type)
        case Relation.BELOW:
            return column < sa.literal(value, column.type)
        case Relation.ONE_OF:
            return column.in_(value)
        case Relation.NULL:
            return column.is_(None)
        case Relation.ONE_OF_OR_NULL:
            return sa.or_(column.is_(None), column.in_(value))


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
        self._tables = Tables(metadata(catalogue), engine.dialect)
        self._kick = kick
        self._translate = translate
        self._reads = SqlReader(self._tables, self._connect, translate)
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

    def _refuse_when_closed(self) -> None:
        if self._closed:
            raise Unavailable("the storage is closed")

    @asynccontextmanager
    async def _connect(self) -> AsyncIterator[AsyncConnection]:
        self._refuse_when_closed()
        async with self._engine.connect() as connection:
            yield connection
