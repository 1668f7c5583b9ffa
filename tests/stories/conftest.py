"""Installations for stories, on SQLite and on Postgres."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers import database
from tests.stories.browsers import browser
from tests.stories.processes import Installation, installation

__all__ = ["browser"]


@pytest.fixture
def postgres_database(server: str, postgres_template: str) -> Iterator[str]:
    """A database at head and empty."""
    with database(server, postgres_template) as url:
        yield url


@pytest.fixture
def sqlite_location(tmp_path: Path) -> Iterator[Installation]:
    """Return a default installation on SQLite."""
    with installation(tmp_path) as made:
        yield made


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Installation]:
    """An installation on each database."""
    if request.param == "sqlite":
        with installation(tmp_path) as made:
            yield made
    else:
        with installation(tmp_path, database_url=request.getfixturevalue("postgres_database")) as made:
            yield made
