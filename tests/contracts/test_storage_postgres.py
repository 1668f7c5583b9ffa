"""Behaviour of Postgres alone: a server with its own clock, broken connections, rows locked by others."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest
from sqlalchemy.dialects.postgresql import asyncpg as sqlalchemy_asyncpg

from cambist.adapters.storage.migrate import migrate
from cambist.adapters.storage.postgres.postgres import PostgresStorage
from cambist.adapters.storage.sql.tables import Tables
from cambist.adapters.storage.table.catalogue import CATALOGUE
from cambist.adapters.storage.table.criteria import query
from cambist.adapters.storage.table.table_map import keep
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.accounts.idempotency import IdempotencyKey
from cambist.core.domain.payments.payments import Payment
from cambist.core.domain.webhooks.events import Delivery, DeliveryStatus
from cambist.core.domain.webhooks.feed import FeedEntry
from cambist.ports.faults import NotConfigured, Unavailable
from cambist.ports.jobs import Job
from tests.contracts.storage_kit import KIT_CATALOGUE, StorageLocation, job, key, must_read, payment, put, read
from tests.servers import _execute, _free_port, _run, database


async def test_database_clock_judges_due_times_and_leases(server_location: StorageLocation) -> None:
    """A machine with a wrong clock neither stalls nor doubles work (ARCHITECTURE.md "Units and jobs")."""
    storage = await PostgresStorage.open(server_location.where, catalogue=KIT_CATALOGUE)
    server = await asyncpg.connect(server_location.where)
    before: datetime = await server.fetchval("SELECT clock_timestamp()")
    stored_now = await storage.now()
    far = (stored_now - datetime(2026, 1, 1, tzinfo=UTC)).total_seconds()
    await put(storage, job("past", far - 5), job("future", far + 3600))
    (taken,) = await storage.claim(5, 30)
    after: datetime = await server.fetchval("SELECT clock_timestamp()")
    assert before <= stored_now <= after
    assert taken.id == "past"
    assert taken.leased_until is not None
    assert before <= taken.leased_until - timedelta(seconds=30) <= after
    assert await storage.next_due() == (await must_read(storage, Job, "future")).due
    assert await storage.claim(5, 30) == []
    await server.close()
    await storage.close()


async def test_claim_skips_rows_that_another_is_just_taking(server_location: StorageLocation) -> None:
    storage = await server_location.open()
    await put(storage, job("a", -2), job("b", -1))
    server = await asyncpg.connect(server_location.where)
    async with server.transaction():
        await server.execute("SELECT 1 FROM jobs WHERE id = 'a' FOR UPDATE")
        assert [taken.id for taken in await storage.claim(5, 30)] == ["b"]
    assert [taken.id for taken in await storage.claim(5, 30)] == ["a"]
    await server.close()


async def test_a_lost_connection_is_unavailable_and_the_next_works(server_location: StorageLocation) -> None:
    storage = await server_location.open()
    server = await asyncpg.connect(server_location.where)
    acknowledged: set[str] = set()

    async def create(worker: int) -> None:
        for n in range(12):
            name = f"{worker}_{n}"
            try:
                await put(storage, payment(f"pay_{name}"), key(f"key_{name}"))
            except Unavailable:
                continue
            acknowledged.add(name)

    async def cut() -> None:
        for _ in range(6):
            await read(storage, Payment, "pay_0_0")
            await server.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )

    ends = await asyncio.gather(cut(), *(create(worker) for worker in range(8)), return_exceptions=True)
    assert {type(end) for end in ends} <= {type(None), Unavailable}
    await storage_answers(storage)
    async with storage.unit() as unit:
        payments = {found.id.removeprefix("pay_") for found in await unit[Payment].find()}
        assert {found.id.removeprefix("key_") for found in await unit[IdempotencyKey].find()} == payments
    assert acknowledged <= payments
    await server.close()


async def storage_answers(storage: object) -> None:
    """Every connection of the pools that was cut has been noticed."""
    assert isinstance(storage, PostgresStorage)
    for _ in range(40):
        try:
            await storage.check()
            async with storage.unit() as unit:
                await unit[Payment].total()
        except Unavailable:
            continue
        return
    pytest.fail("the storage did not come back")


async def test_check_reports_the_full_storage_that_a_creation_met(server_location: StorageLocation) -> None:
    """The heartbeat's row fits where the last one was. `disk_full` counts for a second, or until a unit fits."""
    storage = await server_location.open()
    await put(storage, payment("pay_1"))
    server = await asyncpg.connect(server_location.where)
    await server.execute(
        "CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION USING ERRCODE = '53100', MESSAGE = 'could not extend file'; END $$;"
        "CREATE TRIGGER no_room BEFORE INSERT ON payments EXECUTE FUNCTION no_room()"
    )
    try:
        for heal in ("by time", "by room"):
            with pytest.raises(Unavailable, match="could not extend file"):
                await put(storage, payment("pay_2"))
            with pytest.raises(Unavailable, match="no room"):
                await storage.check()
            if heal == "by time":
                await server_location.clock.advance(1)
            else:
                await put(storage, job("fits", 0))
            await storage.check()
    finally:
        await server.execute("DROP TRIGGER no_room ON payments; DROP FUNCTION no_room()")
        await server.close()


async def test_a_server_that_is_not_there_is_unavailable() -> None:
    with pytest.raises(Unavailable, match="did not answer"):
        await PostgresStorage.open(f"postgresql://postgres@127.0.0.1:{_free_port()}/x")


