"""What can be asked of a database before anything opens it: for whoever looks why it does not open."""

import asyncio
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from ...ports.faults import Unavailable
from . import sqlite_file
from .migrate import postgres_current, sqlite_current

_ANSWERS_WITHIN = 5
_ASKED = (
    "server_encoding",
    "fsync",
    "full_page_writes",
    "synchronous_commit",
    "max_connections",
    "transaction_read_only",
)


async def sqlite_facts(path: Path) -> tuple[str, str | None, Mapping[str, str]]:
    """The version of SQLite, the schema's revision, and how the file is set. Raises: Unavailable."""

    def ask() -> tuple[str, str | None, Mapping[str, str]]:
        if not path.exists():
            raise Unavailable(f"there is no file {path}")
        revision = sqlite_current(path)
        with closing(sqlite_file.connect_to_read(path, wait=True)) as connection:
            (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
        return sqlite3.sqlite_version, revision, {"journal_mode": str(mode)}

    try:
        return await asyncio.to_thread(ask)
    except (sqlite3.Error, OSError) as fault:
        raise Unavailable(f"{path} cannot be read: {fault}") from fault


async def postgres_facts(url: str) -> tuple[str, str | None, Mapping[str, str]]:
    """The server's version, the schema's revision, and how the server is set. Raises: Unavailable."""
    import asyncpg  # here: SQLite alone needs no Postgres driver

    try:
        connection = await asyncpg.connect(url, timeout=_ANSWERS_WITHIN, command_timeout=_ANSWERS_WITHIN)
        try:
            version: str = await connection.fetchval("SHOW server_version")
            revision = await postgres_current(connection)
            rows = await connection.fetch("SELECT name, setting FROM pg_settings WHERE name = ANY($1)", list(_ASKED))
            held = await connection.fetchval(
                "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
            )
            return version, revision, {**{row[0]: row[1] for row in rows}, "connections": str(held)}
        finally:
            await connection.close(timeout=_ANSWERS_WITHIN)
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError) as fault:
        raise Unavailable(f"Postgres did not answer: {type(fault).__name__}: {fault}") from fault
