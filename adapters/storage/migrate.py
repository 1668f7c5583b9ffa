"""Brings the schema up, and says where it stands.

Whether anything is to be done is found by one plain SELECT; only when there is, Alembic is imported, which takes half
a second. Two processes that migrate one database at once are safe: each takes a lock first (SQLite: BEGIN IMMEDIATE;
Postgres: an advisory lock), and Alembic looks at the version only under it, so the second finds nothing to do.
"""

import asyncio
import logging
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.pool import NullPool

from ...ports.faults import NotConfigured, Unavailable
from . import sqlite_file
from .schema import metadata

_MIGRATIONS = Path(__file__).parent / "migrations"
_ADVISORY_LOCK = 0x63616D62697374
"""`cambist` in ASCII: the number that all cambist processes lock while they migrate."""
_LOCK_SECONDS = 60
_VERSION = "SELECT version_num FROM alembic_version"
_SAY_BESIDE = "COMMENT ON TABLE alembic_version IS 'beside {}'"
_BESIDE = "SELECT obj_description(to_regclass('alembic_version'), 'pg_class')"

BESIDE = "0015"
"""The oldest revision whose programs may run beside this one, on this one's schema. A migration raises it to its own
number where it takes from older programs what they need (a column or table goes, a new column may not be null), or
where they would do harm. Postgres' schema itself says it, so that older programs, too, know it of newer schemas."""

log = logging.getLogger("cambist.storage")


class SchemaMismatch(NotConfigured):
    """The database's schema is not the one that this program works with."""


def head() -> str:
    """The revision that this program needs, read off the names of the revision files."""
    return max(path.name for path in (_MIGRATIONS / "versions").glob("[0-9]*.py")).partition("_")[0]


def require_head(found: str | None, beside: str | None = None) -> None:
    """Raises SchemaMismatch, with what to do, when a database at revision `found` does not fit this program. On a newer
    schema it may run if that says so: it is for programs from revision `beside` on."""
    if found is None:
        raise SchemaMismatch("the database has no schema yet: run `cambist migrate`")
    if found < head():
        raise SchemaMismatch(f"the schema is at {found}, this program needs {head()}: run `cambist migrate`")
    if found > head() and beside is not None and beside <= head():
        log.warning("the schema is at %s, this program knows it up to %s: it is to be updated soon", found, head())
        return
    _refuse_newer(found)


def _refuse_newer(found: str | None) -> None:
    if found is not None and found > head():
        raise SchemaMismatch(
            f"the schema is at {found}, but this program knows only up to {head()}: update the program"
        )


async def current(url: str) -> str | None:
    """The revision of the database at `url` (`sqlite:///path` or `postgresql://…`); None: never migrated, or no file.

    Raises NotConfigured for a URL of another kind.
    """
    path = _sqlite_path(url)
    if path is not None:
        return await asyncio.to_thread(sqlite_current, path)
    import asyncpg  # here: SQLite alone needs no Postgres driver

    connection = await asyncpg.connect(url)
    try:
        return await postgres_current(connection)
    finally:
        await connection.close()


async def migrate(url: str) -> str:
    """Bring the database at `url` to `head()`, all of it or nothing, and return that.

    Raises SchemaMismatch when the schema is newer than this program, NotConfigured for a URL of another kind,
    Unavailable when the database cannot be opened or refuses.
    """
    path = _sqlite_path(url)
    try:
        if path is not None:
            await asyncio.to_thread(migrate_sqlite, path)
        else:
            await _bring_up_postgres(url)
    except (sqlite3.Error, exc.DBAPIError, OSError) as fault:
        raise Unavailable(f"the database cannot be migrated: {fault}") from fault
    return head()


async def _bring_up_postgres(url: str) -> None:
    import asyncpg  # here: SQLite alone needs no Postgres driver

    try:
        found = await current(url)
        _refuse_newer(found)
        if found != head():
            await _migrate_postgres(url)
    except (asyncpg.PostgresError, asyncpg.InterfaceError) as fault:
        raise Unavailable(f"the database cannot be migrated: {fault}") from fault


def _sqlite_path(url: str) -> Path | None:
    """Where a SQLite URL points; None for a Postgres URL."""
    scheme, _, rest = url.partition("://")
    if scheme == "sqlite" and rest.startswith("/") and len(rest) > 1:
        return Path(rest[1:])
    if scheme in ("postgresql", "postgres"):
        return None
    raise NotConfigured(f"a database URL begins with sqlite:/// or postgresql://, not with {scheme}://")


def sqlite_current(path: Path) -> str | None:
    """The revision of a SQLite file; None when it was never migrated, or is not there."""
    if not path.exists():
        return None
    with closing(sqlite_file.connect_to_read(path, wait=True)) as connection:
        try:
            row = connection.execute(_VERSION).fetchone()
        except sqlite3.OperationalError as fault:
            if "no such table" not in str(fault):
                raise
            return None
    return row[0] if row else None


def migrate_sqlite(path: Path) -> None:
    """Bring a SQLite file to `head()`, making it first where there is none. Blocks."""
    found = sqlite_current(path)
    _refuse_newer(found)
    if found == head():
        return
    sqlite_file.make(path)

    def connect() -> sqlite3.Connection:
        connection = sqlite_file.connect(path)
        # A table that is altered is copied and dropped; its references must not follow it.
        connection.execute("PRAGMA foreign_keys=OFF")
        connection.execute(f"PRAGMA busy_timeout={_LOCK_SECONDS * 1000}")
        return connection

    engine = sa.create_engine("sqlite+pysqlite://", creator=connect, poolclass=NullPool)
    with engine.connect() as connection:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        _upgrade(connection)
        connection.commit()


async def postgres_current(connection: Any) -> str | None:
    """The revision that an asyncpg connection finds; None when the database was never migrated."""
    if await connection.fetchval("SELECT to_regclass('alembic_version')") is None:
        return None
    found: str | None = await connection.fetchval(_VERSION)
    return found


async def postgres_beside(connection: Any) -> str | None:
    """The oldest revision whose programs may run on this schema, as it says itself; None: it does not say."""
    said: str | None = await connection.fetchval(_BESIDE)
    return said.removeprefix("beside ") if said is not None and said.startswith("beside ") else None


async def _migrate_postgres(url: str) -> None:
    import asyncpg  # here: SQLite alone needs no Postgres driver
    from sqlalchemy.ext.asyncio import create_async_engine

    async def connect() -> Any:
        return await asyncpg.connect(url)

    engine = create_async_engine("postgresql+asyncpg://", async_creator=connect, poolclass=NullPool)
    async with engine.connect() as connection:
        await connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{_LOCK_SECONDS}s'")
        await connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_ADVISORY_LOCK)))
        await connection.run_sync(_upgrade)
        await connection.exec_driver_sql(_SAY_BESIDE.format(BESIDE))
        await connection.commit()
    await engine.dispose()


def _upgrade(connection: sa.Connection) -> None:
    from alembic import command  # here: half a second, and rarely needed
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    config.attributes["metadata"] = metadata()
    command.upgrade(config, "head")
