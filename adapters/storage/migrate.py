"""Migration of a schema, and its present revision, by the URL of a database.

One plain SELECT finds out whether there is anything to do. A new database is created at once. Only an older one
needs Alembic, whose import takes half a second.
"""

import asyncio
import sqlite3
from pathlib import Path

from sqlalchemy import exc

from ...ports.database_urls import is_postgres_url, sqlite_path
from ...ports.faults import NotConfigured, Unavailable
from .postgres.migrate import migrate_postgres, postgres_current
from .sql.revisions import head
from .sqlite.migrate import migrate_sqlite, sqlite_current


async def current(url: str) -> str | None:
    """Return the revision of the database at `url` (`sqlite:///path` or `postgresql://…`); None if it was never
    migrated or has no file.

    Raises NotConfigured for a URL of another kind.
    """
    path = _sqlite_path(url)
    if path is not None:
        return await asyncio.to_thread(sqlite_current, path)
    from ..postgres_sessions import asking  # here: SQLite alone needs no Postgres driver

    async with asking(url) as connection:
        return await postgres_current(connection)


async def migrate(url: str) -> str:
    """Migrate the database at `url` to `head()` atomically, and return that revision.

    Raises SchemaMismatch when the schema is newer than this program, NotConfigured for a URL of another kind,
    Unavailable when the database cannot be opened or refuses.
    """
    path = _sqlite_path(url)
    try:
        if path is not None:
            await asyncio.to_thread(migrate_sqlite, path)
        else:
            await migrate_postgres(url)
    except (sqlite3.Error, exc.DBAPIError, OSError) as fault:
        raise Unavailable(f"the database cannot be migrated: {fault}") from fault
    return head()


def _sqlite_path(url: str) -> Path | None:
    """Return the path of a SQLite URL; None for a Postgres URL."""
    path = sqlite_path(url)
    if path is None and not is_postgres_url(url):
        scheme = url.partition("://")[0]
        raise NotConfigured(f"a database URL begins with sqlite:/// or postgresql://, not with {scheme}://")
    return path
