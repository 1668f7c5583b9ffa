"""Fixtures of all tests."""

import asyncio
import gc
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from cambist.adapters.storage.migrate import migrate
from tests.houses import TestHouse, open_test_house
from tests.servers import database, postgres_server

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


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The database of a house, once on each storage, brought up and empty. Not async, because a schema is brought up in
    an event loop of its own."""
    if request.param == "postgres":
        with database(request.getfixturevalue("server")) as empty:
            asyncio.run(migrate(empty))
            yield empty
    elif request.param == "sqlite":
        path = f"sqlite:///{tmp_path / 'house.db'}"
        asyncio.run(migrate(path))
        yield path
    else:
        yield "memory://"
