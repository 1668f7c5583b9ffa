"""An installation whose database somebody else may write, on SQLite and on Postgres."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.attacks.kit import KEYS, Attacker
from tests.houses import TestHouse, open_test_house
from tests.servers import house_url


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database with the schema. Not async, because it is made in event loops of its own."""
    return house_url(request, request.param, tmp_path)


@pytest.fixture
async def attacked(database_url: str, tmp_path: Path) -> AsyncIterator[TestHouse]:
    """An app on this database. Its balances need not agree at the end, because the attacker changes rows."""
    async with open_test_house(database_url=database_url, vault=KEYS, data_dir=tmp_path) as house:
        house.made_up = True
        yield house


@pytest.fixture
def attacker(attacked: TestHouse, database_url: str) -> Attacker:
    """An attacker who writes to the app's database."""
    return Attacker(database_url, attacked.ports)
