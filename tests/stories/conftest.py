"""Installations for stories, on SQLite and on Postgres."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers import database, postgres_server
from tests.stories.processes import Installation, installation


@pytest.fixture(scope="session")
def story_postgres() -> Iterator[str]:
    """The URL of a Postgres server."""
    with postgres_server() as url:
        yield url


@pytest.fixture
def postgres_database(story_postgres: str) -> Iterator[str]:
    """A database without a schema."""
    with database(story_postgres) as url:
        yield url


@pytest.fixture
def sqlite_place(tmp_path: Path) -> Iterator[Installation]:
    """An installation on SQLite, as it is by default."""
    with installation(tmp_path) as made:
        yield made


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Installation]:
    """An installation on each database. On Postgres it still needs `migrate`."""
    if request.param == "sqlite":
        with installation(tmp_path) as made:
            yield made
    else:
        with installation(tmp_path, database_url=request.getfixturevalue("postgres_database")) as made:
            yield made
