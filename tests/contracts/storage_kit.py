"""Databases with the tables of the storage contract. The shared tests are shipped with the contract
(cambist.frontends.conformance)."""

from pathlib import Path

import asyncpg
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import create_async_engine

from cambist.adapters.storage.migrate import migrate
from cambist.adapters.storage.sql.schema import metadata
from cambist.frontends.conformance.storage.kit import *  # noqa: F403 - all of it
from cambist.frontends.conformance.storage.kit import KIT_CATALOGUE


async def prepare_postgres(url: str) -> None:
    """Make the schema and the tables of the kit in an empty database."""
    await migrate(url)
    engine = create_async_engine(url.replace("postgresql://", "postgresql+asyncpg://"))
    async with engine.begin() as making:
        await making.run_sync(metadata(KIT_CATALOGUE).create_all)
    await engine.dispose()
    connection = await asyncpg.connect(url)
    # Postgres searches for a deadlock only after a second of waiting, and some tests cause one.
    await connection.execute(f"ALTER DATABASE {url.rpartition('/')[2]} SET deadlock_timeout = '50ms'")
    await connection.close()


async def prepare_sqlite(path: Path) -> None:
    """Make a file with the schema and the tables of the kit."""
    await migrate(f"sqlite:///{path}")
    engine = sa.create_engine(f"sqlite:///{path}")
    metadata(KIT_CATALOGUE).create_all(engine)
    engine.dispose()
