"""Lookup of an Idempotency-Key by the storage, among few and many keys. The floor is a bare prepared statement on the
same database.

CAMBIST_BENCH_KEYS sets the numbers of stored keys (default `10000,100000`; `10000,1000000` for the figure in the docs).
One round is a hundred consecutive lookups of random keys.
"""

import asyncio
import os
import random
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import asyncpg
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.rows import rows_into
from benchmarks.turns import in_turns
from cambist.adapters.clock import SystemClock
from cambist.adapters.storage.memory.memory import MemoryStorage
from cambist.adapters.storage.migrate import migrate
from cambist.adapters.storage.postgres.postgres import PostgresStorage
from cambist.adapters.storage.sqlite.sqlite import SqliteStorage
from cambist.adapters.storage.table.catalogue import CATALOGUE
from cambist.adapters.storage.table.table_map import keep
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.accounts.idempotency import IdempotencyKey, key_id
from cambist.ports.storage import Storage
from tests.servers import database, postgres_server

COUNTS = [int(count) for count in os.environ.get("CAMBIST_BENCH_KEYS", "10000,100000").split(",")]
LOOKUPS = 100
ROUNDS = 201
BATCH = 20_000
ACCOUNT = f"acc_{UUID(int=1)}"
MOMENT = datetime(2026, 1, 1, tzinfo=UTC)
COLUMNS = "id, kind, resource_id, created_at, version"

pytestmark = pytest.mark.benchmark(group="idempotency lookup: 100 keys", warmup=True, warmup_iterations=3)


def key(number: int) -> IdempotencyKey:
    """Build a key. The keys are spread over the index, as UUIDs are."""
    text = str(UUID(int=number * 0x9E3779B97F4A7C15F39CC0605CEDC835 % 2**128))
    return IdempotencyKey(
        id=key_id(ACCOUNT, Mode.LIVE, text), kind="payment", resource_id=f"pay_{number}", created_at=MOMENT
    )


def wanted(stored: int) -> list[str]:
    """Choose the keys to look up."""
    chance = random.Random(1)
    return [key(chance.randrange(stored)).id for _ in range(LOOKUPS)]


async def fill(url: str, stored: int) -> None:
    await migrate(url)
    kept = keep(CATALOGUE)[IdempotencyKey]
    rows = await rows_into(url)
    for start in range(0, stored, BATCH):
        numbers = range(start, min(start + BATCH, stored))
        await rows.write(kept, [kept.codec.encode(key(number)) for number in numbers])
    await rows.close()


async def look_up(storage: Storage, keys: list[str]) -> None:
    for each in keys:
        async with storage.unit() as unit:
            assert await unit[IdempotencyKey].get(each) is not None


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as opened:
        yield opened


@pytest.fixture(scope="module", params=COUNTS)
def stored(request: pytest.FixtureRequest) -> int:
    count: int = request.param
    return count


@pytest.fixture(scope="module")
def file(stored: int, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bench") / "keys.db"
    asyncio.run(fill(f"sqlite:///{path}", stored))
    return path


@pytest.fixture(scope="module")
def server(stored: int) -> Iterator[str]:
    with postgres_server() as postgres, database(postgres) as url:
        asyncio.run(fill(url, stored))
        yield url


class TestSqlite:
    def test_floor_prepared_select(self, benchmark: BenchmarkFixture, file: Path, stored: int) -> None:
        connection, keys = sqlite3.connect(file), wanted(stored)
        statement = f"SELECT {COLUMNS} FROM idempotency_keys WHERE id = ?"

        def floor() -> None:
            for each in keys:
                assert connection.execute(statement, (each,)).fetchone() is not None

        benchmark(floor)
        connection.close()

    def test_storage(self, benchmark: BenchmarkFixture, runner: asyncio.Runner, file: Path, stored: int) -> None:
        storage, keys = runner.run(SqliteStorage.open(file, SystemClock())), wanted(stored)
        benchmark(lambda: runner.run(look_up(storage, keys)))
        runner.run(storage.close())


class TestPostgres:
    """Floor and storage alternate, because the fastest of many rounds is luck when two processes wake each other for
    every lookup."""

    def test_storage(self, benchmark: BenchmarkFixture, runner: asyncio.Runner, server: str, stored: int) -> None:
        storage, keys = runner.run(PostgresStorage.open(server)), wanted(stored)
        connection = runner.run(asyncpg.connect(server))
        statement = runner.run(connection.prepare(f"SELECT {COLUMNS} FROM idempotency_keys WHERE id = $1"))

        async def prepared_fetchrow() -> None:
            for each in keys:
                assert await statement.fetchrow(each) is not None

        in_turns(
            benchmark,
            lambda: runner.run(look_up(storage, keys)),
            lambda: runner.run(prepared_fetchrow()),
            rounds=ROUNDS,
        )
        runner.run(connection.close())
        runner.run(storage.close())


def test_memory_storage(benchmark: BenchmarkFixture, runner: asyncio.Runner, stored: int) -> None:
    async def filled() -> MemoryStorage:
        storage = MemoryStorage(SystemClock())
        for start in range(0, stored, BATCH):
            async with storage.unit() as unit:
                for number in range(start, min(start + BATCH, stored)):
                    unit[IdempotencyKey].add(key(number))
                await unit.commit()
        return storage

    storage, keys = runner.run(filled()), wanted(stored)
    benchmark(lambda: runner.run(look_up(storage, keys)))
