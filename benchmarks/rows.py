"""Bulk writing of rows: millions within seconds."""

import sqlite3
from collections.abc import Sequence
from typing import Any

import asyncpg

from cambist.adapters.storage.table.table_map import TableMap


class SqliteRows:
    """Write rows of the catalogue's tables into a SQLite file."""

    def __init__(self, url: str) -> None:
        self._connection = sqlite3.connect(url.removeprefix("sqlite:///"))

    async def write(self, kept: TableMap[Any], rows: Sequence[Sequence[Any]]) -> None:
        marks = ", ".join("?" * len(kept.codec.names))
        with self._connection:
            self._connection.executemany(f"INSERT INTO {kept.name} VALUES ({marks})", rows)

    async def close(self) -> None:
        self._connection.close()


class PostgresRows:
    """Write rows into a Postgres server. At the end the tables are analysed, as the server would do by itself after a
    while."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def write(self, kept: TableMap[Any], rows: Sequence[Sequence[Any]]) -> None:
        await self._connection.copy_records_to_table(kept.name, records=rows, columns=kept.codec.names)

    async def close(self) -> None:
        await self._connection.execute("VACUUM ANALYZE", timeout=600)
        await self._connection.close()


async def rows_into(url: str) -> SqliteRows | PostgresRows:
    """Return the writer for the database at `url`."""
    return SqliteRows(url) if url.startswith("sqlite") else PostgresRows(await asyncpg.connect(url))
