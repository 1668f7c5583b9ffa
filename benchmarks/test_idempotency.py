"""Looking up an Idempotency-Key: the storage's own way beside a bare prepared SELECT on the same file.

The number of stored keys is CAMBIST_BENCH_KEYS (default 20 000). One round is a hundred lookups of random keys.
"""

import asyncio
import os
import random
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from cambist.adapters.clock import SystemClock
from cambist.adapters.storage.memory import MemoryStorage
from cambist.adapters.storage.sqlite import SqliteStorage
from cambist.core.domain.accounts import Mode
from cambist.core.domain.idempotency import IdempotencyKey, key_id
from cambist.ports.storage import Storage

KEYS = int(os.environ.get("CAMBIST_BENCH_KEYS", "20000"))
LOOKUPS = 100
ACCOUNT = f"acc_{UUID(int=1)}"
MOMENT = datetime(2026, 1, 1, tzinfo=UTC)

pytestmark = pytest.mark.benchmark(group="idempotency lookup")


def record_id(number: int) -> str:
    return key_id(ACCOUNT, Mode.LIVE, str(UUID(int=number * 0x9E3779B97F4A7C15F39CC0605CEDC835 % 2**128)))


async def fill(storage: Storage) -> None:
    for start in range(0, KEYS, 1000):
        async with storage.unit() as unit:
            for number in range(start, min(start + 1000, KEYS)):
                unit[IdempotencyKey].add(
                    IdempotencyKey(id=record_id(number), kind="payment", resource_id=f"pay_{number}", created_at=MOMENT)
                )
            await unit.commit()


async def look_up(storage: Storage, wanted: list[str]) -> None:
    for record in wanted:
        async with storage.unit() as unit:
            assert await unit[IdempotencyKey].get(record) is not None


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    running = asyncio.new_event_loop()
    yield running
    running.close()


@pytest.fixture(scope="module")
def database(loop: asyncio.AbstractEventLoop, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bench") / "keys.db"

    async def make() -> None:
        storage = await SqliteStorage.open(path, SystemClock())
        await fill(storage)
        await storage.close()

    loop.run_until_complete(make())
    return path


@pytest.fixture
def wanted() -> list[str]:
    chance = random.Random(1)
    return [record_id(chance.randrange(KEYS)) for _ in range(LOOKUPS)]


def test_floor_prepared_select(benchmark: BenchmarkFixture, database: Path, wanted: list[str]) -> None:
    connection = sqlite3.connect(database)
    statement = "SELECT id, kind, resource_id, created_at, version FROM idempotency_keys WHERE id = ?"

    def floor() -> None:
        for record in wanted:
            assert connection.execute(statement, (record,)).fetchone() is not None

    benchmark(floor)
    connection.close()


def test_sqlite_storage(
    benchmark: BenchmarkFixture, loop: asyncio.AbstractEventLoop, database: Path, wanted: list[str]
) -> None:
    storage = loop.run_until_complete(SqliteStorage.open(database, SystemClock()))
    benchmark(lambda: loop.run_until_complete(look_up(storage, wanted)))
    loop.run_until_complete(storage.close())


def test_memory_storage(benchmark: BenchmarkFixture, loop: asyncio.AbstractEventLoop, wanted: list[str]) -> None:
    storage = MemoryStorage(SystemClock())
    loop.run_until_complete(fill(storage))
    benchmark(lambda: loop.run_until_complete(look_up(storage, wanted)))
