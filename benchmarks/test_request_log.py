"""Writing the request log on SQLite: 1000 merchants with one request each, and ten merchants with a hundred each. The
floor is one sqlite3 connection that writes the same prepared rows in as many transactions.

`us_per_request`: microseconds of CPU that a request costs after its answer. `beside_floor`: ratio of CPU times of the
fastest rounds, because waiting for the disk matters little for a write in the background.
"""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from time import process_time
from typing import Any
from uuid import UUID

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.turns import in_turns
from cambist.adapters.storage.migrate import migrate
from cambist.adapters.storage.table.catalogue import CATALOGUE
from cambist.adapters.storage.table.table_map import keep
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.accounts.request_log import FirstBatch, RequestEntry
from cambist.core.domain.days import LONG_AGO
from cambist.core.usecases.accounts.request_log import Noted, RequestLog
from cambist.frontends.app.compose import open_app
from cambist.frontends.settings.settings import Settings
from cambist.ports.bundle import Ports

REQUESTS = 1000
TOGETHER = 250
"""Rows per transaction, as in the log."""
HEAR = "/api/v1/payments/{payment_id}"

pytestmark = pytest.mark.benchmark(group=f"log of {REQUESTS} requests")


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    with asyncio.Runner() as runner:
        yield runner.get_loop()


@pytest.fixture
def ports(tmp_path: Path, loop: asyncio.AbstractEventLoop) -> Iterator[Ports]:
    opened = open_app(Settings(database_url=f"sqlite:///{tmp_path / 'app.db'}", data_dir=tmp_path))
    yield loop.run_until_complete(opened.__aenter__()).ports
    loop.run_until_complete(opened.__aexit__(None, None, None))


def noted(ports: Ports, merchants: int, number: int) -> Noted:
    now = ports.clock.monotonic()
    object_id = f"pay_{UUID(int=number)}"
    account_id = f"acc_{UUID(int=number % merchants)}"
    return Noted(account_id, Mode.LIVE, "svc_live_1", "GET", HEAR, (object_id,), 200, None, now, now, object_id)


def rows(merchants: int) -> list[list[Any]]:
    """Build the rows of a log that needs only one row per merchant."""
    codec = keep(CATALOGUE)[FirstBatch].codec
    entry = RequestEntry(
        at=LONG_AGO,
        method="GET",
        path=HEAR,
        object_id=f"pay_{UUID(int=1)}",
        status=200,
        code=None,
        key_id="svc_live_1",
        took_ms=1,
        request_id=f"pay_{UUID(int=1)}",
    )
    return [
        codec.encode(
            FirstBatch(
                id=f"acc_{UUID(int=number)}:live:2026-11-23T12:00:00.000000:abcd",
                account_id=f"acc_{UUID(int=number)}",
                mode=Mode.LIVE,
                entries=(entry,) * (REQUESTS // merchants),
                hour="2026-11-23T12",
                status=200,
                count=REQUESTS // merchants,
            )
        )
        for number in range(merchants)
    ]


@pytest.mark.parametrize("merchants", [REQUESTS, 10])
def test_written(
    benchmark: BenchmarkFixture, ports: Ports, loop: asyncio.AbstractEventLoop, tmp_path: Path, merchants: int
) -> None:
    spent: list[float] = []
    bare: list[float] = []

    def filled() -> tuple[RequestLog]:
        log = RequestLog()
        for number in range(REQUESTS):
            log.note(noted(ports, merchants, number))
        return (log,)

    def ours(log: RequestLog) -> None:
        begun = process_time()
        loop.run_until_complete(log.flush(ports))
        spent.append(process_time() - begun)

    path, kept, made = tmp_path / "floor.db", keep(CATALOGUE)[FirstBatch], rows(merchants)
    asyncio.run(migrate(f"sqlite:///{path}"))
    insert = (
        f"INSERT INTO {kept.name} ({', '.join(kept.codec.names)}) VALUES ({', '.join('?' * len(kept.codec.names))})"
    )
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA synchronous=NORMAL")

        def floor() -> None:
            begun = process_time()
            for first in range(0, len(made), TOGETHER):
                with connection:
                    connection.executemany(insert, made[first : first + TOGETHER])
            bare.append(process_time() - begun)

        def emptied() -> tuple[()]:
            with connection:
                connection.execute(f"DELETE FROM {kept.name}")
            return ()

        in_turns(benchmark, ours, floor, rounds=7, prepare=filled, prepare_floor=emptied)
    benchmark.extra_info["beside_floor"] = round(min(spent) / min(bare), 2)
    benchmark.extra_info["us_per_request"] = round(min(spent) / REQUESTS * 1e6, 2)
