"""Batching of concurrent reads by id into one query to Postgres.

Under load many units read at once, and a round trip of its own costs each of them more CPU than the rest of its
read. A batch costs a tenth of that. A single read runs alone, at once.
"""

import asyncio
from collections.abc import Sequence
from contextvars import Context
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from ....ports.faults import Unavailable
from ..sql.sql import Ask, Met, SqlReader
from ..sql.statements import Prepared
from ..sql.tables import Tables
from ..table.codec import Row, Storing
from ..table.table_map import TableMap
from .arrays import array

_AT_ONCE = 4
"""Queries under way. Reads that arrive meanwhile form the next batch."""
_MOST = 256
"""Ids in one query."""

_Asked = tuple[str, "asyncio.Future[Row | None]"]


class Lookups:
    """Collector of the reads made in one iteration of the event loop. `fetch` runs a quick statement."""

    def __init__(self, tables: Tables, fetch: Ask) -> None:
        self._tables = tables
        self._fetch = fetch
        self._texts: dict[str, str] = {}
        self._waiting: list[tuple[TableMap[Any], list[_Asked]]] = []
        self._under_way: set[asyncio.Task[None]] = set()
        self._alone = 0
        self._is_planned = False

    async def row(self, mapped: TableMap[Any], record_id: str) -> Row | None:
        """Return the row of this id, as of now or later. Raises Unavailable."""
        if not self._under_way and not self._alone and not self._waiting:
            return await self._at_once(mapped, record_id)
        answer: asyncio.Future[Row | None] = asyncio.get_running_loop().create_future()
        self._asked_of(mapped).append((record_id, answer))
        self._plan()
        return await answer

    async def _at_once(self, mapped: TableMap[Any], record_id: str) -> Row | None:
        """Read without a task, which costs half as much as the query."""
        self._alone += 1
        try:
            rows = await self._rows(mapped, [record_id])
        finally:
            self._alone -= 1
            self._plan()
        return rows[0] if rows else None

    def _asked_of(self, mapped: TableMap[Any]) -> list[_Asked]:
        for table, asked in self._waiting:
            if table is mapped and len(asked) < _MOST:
                return asked
        asked = list[_Asked]()
        self._waiting.append((mapped, asked))
        return asked

    def _plan(self) -> None:
        if self._waiting and not self._is_planned and len(self._under_way) + self._alone < _AT_ONCE:
            self._is_planned = True
            # Run the query after all code of this loop iteration has added its reads.
            asyncio.get_running_loop().call_soon(self._ask)

    def _ask(self) -> None:
        self._is_planned = False
        mapped, asked = self._waiting.pop(0)
        # Run the query in a new context, because it belongs to no single request.
        task = asyncio.get_running_loop().create_task(self._answer(mapped, asked), context=Context())
        self._under_way.add(task)
        task.add_done_callback(self._answered)
        self._plan()

    def _answered(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        self._plan()

    async def _answer(self, mapped: TableMap[Any], asked: Sequence[_Asked]) -> None:
        try:
            index = mapped.codec.index["id"]
            found = {row[index]: row for row in await self._rows(mapped, [record_id for record_id, _ in asked])}
        except BaseException as fault:
            for _, answer in asked:
                if not answer.done():
                    answer.set_exception(_for_one(fault))
            if not isinstance(fault, Exception):
                raise
        else:
            for record_id, answer in asked:
                if not answer.done():  # cancelled meanwhile
                    answer.set_result(found.get(record_id))

    async def _rows(self, mapped: TableMap[Any], ids: Sequence[str]) -> Sequence[Row]:
        if len(ids) == 1:
            return await self._fetch(self._tables.statements(mapped).get, ids)
        return await self._fetch(self._text(mapped), (array(Storing.TEXT, ids),))

    def _text(self, mapped: TableMap[Any]) -> str:
        known = self._texts.get(mapped.name)
        if known is None:
            table = self._tables.of[mapped.name]
            ids = sa.cast(sa.bindparam("ids", type_=sa.Text()), postgresql.ARRAY(sa.Text()))
            statement = sa.select(table).where(table.c.id == sa.any_(ids))
            known = self._texts[mapped.name] = Prepared(statement, self._tables.dialect).expect("ids")
        return known


class HotReader(SqlReader):
    """Reader of units. It batches `get`; all other reads work as in SqlReader."""

    def __init__(self, tables: Tables, ask: Ask, fetch: Ask, met: Met) -> None:
        super().__init__(tables, ask, met)
        self._lookups = Lookups(tables, fetch)

    async def _row(self, mapped: TableMap[Any], record_id: str) -> Row | None:
        return await self._lookups.row(mapped, record_id)


def _for_one(fault: BaseException) -> BaseException:
    """Return a separate exception for each waiter: a shared one would collect all their tracebacks."""
    if isinstance(fault, Unavailable):
        return Unavailable(str(fault)).with_traceback(fault.__traceback__)
    return fault if isinstance(fault, Exception) else Unavailable("the storage was broken off")
