"""Schema of a Postgres database: read its revision and migrate it.

Two processes may migrate at once: each takes an advisory lock before Alembic reads the version, so the second finds
nothing to do.
"""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.pool import NullPool

from ....ports.faults import Unavailable
from ..sql import revisions

_ADVISORY_LOCK = 0x63616D62697374
"""`cambist` in ASCII: the number that all cambist processes lock while they migrate."""
_SAY_BESIDE = "COMMENT ON TABLE alembic_version IS 'beside {}'"
_BESIDE = "SELECT obj_description(to_regclass('alembic_version'), 'pg_class')"


async def postgres_current(connection: Any) -> str | None:
    """Return the revision of the database; None if it was never migrated."""
    if await connection.fetchval("SELECT to_regclass('alembic_version')") is None:
        return None
    found: str | None = await connection.fetchval(revisions.VERSION)
    return found


async def postgres_beside(connection: Any) -> str | None:
    """Return the oldest revision whose programs may run on this schema, as the schema records it, or None."""
    said: str | None = await connection.fetchval(_BESIDE)
    return said.removeprefix("beside ") if said is not None and said.startswith("beside ") else None


async def migrate_postgres(url: str) -> None:
    """Migrate a Postgres database to the head. Raises: SchemaMismatch, Unavailable."""
    import asyncpg  # here: SQLite alone needs no Postgres driver

    from ...postgres_sessions import asking

    try:
        async with asking(url) as connection:
            found = await postgres_current(connection)
            size: int = await connection.fetchval("SELECT pg_database_size(current_database())")
        revisions.refuse_newer(found)
        if found != revisions.head():
            if found is not None:
                revisions.say_begins(found, size)
            await _migrate_postgres(url)
    except (asyncpg.PostgresError, asyncpg.InterfaceError) as fault:
        raise Unavailable(f"the database cannot be migrated: {fault}") from fault


async def _migrate_postgres(url: str) -> None:
    from sqlalchemy.ext.asyncio import create_async_engine

    from ...postgres_sessions import connect

    async def begin() -> Any:
        return await connect(url)

    engine = create_async_engine("postgresql+asyncpg://", async_creator=begin, poolclass=NullPool)
    async with engine.connect() as connection:
        await connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{revisions.LOCK_SECONDS}s'")
        await connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_ADVISORY_LOCK)))
        await connection.run_sync(revisions.upgrade)
        await connection.exec_driver_sql(_SAY_BESIDE.format(revisions.BESIDE))
        await connection.commit()
    await engine.dispose()
