"""Commit of a creation's records (payment, idempotency key, event, job) on SQLite at full durability, 32 units at once.

The floor writes the same prepared rows with one sqlite3 transaction each on one connection, which is what a connection
per request would achieve. A round is 320 units.
"""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.turns import in_turns
from cambist.adapters.clock import SystemClock
from cambist.adapters.storage.migrate import migrate
from cambist.adapters.storage.sqlite.sqlite import SqliteStorage
from cambist.adapters.storage.table.catalogue import CATALOGUE
from cambist.adapters.storage.table.table_map import keep
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.accounts.idempotency import IdempotencyKey, key_id
from cambist.core.domain.money import Rub
from cambist.core.domain.payments.payments import Payment, PaymentStatus
from cambist.core.domain.webhooks.events import Event, EventType
from cambist.ports.jobs import Job
from cambist.ports.storage import Storage

AT_ONCE = 32
UNITS = 10 * AT_ONCE
ACCOUNT = f"acc_{UUID(int=1)}"
MOMENT = datetime(2026, 1, 1, tzinfo=UTC)
KEEPING = keep(CATALOGUE)

pytestmark = pytest.mark.benchmark(group=f"commit of payment, key, event, job: {UNITS} units, {AT_ONCE} at once")

Records = tuple[Payment, IdempotencyKey, Event, Job]
Row = tuple[str, tuple[Any, ...]]


def creation(number: int) -> Records:
    """Build the records of one request."""
    unique = UUID(int=0x0197 << 112 | 0x7 << 76 | 0b10 << 62 | number)
    payment = Payment(
        id=f"pay_{unique}",
        account_id=ACCOUNT,
        mode=Mode.TEST,
        shop_id=f"shop_{UUID(int=2)}",
        status=PaymentStatus.PENDING,
        amount=Rub(100_00),
        payment_method="sbp",
        created_at=MOMENT,
        expires_at=MOMENT + timedelta(minutes=15),
    )
    return (
        payment,
        IdempotencyKey(
            id=key_id(ACCOUNT, Mode.TEST, str(unique)), kind="payment", resource_id=payment.id, created_at=MOMENT
        ),
        Event(
            id=f"evt_{unique}",
            account_id=ACCOUNT,
            mode=Mode.TEST,
            type=EventType.PAYMENT_STATUS_CHANGED,
            object_id=payment.id,
            sequence=1,
            body=b"{}".ljust(600),
            created_at=MOMENT,
        ),
        Job(id=f"payment.watch:{payment.id}", kind="payment.watch", argument=payment.id, due=MOMENT, created_at=MOMENT),
    )


@pytest.fixture
def rounds() -> Iterator[list[Records]]:
    """Yield the records of each round. No record repeats."""
    numbers = count()
    return ([creation(next(numbers)) for _ in range(UNITS)] for _ in iter(int, 1))


def statements(records: Records) -> list[Row]:
    """Build the SQL statements of a request for sqlite3."""
    rows = []
    for record in records:
        kept = KEEPING[type(record)]
        marks = ", ".join("?" * len(kept.codec.names))
        rows.append((f"INSERT INTO {kept.name} VALUES ({marks})", tuple(kept.codec.encode(record))))
    return rows


def one_by_one(connection: sqlite3.Connection, requests: list[list[Row]]) -> None:
    """Floor: one transaction per request."""
    for request in requests:
        connection.execute("BEGIN IMMEDIATE")
        for statement, values in request:
            connection.execute(statement, values)
        connection.execute("COMMIT")


def test_units(benchmark: BenchmarkFixture, tmp_path: Path, rounds: Iterator[list[Records]]) -> None:
    paths = [tmp_path / name for name in ("ours.db", "floor.db")]
    for path in paths:
        asyncio.run(migrate(f"sqlite:///{path}"))
    with asyncio.Runner() as runner, closing(sqlite3.connect(paths[1], isolation_level=None)) as bare:
        bare.execute("PRAGMA synchronous=FULL")
        bare.execute("PRAGMA foreign_keys=ON")
        storage = runner.run(SqliteStorage.open(paths[0], SystemClock()))
        in_turns(
            benchmark,
            lambda requests: runner.run(commit_all(storage, requests)),
            lambda requests: one_by_one(bare, requests),
            rounds=10,
            prepare=lambda: (next(rounds),),
            prepare_floor=lambda: ([statements(records) for records in next(rounds)],),
        )
        runner.run(storage.close())


async def commit_all(storage: Storage, requests: list[Records]) -> None:
    """Commit each request in its own unit."""
    waiting = iter(requests)

    async def one_after_the_other() -> None:
        for payment, key, event, job in waiting:
            async with storage.unit() as unit:
                unit[Payment].add(payment)
                unit[IdempotencyKey].add(key)
                unit[Event].add(event)
                unit[Job].add(job)
                await unit.commit()

    await asyncio.gather(*(one_after_the_other() for _ in range(AT_ONCE)))
