"""Two cells as schemas of one Postgres database (docs/cells.md "Setting up"), also by the settings for Citus."""

import asyncio
import secrets
from collections.abc import Iterator
from contextlib import AsyncExitStack
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest

from cambist.adapters.ids import SeededIds
from cambist.adapters.registry.postgres import PostgresRegistry
from cambist.adapters.storage.migrate import migrate
from cambist.adapters.storage.postgres.postgres import PostgresStorage
from cambist.core.usecases.ledger.check import verify_ledger
from cambist.frontends.settings.settings import VaultKeys
from cambist.ports.registry import Role
from tests.apps import open_test_app
from tests.cell_kit import PEPPER, cell_of, move
from tests.servers import database


@pytest.fixture
def schemas(server: str) -> Iterator[list[str]]:
    """URLs of one database, for two roles with a schema each."""
    names = [f"cell_{secrets.token_hex(4)}" for _ in range(2)]
    with database(server) as url:
        parts = urlsplit(url)

        async def make(connection: asyncpg.Connection) -> None:
            for name in names:
                await connection.execute(f"CREATE ROLE {name} LOGIN PASSWORD '{name}'")
                await connection.execute(f"CREATE SCHEMA {name} AUTHORIZATION {name}")
                await connection.execute(f"ALTER ROLE {name} SET search_path = {name}")

        async def drop(connection: asyncpg.Connection) -> None:
            for name in names:
                await connection.execute(f"DROP OWNED BY {name}")
                await connection.execute(f"DROP ROLE {name}")

        asyncio.run(_as_owner(url, make))
        host = parts.netloc.rpartition("@")[2]
        yield [urlunsplit(parts._replace(netloc=f"{name}:{name}@{host}")) for name in names]
        asyncio.run(_as_owner(url, drop))


async def _as_owner(url: str, work: object) -> None:
    connection = await asyncpg.connect(url)
    try:
        await work(connection)  # type: ignore[operator]
    finally:
        await connection.close()


async def test_cells_in_schemas_of_one_database_serve_and_exchange_an_account(schemas: list[str]) -> None:
    async with AsyncExitStack() as stack:
        apps = []
        for number, url in enumerate(schemas, start=1):
            await migrate(url)
            registry = PostgresRegistry(url)
            stack.push_async_callback(registry.close)
            assert await registry.enter(Role.COUNTING, alone=True)
            vault = VaultKeys(keys={1: bytes([number]) * 32}, current=1, pepper=PEPPER)
            cell = open_test_app(
                cell=f"c{number}",
                database_url=url,
                vault=vault,
                ids=SeededIds(number),
                database_plans="custom",
                database_clock="apart",
            )
            apps.append(await stack.enter_async_context(cell))
        one, two = apps
        assert isinstance(cell_of(one, "c1").storage, PostgresStorage)
        paid = await one.created()
        await one.simulate(paid["id"], outcome="paid")
        await one.work(5)
        moved = await move(cell_of(one, "c1"), cell_of(two, "c2"), one.account.account_id)
        assert (moved.entries, moved.rows["Payment"]) == (1, 1)
        two.account, other = one.account, two.account
        assert (await two.get(f"/payments/{paid['id']}")).json()["status"] == "paid"
        for app in apps:
            report = await verify_ledger(app.ports)
            assert report.holds, report
        two.account = other
