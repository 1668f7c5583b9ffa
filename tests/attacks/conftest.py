"""An installation whose database an attacker may write. The checks against it lie above the storage."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.apps import TestApp, open_test_app
from tests.attacks.kit import KEYS, Attacker
from tests.servers import service_url


@pytest.fixture
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database with the schema. Not async, because it is made in event loops of its own."""
    return service_url(request, "sqlite", tmp_path)


@pytest.fixture
async def attacked(database_url: str, tmp_path: Path) -> AsyncIterator[TestApp]:
    """An app on this database. Its balances need not agree at the end, because the attacker changes rows."""
    async with open_test_app(database_url=database_url, vault=KEYS, data_dir=tmp_path) as app:
        app.made_up = True
        yield app


@pytest.fixture
def attacker(attacked: TestApp, database_url: str) -> Attacker:
    """An attacker who writes to the app's database."""
    return Attacker(database_url, attacked.ports)
