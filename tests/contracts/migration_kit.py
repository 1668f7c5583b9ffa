"""Kit of the migration tests: run synchronous work or all migration steps on a database of either kind."""

from collections.abc import Callable
from typing import TypeVar

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import create_async_engine

from cambist.adapters.storage.sql.revisions import take_steps

T = TypeVar("T")


async def stepped(url: str) -> str:
    """Bring a new database to head by the migration steps, as an old database would be. Returns its URL."""
    await done_on(url, take_steps)
    return url


async def done_on(url: str, work: Callable[[sa.Connection], T]) -> T:
    """Do the work on a connection to the database, in one transaction."""
    if url.startswith("postgres"):
        engine = create_async_engine(url.replace("postgresql://", "postgresql+asyncpg://"))
        async with engine.begin() as opened:
            found = await opened.run_sync(work)
        await engine.dispose()
        return found
    plain = sa.create_engine(url)
    with plain.begin() as connection:
        found = work(connection)
    plain.dispose()
    return found