async def test_a_database_that_is_not_there_is_unavailable(server_location: StorageLocation) -> None:
    with pytest.raises(Unavailable, match="does not exist: make it with createdb"):
        await PostgresStorage.open(server_location.where + "_not")


def test_a_database_that_does_not_keep_every_text_is_refused(postgres: str) -> None:
    with database(postgres) as url:
        name = url.rpartition("/")[2]
        _run(_execute(postgres, f"DROP DATABASE {name}"))
        _run(_execute(postgres, f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'"))
        with pytest.raises(NotConfigured, match="UTF8"):
            _run(PostgresStorage.open(url))


async def test_a_commit_that_returned_is_on_disk_whatever_the_servers_default(empty_postgres: str) -> None:
    await migrate(empty_postgres)
    server = await asyncpg.connect(empty_postgres)
    await server.execute(f"ALTER DATABASE {empty_postgres.rpartition('/')[2]} SET synchronous_commit = off")
    await server.close()
    storage = await PostgresStorage.open(empty_postgres)
    assert await storage._fetch("SELECT current_setting('synchronous_commit')") == [("on",)]
    await storage.close()


async def test_a_refused_row_is_not_quoted(empty_postgres: str) -> None:
    """Brief: no payer data in errors. Postgres repeats the whole row, here for a column that a newer schema demands."""
    await migrate(empty_postgres)
    server = await asyncpg.connect(empty_postgres)
    await server.execute("ALTER TABLE payments ADD COLUMN newer text CHECK (newer IS NOT NULL)")
    await server.execute("ALTER TABLE idempotency_keys ADD COLUMN newer text NOT NULL")
    await server.close()
    storage = await PostgresStorage.open(empty_postgres)
    for record in (payment("pay_1", description="тайна"), key("тайна")):
        with pytest.raises(ValueError, match="Postgres refused a value") as refused:
            await put(storage, record)
        assert "тайна" not in str(refused.value)
        assert refused.value.__cause__ is None
    await storage.close()


async def test_a_snapshot_leaves_no_transaction_open(server_location: StorageLocation) -> None:
    storage = await server_location.open()
    async with storage.snapshot() as snapshot:
        await snapshot[Payment].total()

    async def fail() -> None:
        async with storage.snapshot() as snapshot:
            await snapshot[Payment].total()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    assert isinstance(storage, PostgresStorage)
    open_ones = await storage._fetch(
        "SELECT state FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'"
    )
    assert open_ones == []


async def test_longer_reads_cannot_write(server_location: StorageLocation) -> None:
    """They run on connections of their own, which are read-only."""
    storage = await server_location.open()
    assert isinstance(storage, PostgresStorage)
    [(setting,)] = await storage._ask("SHOW transaction_read_only", ())
    assert setting == "on"


async def test_reads_leave_the_pools_as_they_were(server_location: StorageLocation) -> None:
    """More units at once than there are connections: they wait their turn."""
    storage = await server_location.open()
    await put(storage, payment("pay_1"))

    async def look() -> None:
        async with storage.unit() as unit:
            assert await unit[Payment].get("pay_1") == payment("pay_1")
            assert await unit[Payment].total() == 1

    await asyncio.gather(*(look() for _ in range(60)))


@pytest.mark.parametrize("order", ["id", "-id"])
@pytest.mark.parametrize(
    ("kind", "criteria"),
    [
        (FeedEntry, {"account_id": "acc_1", "position": None}),
        (Delivery, {"account_id": "acc_1", "mode": Mode.TEST, "status": DeliveryStatus.HELD, "due": None}),
    ],
    ids=["not fed", "held"],
)
async def test_criteria_of_null_leave_the_order_to_the_index(
    migrated_database: str, kind: type[Any], criteria: dict[str, Any], order: str
) -> None:
    """Otherwise each read of the first few rows of a backlog sorts all of it: a million rows for a thousand."""
    kept = keep(CATALOGUE)[kind]
    tables = Tables.shared(CATALOGUE, sqlalchemy_asyncpg.dialect())  # type: ignore[no-untyped-call]  # theirs
    text, values = tables.found(kept, query(kept.codec, criteria, order, 10))
    server = await asyncpg.connect(migrated_database)
    for way in ("enable_seqscan", "enable_bitmapscan", "enable_sort"):  # plans of a small table
        await server.execute(f"SET {way} = off")
    plan = [row[0] for row in await server.fetch(f"EXPLAIN {text}", *values)]
    await server.close()
    assert any("Index Cond" in line and "IS NULL" in line for line in plan), plan
    assert not any("Sort" in line for line in plan), plan


async def test_statement_prepared_and_never_executed_blocks_nobody(
    server_location: StorageLocation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A statement is prepared without ending its transaction, which ends with the execution. A task cancelled between
    the two leaves the transaction to the next user of the connection."""
    storage = await server_location.open()
    assert isinstance(storage, PostgresStorage)
    prepare = asyncpg.Connection._get_statement

    async def prepare_and_cancel(*given: Any, **named: Any) -> Any:
        made = await prepare(*given, **named)
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)
        return made

    with monkeypatch.context() as cancelling:
        cancelling.setattr(asyncpg.Connection, "_get_statement", prepare_and_cancel)
        [ended] = await asyncio.gather(
            asyncio.create_task(storage._ask("SELECT id FROM payments", ())), return_exceptions=True
        )
    assert isinstance(ended, asyncio.CancelledError)
    async with storage.snapshot() as snapshot:
        assert await snapshot[Payment].total() == 0
