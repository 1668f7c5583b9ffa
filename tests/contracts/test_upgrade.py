"""`cambist migrate` beside processes that run (docs/operations.md "Upgrades")."""

from collections.abc import AsyncIterator

import asyncpg
import pytest

from cambist.adapters.registry.postgres import PostgresRegistry
from cambist.adapters.storage.migrate import current, migrate
from cambist.adapters.storage.sql.revisions import head
from cambist.frontends.operations import upgrade as upgrades
from cambist.frontends.operations.upgrade import OlderRuns, upgrade
from cambist.frontends.settings.settings import Settings
from cambist.ports.registry import Role


@pytest.fixture
async def behind(empty_postgres: str) -> str:
    """A database whose schema says that it is one step behind. It is not, so nothing is really done."""
    await migrate(empty_postgres)
    return empty_postgres


@pytest.fixture
async def old(behind: str) -> AsyncIterator[PostgresRegistry]:
    """A worker that is made for an older schema."""
    registry = PostgresRegistry(behind, revision="0000")
    await registry.enter(Role.WORKING, alone=False)
    yield registry
    await registry.close()


async def test_processes_of_before_that_may_go_on_are_named(behind: str, old: PostgresRegistry) -> None:
    new = PostgresRegistry(behind, revision=head())
    await new.enter(Role.COUNTING, alone=False)
    done = await upgrade(Settings(database_url=behind))
    await new.close()
    assert done.revision == head()
    [named] = done.older
    assert " for schema 0000" in named


async def test_nothing_is_done_while_one_runs_that_could_not_go_on(
    behind: str, old: PostgresRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upgrades, "oldest_beside", lambda: "0001")
    server = await asyncpg.connect(behind)
    await server.execute("UPDATE alembic_version SET version_num = '0000'")
    await server.close()
    with pytest.raises(OlderRuns, match=r"stop these first.* for schema 0000"):
        await upgrade(Settings(database_url=behind))
    assert await current(behind) == "0000"
