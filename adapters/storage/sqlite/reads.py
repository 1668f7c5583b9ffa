"""Quick reads of the SQLite file, on the event loop.

A read by primary key takes 10 microseconds, and a hop to a thread several times that. All longer reads run in
threads.
"""

import asyncio
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ....ports.faults import Unavailable
from ..sql.asides import tolerant
from ..sql.sql import Ask, Met, SqlReader
from ..sql.tables import Tables
from ..table.codec import Row
from ..table.criteria import Query
from ..table.table_map import TableMap
from . import file as sqlite_file
from .open_file import OpenFile


class Reading:
    """Connection that only reads."""

    def __init__(self, path: Path, connection: sqlite3.Connection, open_file: OpenFile) -> None:
        self._path = path
        self._opened_file = open_file
        self._connection = connection
        self._cursor = connection.cursor()  # one for all reads: creating a cursor costs as much as a small read
        self._closed = False

    async def all(self, statement: str, parameters: Sequence[Any]) -> list[Row]:
        """Return the rows of a quick statement; if the file is locked, read them in a thread. Raises Unavailable."""
        rows = self.at_once(statement, parameters)
        return await self.patiently(statement, parameters) if rows is None else rows

    def at_once(self, statement: str, parameters: Sequence[Any]) -> list[Row] | None:
        """Return the rows of a quick statement; None if the file is locked (another process opens or closes it).

        Raises Unavailable.
        """
        if self._closed:
            raise Unavailable("the storage is closed")
        self._opened_file.require()
        try:
            rows: list[Row] = self._cursor.execute(statement, parameters).fetchall()
        except sqlite3.Error:
            return None
        return rows

    async def patiently(self, statement: str, parameters: Sequence[Any]) -> list[Row]:
        """Return the rows of a statement, read in a thread. Raises Unavailable."""
        try:
            return await asyncio.to_thread(self._in_thread, statement, parameters)
        except sqlite3.Error as fault:
            raise Unavailable(f"SQLite could not read: {fault}") from fault

    def close(self) -> None:
        """Close the file."""
        self._closed = True
        # An open cursor keeps the file open behind a closed connection.
        self._cursor.close()
        self._connection.close()

    def _in_thread(self, statement: str, parameters: Sequence[Any]) -> list[Row]:
        connection = sqlite_file.connect_to_read(self._path, wait=True)
        connection.text_factory = tolerant
        try:
            rows: list[Row] = connection.execute(statement, parameters).fetchall()
        finally:
            connection.close()
        return rows


class HotReader(SqlReader):
    """Reader of units. `get` and quick queries run on the event loop, all others in threads."""

    def __init__(self, tables: Tables, ask: Ask, reading: Reading, met: Met) -> None:
        super().__init__(tables, ask, met)
        self._reading = reading

    async def _row(self, mapped: TableMap[Any], record_id: str) -> Row | None:
        text = self.tables.statements(mapped).get
        rows = self._reading.at_once(text, (record_id,))
        if rows is None:
            rows = await self._reading.patiently(text, (record_id,))
        return rows[0] if rows else None

    async def _rows(self, mapped: TableMap[Any], asked: Query) -> Sequence[Row]:
        # In a thread, every row costs a handover of the interpreter lock, for which both threads wait in turn.
        if not asked.quick:
            return await super()._rows(mapped, asked)
        return await self._reading.all(*self.tables.found(mapped, asked))
