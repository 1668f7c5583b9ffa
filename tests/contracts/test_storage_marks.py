"""Marks of commits in Postgres: a process learns that the server lacks what was confirmed to it
(docs/operations.md "Failover")."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from cambist.adapters.storage.postgres.marks import ACCEPT, follows
from cambist.adapters.storage.postgres.postgres import PostgresStorage
from cambist.core.domain.accounts.idempotency import IdempotencyKey
from cambist.core.domain.payments.payments import Payment
from cambist.ports.faults import Stale
from cambist.ports.witnesses import Witness
from tests.contracts.postgres_wire import noted_statements
from tests.contracts.storage_kit import StorageLocation, key, must_read, payment, put
from tests.tables import table

KEPT = "CREATE TABLE IF NOT EXISTS kept_marks AS SELECT * FROM commit_marks"
LOSE = "DELETE FROM commit_marks; INSERT INTO commit_marks SELECT * FROM kept_marks; DROP TABLE kept_marks"
"""A promoted server has an earlier state of all tables. Of these rows alone is enough for the marks."""


@pytest.fixture
async def storage(server_location: StorageLocation) -> AsyncIterator[PostgresStorage]:
    opened = await server_location.open()
    assert isinstance(opened, PostgresStorage)
    await opened.mark()
    yield opened
    await opened._fetch("DROP TABLE IF EXISTS kept_marks")


async def own(storage: PostgresStorage) -> Witness:
    return next(mark for mark in await storage.mark() if mark.process == storage.process)


async def short(storage: PostgresStorage) -> None:
    """Two writes in one statement."""
    await put(storage, payment("pay_1"), key("k1"))


async def single(storage: PostgresStorage) -> None:
    await put(storage, key("k1"))


async def long(storage: PostgresStorage) -> None:
    await put(storage, *(payment(f"pay_{number}") for number in range(20)))


async def grouped(storage: PostgresStorage) -> None:
    await asyncio.gather(*(put(storage, payment(f"pay_{n}"), key(f"k{n}")) for n in range(10)))


async def one_after_the_other(storage: PostgresStorage) -> None:
    """Writes that cannot be joined, because they touch one row."""
    async with storage.unit() as unit:
        unit[Payment].change(unit[Payment].add(payment("pay_1")), description="changed")
        await unit.commit()


@pytest.mark.parametrize("write", [short, single, long, grouped, one_after_the_other])
async def test_lost_commit_is_noticed_at_the_next_mark(storage: PostgresStorage, write: object) -> None:
    await put(storage, key("before"))
    assert (await own(storage)).is_whole
    await storage._fetch(KEPT)
    await write(storage)  # type: ignore[operator]
    await _execute_all(storage, LOSE)
    assert not (await own(storage)).is_whole
    assert not (await own(storage)).is_whole, "whatever is written since"


async def test_lost_commit_is_noticed_although_the_process_wrote_since(storage: PostgresStorage) -> None:
    await put(storage, key("before"))
    await storage._fetch(KEPT)
    for number in range(3):
        await put(storage, key(f"lost{number}"))
    await _execute_all(storage, LOSE)
    for number in range(9):
        await put(storage, key(f"later{number}"))
    found = {mark.process: mark for mark in await storage.witnesses()}
    assert not found[storage.process].is_whole, "before it marks itself"


async def test_refused_and_late_commits_leave_no_gap(storage: PostgresStorage) -> None:
    await put(storage, payment("pay_1"), key("k1"))
    for _ in range(3):
        async with storage.unit() as unit:
            unit[Payment].save(payment("pay_1", version=7))
            unit[IdempotencyKey].add(key("k2"))
            with pytest.raises(Stale):
                await unit.commit()
        async with storage.unit() as unit:
            unit[Payment].save(payment("pay_1", version=7))
            with pytest.raises(Stale):
                await unit.commit()
    waiting = [asyncio.create_task(put(storage, key(f"cancelled{number}"))) for number in range(20)]
    await asyncio.sleep(0)
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    await put(storage, key("k3"), key("k4"))
    assert (await own(storage)).is_whole
    assert await must_read(storage, Payment, "pay_1") == payment("pay_1")


async def test_commit_that_need_not_be_durable_has_no_mark(
    storage: PostgresStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Postgres may lose it in a crash, so it proves nothing."""
    sent = noted_statements(monkeypatch, "fetchval", "execute")
    async with storage.unit() as unit:
        unit[IdempotencyKey].add(key("k1"))
        await unit.commit(durable=False)
    await put(storage, key("k2"))
    assert ["commit_marks" in text for text in sent] == [False, True]


async def test_process_that_never_marks_itself_writes_no_marks(server_location: StorageLocation) -> None:
    storage = await server_location.open()
    assert isinstance(storage, PostgresStorage)
    await grouped(storage)
    assert await storage._fetch("SELECT count(*) FROM commit_marks") == [(0,)]


async def test_accepted_gaps_stay_accepted_and_a_new_beginning_has_none(storage: PostgresStorage) -> None:
    """The process may notice the gap before the operator accepts it, or after."""
    await storage._fetch(KEPT)
    await put(storage, key("lost"))
    await _execute_all(storage, LOSE)
    await storage._fetch("UPDATE commit_marks SET place = 'elsewhere' WHERE marked_at IS NOT NULL")
    await storage._fetch(ACCEPT)
    mark = await own(storage)
    assert (mark.is_whole, mark.is_accepted) == (False, True)
    storage.begin_anew()
    mark = await own(storage)
    assert (mark.is_whole, mark.is_accepted) == (True, False)
    await storage._fetch(ACCEPT)
    assert not (await own(storage)).is_accepted, "it misses nothing"


async def test_process_that_ends_in_order_says_so(server_location: StorageLocation, storage: PostgresStorage) -> None:
    other = await server_location.open()
    assert isinstance(other, PostgresStorage)
    await other.mark()
    await other.close()
    left: Sequence[Witness] = [mark for mark in await storage.witnesses() if mark.has_left]
    assert [mark.process for mark in left] == [other.process]


@table(
    ("former", "present", "is_later"),
    [
        ("system 7 timeline 00000001 table 5", "system 7 timeline 00000002 table 5", True),
        ("system 7 timeline 0000000F table 5", "system 7 timeline 00000010 table 5", True),
        ("system 7 timeline 00000002 table 5", "system 7 timeline 00000001 table 5", False),
        ("system 7 timeline 00000002 table 5", "system 7 timeline 00000002 table 5", False),
        ("system 7 timeline 00000001 table 5", "system 8 timeline 00000002 table 5", False),
        ("system 7 timeline 00000001 table 5", "system 7 timeline 00000002 table 6", False),
        ("/var/lib/cambist.db", "system 7 timeline 00000002 table 5", False),
    ],
)
def test_only_a_later_timeline_of_the_same_table_is_a_promotion(former: str, present: str, is_later: bool) -> None:
    assert follows(former, present) is is_later


async def _execute_all(storage: PostgresStorage, statements: str) -> None:
    for statement in statements.split("; "):
        await storage._fetch(statement)
