"""Postgres dies during a commit (adapters/storage/postgres/commits.py). The unit is carried out once, even if the dead
server had committed it, and the waiting caller gets a success."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import asyncpg
import msgspec
import pytest

from cambist.adapters.storage.postgres import commits as postgres_commits
from cambist.adapters.storage.postgres.postgres import PostgresStorage
from cambist.core.domain.money import Rub
from cambist.core.domain.payments.payments import Payment
from cambist.core.domain.payments.tallies import Turnover
from cambist.ports.faults import Stale, Unavailable
from cambist.ports.jobs import Job
from tests.contracts.storage_kit import KIT_CATALOGUE, StorageLocation, job, key, must_read, payment, put, read
from tests.contracts.test_storage_tallies import accrue, turnover

Step = Callable[[], Awaitable[None]]


class Cutter:
    """Breaks the connection of the next commits, before or after they took effect."""

    def __init__(self, transact: Callable[..., Awaitable[None]]) -> None:
        self._transact = transact
        self.times = 0
        self.after = False
        self.meanwhile: Step | None = None
        """Step of another process before the unit is retried."""

    async def __call__(self, commits: Any, *args: Any, **options: Any) -> None:
        if not self.times:
            return await self._transact(commits, *args, **options)
        self.times -= 1
        if self.after:
            await self._transact(commits, *args, **options)
        if self.meanwhile is not None:
            meanwhile, self.meanwhile, times, self.times = self.meanwhile, None, self.times, 0
            await meanwhile()
            self.times = times
        raise asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")

    def cut(self, *, after: bool, times: int = 1, meanwhile: Step | None = None) -> None:
        self.times, self.after, self.meanwhile = times, after, meanwhile


@pytest.fixture
def cutter(monkeypatch: pytest.MonkeyPatch) -> Cutter:
    made = Cutter(postgres_commits.Commits._transact)

    async def transact(commits: Any, *args: Any, **options: Any) -> None:
        await made(commits, *args, **options)

    monkeypatch.setattr(postgres_commits.Commits, "_transact", transact)
    monkeypatch.setattr(postgres_commits, "_PAUSES", (0.0,))
    return made


@pytest.fixture
async def server(server_location: StorageLocation) -> AsyncIterator[PostgresStorage]:
    storage = await PostgresStorage.open(server_location.where, catalogue=KIT_CATALOGUE)
    yield storage
    await storage.close()


async def change(storage: PostgresStorage, **fields: Any) -> None:
    async with storage.unit() as unit:
        found = await unit[Payment].get("pay_1")
        assert found is not None
        unit[Payment].save(msgspec.structs.replace(found, **fields))
        await unit.commit()


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("times", [1, 3])
async def test_a_unit_takes_effect_once(server: PostgresStorage, cutter: Cutter, after: bool, times: int) -> None:
    """Covers units of many writes and of one; amounts are added to sums once."""
    await put(server, payment("pay_1"), job("done"))
    cutter.cut(after=after, times=times)
    async with server.unit() as unit:
        found, done = await unit[Payment].get("pay_1"), await unit[Job].get("done")
        assert found is not None
        assert done is not None
        unit[Payment].save(msgspec.structs.replace(found, description="moved"))
        unit[Job].remove(done)
        unit[Turnover].accrue(turnover("t", 5, Rub(100)))
        await unit.commit()
    cutter.cut(after=after, times=times)
    await put(server, key("lone"))
    moved = await must_read(server, Payment, "pay_1")
    assert (moved.description, moved.version) == ("moved", 1)
    assert await read(server, Job, "done") is None
    assert (await must_read(server, Turnover, "t")).payments == 5
    assert await read(server, type(key("lone")), "lone") is not None


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("times", [1, 3])
async def test_a_long_unit_takes_effect_once(server: PostgresStorage, cutter: Cutter, after: bool, times: int) -> None:
    """Rows of a long unit are sent as arrays, and amounts are still added to sums once."""
    stored = [payment(f"pay_{number:02}") for number in range(20)]
    await put(server, *stored)
    cutter.cut(after=after, times=times)
    async with server.unit() as unit:
        moved = [unit[Payment].change(each, description="moved") for each in stored]
        added = [unit[Payment].add(payment(f"new_{number:02}")) for number in range(20)]
        unit[Turnover].accrue(turnover("t", 5, Rub(100)))
        await unit.commit()
    assert cutter.times < times
    assert [await read(server, Payment, each.id) for each in (*stored, *added)] == [*moved, *added]
    assert (await must_read(server, Turnover, "t")).payments == 5


async def test_a_server_that_is_not_there_for_a_moment_is_waited_for(
    server: PostgresStorage, cutter: Cutter, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusals = [ConnectionRefusedError(), asyncpg.CannotConnectNowError("the database system is starting up")]
    take = server._pool.take

    async def refusing() -> Any:
        if refusals:
            raise refusals.pop()
        return await take()

    plain = server._pool
    pool = msgspec.defstruct("Pool", ["take", "give", "drop", "require_replicated"])
    monkeypatch.setattr(
        server._groups._commits, "_pool", pool(refusing, plain.give, plain.drop, plain.require_replicated)
    )
    await put(server, payment("pay_1"))
    assert await read(server, Payment, "pay_1") is not None


async def test_commit_with_an_unknown_outcome_is_unavailable(
    server: PostgresStorage, cutter: Cutter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody wrote over it, or perhaps before it; or the server stays away."""
    await put(server, payment("pay_1"))
    cutter.cut(after=True, meanwhile=lambda: change(server, description="theirs"))
    with pytest.raises(Unavailable):
        await change(server, description="ours")
    assert (await must_read(server, Payment, "pay_1")).description == "theirs"
    monkeypatch.setattr(postgres_commits, "_PATIENCE", 0.05)
    cutter.cut(after=False, times=1_000_000)
    with pytest.raises(Unavailable):
        await change(server, description="ours")


async def test_sums_alone_are_not_tried_again(server: PostgresStorage, cutter: Cutter) -> None:
    """Nothing would keep them from being added twice."""
    cutter.cut(after=True)
    with pytest.raises(Unavailable):
        await accrue(server, turnover("t", 5, Rub(100)))
    assert (await must_read(server, Turnover, "t")).payments == 5


async def test_a_lost_race_stays_one(server: PostgresStorage, cutter: Cutter) -> None:
    await put(server, payment("pay_1"))
    async with server.unit() as unit:
        found = await unit[Payment].get("pay_1")
        assert found is not None
        await change(server, description="theirs")
        unit[Payment].save(msgspec.structs.replace(found, description="ours"))
        with pytest.raises(Stale):
            await unit.commit()


async def test_longer_reads_outlive_a_restart_unseen(server: PostgresStorage, server_location: StorageLocation) -> None:
    """A connection that broke while it rested is replaced before it is used."""
    for _ in range(2):
        async with server.unit() as unit:
            assert await unit[Payment].total() == 0
        other = await asyncpg.connect(server_location.where)
        await other.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        await other.close()  # the loop hears of the ends on the way
        await asyncio.sleep(0)
