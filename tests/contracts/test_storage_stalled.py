"""A Postgres that hangs: no caller waits for it, and work resumes when it recovers (docs/operations.md "Failure
drills")."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable
from datetime import UTC, datetime
from typing import Any

import pytest

from cambist.adapters.storage.postgres.gate import Gate
from cambist.adapters.storage.postgres.postgres import PostgresStorage
from cambist.adapters.storage.postgres.stall import Stall
from cambist.frontends.app.compose import migrate
from cambist.frontends.settings.settings import Settings
from cambist.ports.faults import Unavailable
from cambist.ports.jobs import Job
from tests.patience import HANGS
from tests.servers import own_postgres

SOON = 0.001
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Pool:
    """A pool that waits as long as configured; `moves`: it makes progress at every check."""

    def __init__(self, *, moves: bool = False) -> None:
        self.is_waited_for = True
        self.moves = moves
        self.polls = 0
        self.broken_off = 0

    @property
    def moved(self) -> int:
        self.polls += self.moves
        return self.polls

    async def break_off(self) -> None:
        self.broken_off += 1
        self.is_waited_for = False


class Server:
    """Answers at once while it is `up`, otherwise when it is up again. `fault` is the error of its answers."""

    def __init__(self) -> None:
        self.up = asyncio.Event()
        self.asked = asyncio.Semaphore(0)
        self.fault: Exception | None = None
        self.questions = 0

    async def __call__(self) -> None:
        self.questions += 1
        self.asked.release()
        await self.up.wait()
        if self.fault is not None:
            raise self.fault


@contextlib.asynccontextmanager
async def watched(server: Server, *pools: Pool) -> AsyncIterator[Gate]:
    gate = Gate()
    gate.pools = pools
    stall = Stall(gate, server, polls_every=SOON, answers_within=SOON, trusted_for=SOON)
    stall.watch()
    try:
        async with asyncio.timeout(HANGS):
            yield gate
    finally:
        await stall.end()


async def until(stall: Gate, *, on: bool) -> None:
    while stall.is_shut is not on:
        await asyncio.sleep(0)


async def test_hanging_server_breaks_off_all_queries_and_refuses_new_ones() -> None:
    server, pool = Server(), Pool()
    async with watched(server, pool) as stall:
        stall.refuse()
        await until(stall, on=True)
        assert pool.broken_off == 1
        with pytest.raises(Unavailable, match="hangs"):
            stall.refuse()
        server.up.set()
        await until(stall, on=False)
        stall.refuse()


async def test_a_server_that_answers_with_a_fault_does_not_hang() -> None:
    """A server that is down or full rejects requests quickly anyway."""
    server, pool = Server(), Pool()
    async with watched(server, pool) as stall:
        await until(stall, on=True)
        server.fault = ConnectionRefusedError()
        server.up.set()
        await until(stall, on=False)


async def test_a_long_unit_alone_is_left_alone_while_the_server_answers() -> None:
    server, pool = Server(), Pool()
    server.up.set()
    async with watched(server, pool) as stall:
        for _ in range(3):
            await server.asked.acquire()
        assert (stall.is_shut, pool.broken_off) == (False, 0)


async def test_pool_that_moves_or_is_idle_is_not_probed() -> None:
    server, busy, idle = Server(), Pool(moves=True), Pool()
    idle.is_waited_for = False
    async with watched(server, busy), watched(server, idle):
        while busy.polls < 10:
            await asyncio.sleep(0)
    assert server.questions == 0


async def test_one_of_many_pools_is_enough() -> None:
    server, waited, idle = Server(), Pool(), Pool()
    idle.is_waited_for = False
    async with watched(server, idle, waited) as stall:
        await until(stall, on=True)
        assert (waited.broken_off, idle.broken_off) == (1, 1)


async def test_a_real_server_that_is_stopped_is_not_waited_for_and_serves_again() -> None:
    """Running units, reads and snapshots fail; new ones are refused; then both pools work again."""
    with own_postgres() as server:
        await migrate(Settings(database_url=server.url))
        storage = await PostgresStorage.open(server.url, connections=2)
        try:
            await storage.check()
            server.freeze()
            async with asyncio.timeout(60):  # each would take 25 s, and the pools have two connections
                asked: list[Awaitable[Any]] = []
                for _ in range(4):
                    asked += [storage.now(), storage.check(), _total(storage)]
                found = await asyncio.gather(*asked, return_exceptions=True)
            assert {type(each) for each in found} == {Unavailable}
            for question in (storage.check(), _total(storage), storage.renew([_job()], 1.0)):
                with pytest.raises(Unavailable, match="hangs"):
                    await question
            server.thaw()
            async with asyncio.timeout(HANGS):
                while True:
                    with contextlib.suppress(Unavailable):
                        await storage.check()
                        break
                    await asyncio.sleep(0)
            assert await _total(storage) == 0
        finally:
            server.thaw()
            await storage.close()


async def _total(storage: PostgresStorage) -> int:
    async with storage.snapshot() as seen:
        return await seen[Job].total()


def _job() -> Job:
    return Job(id="job", kind="k", argument="", due=NOON, created_at=NOON)
