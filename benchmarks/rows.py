"""Rows in bulk: millions of them lie in a database within seconds."""

import sqlite3
from collections.abc import Sequence
from typing import Any

import asyncpg

from cambist.adapters.storage.table.table_map import TableMap


class SqliteRows:
    """Writes rows of the catalogue's tables into a file."""

    def __init__(self, url: str) -> None:
        self._connection = sqlite3.connect(url.removeprefix("sqlite:///"))

    async def write(self, kept: TableMap[Any], rows: Sequence[Sequence[Any]]) -> None:
        marks = ", ".join("?" * len(kept.codec.names))
        with self._connection:
            self._connection.executemany(f"INSERT INTO {kept.name} VALUES ({marks})", rows)

    async def close(self) -> None:
        self._connection.close()


class PostgresRows:
    """Writes rows into a server, which has looked at them when they are all there, as it would have by and by."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def write(self, kept: TableMap[Any], rows: Sequence[Sequence[Any]]) -> None:
        await self._connection.copy_records_to_table(kept.name, records=rows, columns=kept.codec.names)

    async def close(self) -> None:
        await self._connection.execute("VACUUM ANALYZE", timeout=600)
        await self._connection.close()


async def rows_into(url: str) -> SqliteRows | PostgresRows:
    """What writes into the database at `url`."""
    return SqliteRows(url) if url.startswith("sqlite") else PostgresRows(await asyncpg.connect(url))
