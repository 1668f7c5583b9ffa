"""What tests of single migrations share: a database as it was before one, on each storage, and the steps to it."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest
import sqlalchemy as sa
from alembic.config import Config
from sqlalchemy.ext.asyncio import create_async_engine

from cambist.adapters.storage import migrate as migrations
from cambist.adapters.storage.sql.revisions import take_steps
from cambist.adapters.storage.sql.schema import metadata

T = TypeVar("T")


def steps_on(connection: sa.Connection) -> Config:
    """What alembic's commands need to work on an open connection."""
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent / "migrations"))
    config.attributes["metadata"] = metadata()
    config.attributes["connection"] = connection
    return config


@pytest.fixture(params=["sqlite", "postgres"])
def old_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'old.db'}"
    found: str = request.getfixturevalue("empty_postgres")
    return found


async def stepped(url: str) -> str:
    """Migrate a new database step by step, as one that is as old as the program was. Returns its URL."""
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
