"""Fixtures of all tests."""

import asyncio
import gc
import os
import shutil
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from cambist.adapters.storage.migrate import migrate
from cambist.adapters.storage.schema import metadata
from tests.houses import TestHouse, open_test_house
from tests.servers import database, empty, postgres_server

# Tests start a hundred processes of the program: each would compile all of it where bytecode may not be kept.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# Houses are made and dropped by the thousand; to look for cycles at every 700 objects took a sixth of the time.
gc.set_threshold(100_000, 50, 100)


@pytest.fixture
async def house() -> AsyncIterator[TestHouse]:
    """A house with one merchant, in memory, under a virtual clock."""
    async with open_test_house() as opened:
        yield opened


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """The URL of a Postgres server."""
    with postgres_server() as url:
        yield url


@pytest.fixture(scope="session")
def migrated_database(server: str) -> Iterator[str]:
    """The URL of a Postgres database at head, for one test after the other; each empties it first."""
    with database(server) as made:
        asyncio.run(migrate(made))
        yield made


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file at head and empty, to be copied."""
    path = tmp_path_factory.mktemp("migrated") / "house.db"
    asyncio.run(migrate(f"sqlite:///{path}"))
    return path


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The database of a house, once on each storage, at head and empty. Not async, because a schema is brought up in
    an event loop of its own."""
    if request.param == "postgres":
        shared: str = request.getfixturevalue("migrated_database")
        empty(shared, metadata().tables)
        yield shared
    elif request.param == "sqlite":
        path = tmp_path / "house.db"
        shutil.copy(request.getfixturevalue("migrated_file"), path)
        yield f"sqlite:///{path}"
    else:
        yield "memory://"
