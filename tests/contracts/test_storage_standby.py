"""A synchronous standby that is down: a write that only one server has is not acknowledged (docs/operations.md
"Postgres")."""

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator

import asyncpg
import pytest

from cambist.adapters.storage.postgres import commits, postgres
from cambist.adapters.storage.postgres.gate import Gate
from cambist.adapters.storage.postgres.postgres import PostgresStorage
from cambist.adapters.storage.postgres.standby import CONFIRM, REASON, Standby
from cambist.core.usecases.operators.findings import Level
from cambist.frontends.app.compose import migrate
from cambist.frontends.app.maintenance import database_facts
from cambist.frontends.operations.doctor import judge_database
from cambist.frontends.settings.settings import Settings
from cambist.ports.faults import Unavailable
from cambist.ports.jobs import Job
from tests.contracts.storage_kit import job, must_read, put, read
from tests.patience import HANGS
from tests.servers import _execute, own_postgres

SOON = 0.001


class Server:
    """Confirms commits while it is `up`; `waiting` sessions wait for its standby."""

    def __init__(self) -> None:
        self.up = asyncio.Event()
        self.up.set()
        self.waiting = 0
        self.commits = asyncio.Semaphore(0)
        self.polls = asyncio.Semaphore(0)

    async def commit(self) -> None:
        self.commits.release()
        await self.up.wait()

    async def count(self) -> int:
        self.polls.release()
        return self.waiting


@contextlib.asynccontextmanager
async def watched(server: Server) -> AsyncIterator[Gate]:
    gate = Gate()
    standby = Standby(gate, server.commit, server.commit, server.count, every=SOON, answers_within=SOON)
    standby.watch()
    try:
        async with asyncio.timeout(HANGS):
            yield gate
    finally:
        await standby.end()


async def until(gate: Gate, *, shut: bool) -> None:
    while gate.is_shut is not shut:
        await asyncio.sleep(0)


async def test_commits_waiting_for_a_standby_shut_the_gate_until_one_succeeds() -> None:
    server = Server()
    async with watched(server) as gate:
        server.waiting = 2
        server.up.clear()
        await until(gate, shut=True)
        with pytest.raises(Unavailable, match="synchronous standby"):
            gate.refuse()
        server.up.set()
        await until(gate, shut=False)
        gate.refuse()


async def test_slow_disk_shuts_no_gate() -> None:
    server = Server()
    server.up.clear()
    async with watched(server) as gate:
        for _ in range(3):
            await server.polls.acquire()
        assert not gate.is_shut


async def test_commits_that_are_confirmed_ask_nothing_further() -> None:
    server = Server()
    async with watched(server):
        for _ in range(3):
            await server.commits.acquire()
    assert server.polls.locked()


async def test_any_role_may_confirm(migrated_database: str) -> None:
    """A commit of no row needs no right in the database."""
    with contextlib.suppress(asyncpg.DuplicateObjectError):
        await _execute(migrated_database, "CREATE ROLE cambist_nobody LOGIN")
    await _execute(migrated_database.replace("postgres@", "cambist_nobody@"), CONFIRM.partition("WHERE")[0])


async def _refused(storage: PostgresStorage) -> None:
    """Wait until the storage knows that the standby is down and refuses every call at once."""
    async with asyncio.timeout(HANGS):
        while True:
            try:
                await storage.check()
            except Unavailable as fault:
                if str(fault) == REASON:
                    break
            await asyncio.sleep(0)
    for question in (storage.get(Job, "late"), storage.now(), storage.next_due()):
        with pytest.raises(Unavailable, match="synchronous standby"):
            await question


@pytest.mark.timeout(300)
async def test_commit_that_no_standby_has_is_neither_acknowledged_nor_read(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commits, "_PATIENCE", 1.0)
    monkeypatch.setattr(postgres, "ACQUIRE_SECONDS", 2.0)
    with own_postgres() as primary:
        await migrate(Settings(database_url=primary.url))
        async with primary.standby() as standby:
            one, other = await PostgresStorage.open(primary.url), await PostgresStorage.open(primary.url)
            try:
                await put(one, job("early", 0))
                standby.stop(signal.SIGINT)
                with pytest.raises(Unavailable):
                    await put(one, job("late", 0))
                await _refused(one)
                await _refused(other)
                assert REASON in caplog.text
                facts = await database_facts(Settings(database_url=primary.url))
                assert facts is not None
                finding = judge_database(facts, is_live=True)
                assert (finding.level, "wait for a synchronous standby" in finding.message) == (Level.FAILED, True)
                # The primary crashes and comes back alone. Now every reader sees the row.
                primary.stop(signal.SIGQUIT)
                primary.start()
                server = await asyncpg.connect(primary.url)
                assert await server.fetchval("SELECT count(*) FROM jobs WHERE id = 'late'") == 1
                await server.close()
                await _refused(one)
                with pytest.raises(Unavailable, match="synchronous standby"):
                    await PostgresStorage.open(primary.url)
                standby.start()
                async with asyncio.timeout(HANGS):
                    while True:
                        with contextlib.suppress(Unavailable):
                            await must_read(other, Job, "late")
                            break
                        await asyncio.sleep(0)
                assert await read(other, Job, "early") is not None
            finally:
                await one.close()
                await other.close()


async def test_commit_whose_wait_for_the_standby_is_cancelled_is_not_acknowledged() -> None:
    """Postgres answers it with a warning and success. `pg_cancel_backend` and limits of the server do that."""
    with own_postgres() as primary:
        await migrate(Settings(database_url=primary.url))
        async with primary.standby() as standby:
            storage = await PostgresStorage.open(primary.url)
            operator = await asyncpg.connect(primary.url)
            try:
                standby.stop(signal.SIGINT)
                alone = asyncio.create_task(put(storage, job("alone", 0)))
                cancelled = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
                while not alone.done():
                    await operator.execute(cancelled)
                with pytest.raises(Unavailable):
                    await alone
            finally:
                standby.start()
                await operator.close()
                await storage.close()
