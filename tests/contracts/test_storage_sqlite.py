"""Behaviour of SQLite alone: one file, one writer, group commit, other processes beside it, and death at any moment."""

import asyncio
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cambist.adapters.clock import SystemClock, VirtualClock
from cambist.adapters.storage.sql import room
from cambist.adapters.storage.sqlite import committer, turnstile
from cambist.adapters.storage.sqlite import file as sqlite_file
from cambist.adapters.storage.sqlite.sqlite import SqliteStorage
from cambist.adapters.storage.sqlite.turnstile import Turnstile
from cambist.core.domain.accounts.idempotency import IdempotencyKey
from cambist.core.domain.accounts.limit_hits import LimitHits, limit_hits
from cambist.core.domain.payments.payments import Payment
from cambist.ports.faults import Conflict, Unavailable
from cambist.ports.jobs import Job
from cambist.ports.storage import Storage
from tests.contracts.storage_kit import StorageLocation, job, key, payment, put, read
from tests.power_failure import Image


class Watched(sqlite3.Connection):
    """A connection that records statements and their thread; a COMMIT may be held or made to fail."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.seen: list[tuple[str, bool]] = []
        self.together: list[str] = []
        """Statements that were carried out for many rows at once."""
        self.fail: Exception | None = None
        self.reached = threading.Event()
        self.gate = threading.Event()
        self.gate.set()

    def cursor(self, *_: Any) -> "WatchedCursor":  # type: ignore[override]  # only its usual form is asked for
        return WatchedCursor(self)

    def note(self, statement: str) -> None:
        """Record the statement that a cursor is about to execute."""
        self.seen.append((statement.split()[0], threading.current_thread() is threading.main_thread()))
        if statement == "COMMIT":
            self.reached.set()
            self.gate.wait()
            if self.fail:
                raise self.fail

    def count(self, word: str) -> int:
        return sum(seen == word for seen, _ in self.seen)


class WatchedCursor(sqlite3.Cursor):
    """Records statements, too."""

    def execute(self, statement: str, *arguments: Any) -> "WatchedCursor":
        assert isinstance(self.connection, Watched)
        self.connection.note(statement)
        return super().execute(statement, *arguments)

    def executemany(self, statement: str, *arguments: Any) -> "WatchedCursor":
        assert isinstance(self.connection, Watched)
        self.connection.note(statement)
        self.connection.together.append(statement)
        return super().executemany(statement, *arguments)


@pytest.fixture
async def watched(file_location: StorageLocation, monkeypatch: pytest.MonkeyPatch) -> tuple[Storage, Watched]:
    """A storage, and its writing connection."""
    made: list[Watched] = []
    plain = sqlite3.connect

    def connect(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection = plain(*arguments, factory=Watched, **options)
        made.append(connection)
        return connection

    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", connect)
        storage = await file_location.open()
    assert isinstance(storage, SqliteStorage)
    (writing,) = (each for each in made if each is storage._committer._connection)
    writing.seen.clear()
    return storage, writing


async def turns_until(happened: Callable[[], bool]) -> int:
    """Turns of the event loop until something happened: proof that nothing blocks it."""
    turns = 0
    while not happened():
        await asyncio.sleep(0.001)
        turns += 1
    return turns


async def test_the_file_and_its_log_are_for_their_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "new" / "app.db"
    storage = await SqliteStorage.open(path, VirtualClock())
    await put(storage, payment("pay_1"))
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert {found.name: found.stat().st_mode & 0o777 for found in path.parent.iterdir()} == {
        "app.db": 0o600,
        "app.db-shm": 0o600,
        "app.db-wal": 0o600,
    }
    await storage.close()


async def test_commits_are_on_disk(watched: tuple[Storage, Watched]) -> None:
    """WAL with synchronous FULL, so that an answered 201 is on disk; foreign keys on."""
    _, writing = watched
    for pragma, value in (("journal_mode", "wal"), ("synchronous", 2), ("foreign_keys", 1)):
        assert writing.execute(f"PRAGMA {pragma}").fetchone() == (value,)


async def test_only_what_is_durable_waits_for_the_disk(watched: tuple[Storage, Watched]) -> None:
    """Durable units use FULL, others NORMAL, set for each transaction; a unit that needs no disk needs no thread."""
    storage, writing = watched
    levels = []
    for number, durable in enumerate((True, False, False, True, False, True)):
        writing.seen.clear()
        async with storage.unit() as unit:
            unit[Payment].add(payment(f"pay_{number}"))
            await unit.commit(durable=durable)
        levels.append((writing.execute("PRAGMA synchronous").fetchone()[0], ("COMMIT", True) in writing.seen))
    assert levels == [(2 if durable else 1, not durable) for durable in (True, False, False, True, False, True)]


async def test_units_that_need_the_disk_do_not_starve_under_load(watched: tuple[Storage, Watched]) -> None:
    """After some transactions without the disk, one with it follows for the waiting units, under any load."""
    storage, writing = watched
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()

    async def without_end(number: int) -> int:
        rounds = 0
        while not ended.done():
            async with storage.unit() as unit:
                unit[Payment].add(payment(f"pay_{number}_{rounds}"))
                await unit.commit(durable=False)
            rounds += 1
        return rounds

    others = [asyncio.ensure_future(without_end(number)) for number in range(20)]
    await asyncio.sleep(0)
    await put(storage, key("k1"))
    ended.set_result(None)
    assert max(await asyncio.gather(*others)) <= 2 * committer._IN_A_ROW
    assert writing.count("SAVEPOINT") == 0


async def test_a_log_that_is_cut_off_holds_what_was_durable_and_all_before_it(file_location: StorageLocation) -> None:
    """A failure of the machine: units that are not durable are there whole, in their order, or not at all."""
    storage = await file_location.open()
    for number, durable in enumerate((True, False, True, False, False)):
        async with storage.unit() as unit:
            unit[Payment].add(payment(f"pay_{number}"))
            unit[IdempotencyKey].add(key(f"k{number}"))
            await unit.commit(durable=durable)
    image = Image(Path(file_location.where))
    await storage.close()
    found = []
    for length in image.commits[-3:]:
        image.put_back(length)
        again = await file_location.open()
        async with again.unit() as unit:
            payments, keys = await unit[Payment].total(), await unit[IdempotencyKey].total()
        found.append((payments, keys))
        await again.close()
    assert found == [(3, 3), (4, 4), (5, 5)]


async def test_units_that_wait_together_share_a_transaction(watched: tuple[Storage, Watched]) -> None:
    storage, writing = watched
    await asyncio.gather(*(put(storage, payment(f"pay_{n}"), key(f"k{n}")) for n in range(100)))
    assert writing.count("BEGIN") == writing.count("COMMIT") == 1
    assert writing.count("SAVEPOINT") == 0


async def test_a_long_unit_that_accrues_is_not_carried_out_twice(watched: tuple[Storage, Watched]) -> None:
    """Many rows are accrued by one statement: that it changes more than one is no refusal."""
    storage, writing = watched
    hits = [limit_hits("money:ip", minute, 1) for minute in (0, 60, 120)]
    async with storage.unit() as unit:
        for n in range(10):
            unit[Payment].add(payment(f"pay_{n}"))
        unit[LimitHits].accrue(*hits)
        await unit.commit()
    assert [await read(storage, LimitHits, each.id) for each in hits] == hits
    assert (writing.count("BEGIN"), writing.count("SAVEPOINT")) == (1, 0)


async def test_no_repr_of_a_unit_shows_what_is_written(watched: tuple[Storage, Watched]) -> None:
    storage, _ = watched
    async with storage.unit() as unit:
        unit[Payment].add(msgspec.structs.replace(payment("pay_1"), description="private"))
        assert "private" not in repr(unit) + repr(unit[Payment])


async def test_only_the_adding_unit_that_breaks_a_rule_is_refused(watched: tuple[Storage, Watched]) -> None:
    storage, writing = watched
    await put(storage, key("k7"))
    outcomes = await asyncio.gather(
        *(put(storage, payment(f"pay_{n}"), key(f"k{n % 30}")) for n in range(40)), return_exceptions=True
    )
    refused = [number for number, outcome in enumerate(outcomes) if isinstance(outcome, Conflict)]
    assert refused == [7, *range(30, 40)]
    assert sum(outcome is None for outcome in outcomes) == 29
    assert [await read(storage, Payment, f"pay_{n}") is None for n in range(40)] == [n in refused for n in range(40)]
    assert writing.count("SAVEPOINT") == 40


async def test_accruals_of_a_transaction_are_written_once_a_row(
    watched: tuple[Storage, Watched],
) -> None:
    storage, writing = watched

    async def one(n: int) -> None:
        async with storage.unit() as unit:
            unit[IdempotencyKey].add(key(f"k{n}"))
            unit[LimitHits].accrue(limit_hits("money:ip", 0, 1), limit_hits("money:ip", 60, n))
            await unit.commit()

    for start in (0, 100):
        await asyncio.gather(*(one(start + n) for n in range(100)))
    assert [await read(storage, LimitHits, limit_hits("money:ip", minute, 1).id) for minute in (0, 60)] == [
        limit_hits("money:ip", 0, 200),
        limit_hits("money:ip", 60, sum(range(200))),
    ]
    assert sum("limit_hits" in text for text in writing.together) == 2
    assert writing.count("SAVEPOINT") == 0


@pytest.mark.parametrize(
    ("stored", "counts"), [(0, [1, 2**62, 2**63 - 1, 3, 4]), (2**63 - 12, [1, 2, 9, 3, 4])], ids=["of them", "with all"]
)
async def test_only_the_unit_whose_accrued_sum_is_too_large_is_refused(
    watched: tuple[Storage, Watched], stored: int, counts: list[int]
) -> None:
    """ports/storage.py: "beyond 64 bits" refuses the unit; the others of its transaction are written, sums exact."""
    storage, writing = watched
    hit = limit_hits("money:ip", 0, stored)

    async def one(n: int, count: int) -> None:
        async with storage.unit() as unit:
            unit[IdempotencyKey].add(key(f"k{n}"))
            unit[LimitHits].accrue(limit_hits("money:ip", 0, count))
            await unit.commit()

    await one(9, stored)
    outcomes = await asyncio.gather(*(one(n, count) for n, count in enumerate(counts)), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [type(None), type(None), ValueError, type(None), type(None)]
    assert await read(storage, LimitHits, hit.id) == limit_hits("money:ip", 0, stored + sum(counts) - counts[2])
    assert [await read(storage, IdempotencyKey, f"k{n}") is None for n in range(5)] == [n == 2 for n in range(5)]
    assert (writing.count("BEGIN"), writing.count("ROLLBACK"), writing.count("COMMIT")) == (3, 1, 2)


async def test_a_refused_unit_fails_alone(watched: tuple[Storage, Watched]) -> None:
    """One unit of a transaction is refused, at any position: the others are written, and only that unit gets the
    error."""
    storage, writing = watched
    await put(storage, key("taken"))
    outcomes = await asyncio.gather(
        *(put(storage, payment(f"pay_{n}"), key("taken" if n == 57 else f"k{n}")) for n in range(100)),
        return_exceptions=True,
    )
    refused = [n for n, outcome in enumerate(outcomes) if outcome is not None]
    assert refused == [57]
    assert isinstance(outcomes[57], Conflict)
    assert outcomes[57].rule == "idempotency_keys_id"
    assert await read(storage, Payment, "pay_57") is None
    assert await read(storage, Payment, "pay_56") is not None
    assert await read(storage, Payment, "pay_99") is not None
    assert writing.count("COMMIT") == 2
    assert writing.count("ROLLBACK") == 1


async def test_a_change_leaves_indexes_over_other_fields_alone(watched: tuple[Storage, Watched]) -> None:
    storage, writing = watched
    await put(storage, payment("pay_1"))
    statements: list[str] = []
    writing.set_trace_callback(statements.append)
    async with storage.unit() as unit:
        unit[Payment].change(payment("pay_1"), bank_reference="reference", bank="bank")
        await unit.commit()
    writing.set_trace_callback(None)
    [update] = [each for each in statements if each.startswith("UPDATE")]
    assert update.startswith("UPDATE payments SET bank='bank', bank_reference='reference', version=1 WHERE")


async def test_a_transaction_takes_256_units_at_most(watched: tuple[Storage, Watched]) -> None:
    storage, writing = watched
    await asyncio.gather(*(put(storage, key(f"k{n}")) for n in range(600)))
    assert writing.count("COMMIT") == 3


async def test_only_commit_leaves_the_event_loops_thread(watched: tuple[Storage, Watched]) -> None:
    storage, writing = watched
    await put(storage, payment("pay_1"))
    inside = {"BEGIN": True, "PRAGMA": True, "INSERT": True}
    assert dict(writing.seen) == inside | {"COMMIT": False}


async def test_success_is_not_reported_before_the_commit_returned(watched: tuple[Storage, Watched]) -> None:
    """And while the disk is slow, the event loop serves others."""
    storage, writing = watched
    writing.gate.clear()
    task = asyncio.create_task(put(storage, payment("pay_1")))
    await turns_until(writing.reached.is_set)
    assert await read(storage, Payment, "pay_1") is None
    assert not task.done()
    writing.gate.set()
    await task
    assert await read(storage, Payment, "pay_1") is not None


async def test_when_commit_fails_every_waiter_fails_and_the_next_succeed(watched: tuple[Storage, Watched]) -> None:
    storage, writing = watched
    writing.fail = sqlite3.OperationalError("disk I/O error")
    ends = await asyncio.gather(*(put(storage, key(f"k{n}")) for n in range(10)), return_exceptions=True)
    assert {type(end) for end in ends} == {Unavailable}
    with pytest.raises(Unavailable, match="disk I/O error"):
        await storage.check()
    writing.fail = None
    await storage.check()
    async with storage.unit() as unit:
        assert await unit[IdempotencyKey].total() == 0
    await put(storage, *(key(f"k{n}") for n in range(10)))


async def test_a_full_disk_is_unavailable_for_writes_only_and_heals(watched: tuple[Storage, Watched]) -> None:
    storage, writing = watched
    await put(storage, payment("pay_1"))
    (pages,) = writing.execute("PRAGMA page_count").fetchone()
    writing.execute(f"PRAGMA max_page_count={pages}")
    big = payment("pay_2", description="x" * 100_000)
    with pytest.raises(Unavailable, match="full"):
        await put(storage, big)
    assert await read(storage, Payment, "pay_1") == payment("pay_1")
    writing.execute("PRAGMA max_page_count=1000000")
    await put(storage, big)


async def test_check_of_a_nearly_full_storage_fails_as_a_creation_would(
    watched: tuple[Storage, Watched], file_location: StorageLocation
) -> None:
    """Nearly full is not healthy, for a second after the last refusal or until something fits."""
    storage, writing = watched
    await put(storage, payment("pay_1"))
    await storage.check()
    (pages,) = writing.execute("PRAGMA page_count").fetchone()
    big = payment("pay_2", description="x" * 100_000)
    for heal in ("by time", "by room"):
        writing.execute(f"PRAGMA max_page_count={pages}")
        with pytest.raises(Unavailable, match="full"):
            await put(storage, big)
        with pytest.raises(Unavailable, match="no room"):
            await storage.check()
        if heal == "by time":
            await file_location.clock.advance(1)
        else:
            writing.execute("PRAGMA max_page_count=1000000")
            await put(storage, big)
        await storage.check()


async def test_a_check_fails_where_less_is_free_than_a_busy_second_writes(
    file_location: StorageLocation, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = await file_location.open()
    await storage.check()
    monkeypatch.setattr(room, "LEAST", 1 << 62)
    with pytest.raises(Unavailable, match="the disk is full"):
        await storage.check()
    monkeypatch.undo()
    await storage.check()


async def test_one_units_conflict_takes_back_its_own_writes_only(watched: tuple[Storage, Watched]) -> None:
    storage, writing = watched
    await put(storage, key("taken"))
    writing.seen.clear()
    ends = await asyncio.gather(
        put(storage, payment("pay_1")),
        put(storage, payment("pay_2"), key("taken")),
        put(storage, payment("pay_3")),
        return_exceptions=True,
    )
    assert [type(end) for end in ends] == [type(None), Conflict, type(None)]
    assert writing.count("COMMIT") == 1
    async with storage.unit() as unit:
        assert [found.id for found in await unit[Payment].find()] == ["pay_1", "pay_3"]


async def test_a_unit_cancelled_before_its_transaction_is_not_written(watched: tuple[Storage, Watched]) -> None:
    storage, writing = watched
    writing.gate.clear()
    first = asyncio.create_task(put(storage, payment("pay_1")))
    await turns_until(writing.reached.is_set)
    second = asyncio.create_task(put(storage, payment("pay_2"), job("j2")))
    third = asyncio.create_task(put(storage, payment("pay_3")))
    await asyncio.sleep(0)
    second.cancel()
    writing.gate.set()
    await asyncio.gather(first, third)
    with pytest.raises(asyncio.CancelledError):
        await second
    async with storage.unit() as unit:
        assert [found.id for found in await unit[Payment].find()] == ["pay_1", "pay_3"]


async def test_jobs_of_a_unit_cancelled_while_it_is_written_are_woken_up(
    watched: tuple[Storage, Watched], file_location: StorageLocation
) -> None:
    storage, writing = watched
    writing.gate.clear()
    task = asyncio.create_task(put(storage, job("j1")))
    await turns_until(writing.reached.is_set)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert file_location.woken_up == []
    writing.gate.set()
    await turns_until(lambda: bool(file_location.woken_up))
    assert file_location.woken_up == [["j1"]]
    assert await read(storage, Job, "j1") is not None


async def test_another_process_lock_is_waited_for_off_the_event_loop(file_location: StorageLocation) -> None:
    storage = await file_location.open()
    with closing(sqlite3.connect(file_location.where, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        task = asyncio.create_task(put(storage, payment("pay_1")))
        turns = iter(range(50))
        assert await turns_until(lambda: next(turns, None) is None) == 50
        assert not task.done()
        assert await read(storage, Payment, "pay_1") is None
        other.execute("COMMIT")
        await task
    assert await read(storage, Payment, "pay_1") is not None


async def test_a_lock_that_stays_is_unavailable(
    file_location: StorageLocation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_file, "BUSY", 0.02)
    storage = await file_location.open()
    with closing(sqlite3.connect(file_location.where, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(Unavailable, match="locked"):
            await put(storage, payment("pay_1"))
        with pytest.raises(Unavailable):
            await storage.check()
    await put(storage, payment("pay_1"))


async def test_too_many_waiting_units_are_refused(
    file_location: StorageLocation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committer, "QUEUE", 5)
    storage = await file_location.open()
    ends = await asyncio.gather(*(put(storage, key(f"k{n}")) for n in range(8)), return_exceptions=True)
    assert [type(end) for end in ends] == [type(None)] * 5 + [Unavailable] * 3


async def test_get_waits_in_a_thread_where_the_quick_read_meets_a_lock(file_location: StorageLocation) -> None:
    storage = await file_location.open()
    await put(storage, payment("pay_1"))

    class Locked:
        def execute(self, *_: Any) -> None:
            raise sqlite3.OperationalError("database is locked")

        def close(self) -> None: ...

    assert isinstance(storage, SqliteStorage)
    quick, storage._reading = storage._reading, Locked()  # type: ignore[assignment]  # in its place
    assert await read(storage, Payment, "pay_1") == payment("pay_1")
    storage._reading = quick


async def test_an_event_loop_that_ends_breaks_nothing_off(file_location: StorageLocation) -> None:
    """asyncio.run cancels every task, the committer too. Waiting units get an error, and the file stays intact."""
    storage = await file_location.open()
    assert isinstance(storage, SqliteStorage)
    tasks = [asyncio.create_task(put(storage, key(f"k{n}"))) for n in range(600)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    flushing = storage._committer._flushing
    assert flushing is not None
    flushing.cancel()
    ends = await asyncio.gather(*tasks, return_exceptions=True)
    assert {type(end) for end in ends} <= {type(None), Unavailable}
    assert Unavailable in {type(end) for end in ends}
    await put(storage, key("after"))
    async with storage.unit() as unit:
        written = {found.id for found in await unit[IdempotencyKey].find(limit=1000)}
    assert {f"k{n}" for n, end in enumerate(ends) if end is None} | {"after"} <= written


@pytest.mark.parametrize("what", ["a folder", "no database"])
async def test_a_file_that_cannot_be_opened_is_unavailable(tmp_path: Path, what: str) -> None:
    path = tmp_path / "app.db"
    if what == "a folder":
        path.mkdir()
    else:
        path.write_text("This is no database, but long enough to be looked at closely. " * 20)
    with pytest.raises(Unavailable, match="could not open"):
        await SqliteStorage.open(path, VirtualClock())


LOAD = """
import asyncio, sys
sys.path.insert(0, sys.argv[2])
from cambist.adapters.clock import SystemClock
from cambist.adapters.storage.sqlite.sqlite import SqliteStorage
from tests.contracts.storage_kit import job, key, payment, put

async def create(storage, worker):
    n = 0
    while True:
        name = f"{sys.argv[3]}_{worker}_{n}"
        await put(storage, payment(f"pay_{name}"), key(f"key_{name}"), job(f"job_{name}"))
        sys.stdout.write(name + "\\n")
        sys.stdout.flush()
        n += 1

async def main():
    storage = await SqliteStorage.open(sys.argv[1], SystemClock())
    await asyncio.gather(*(create(storage, worker) for worker in range(16)))

asyncio.run(main())
"""


@pytest.mark.drill
def test_a_killed_process_loses_no_acknowledged_commit(tmp_path: Path) -> None:
    """Nothing is lost by kill -9 at any await (ARCHITECTURE.md "Units and jobs"). Three lives on one file, each killed
    under load."""
    path, root = tmp_path / "app.db", str(Path(__file__).parents[2])
    told: set[str] = set()
    for life in range(3):
        process = subprocess.Popen(
            [sys.executable, "-c", LOAD, str(path), root, str(life)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        for _ in range(150 + life * 37):
            line = process.stdout.readline()
            assert line, "the load ended by itself"
            told.add(line.strip())
        process.send_signal(signal.SIGKILL)
        rest = process.stdout.read().splitlines(keepends=True)
        told.update(line.strip() for line in rest if line.endswith("\n"))
        process.wait()
        process.stdout.close()

    async def everything() -> tuple[set[str], set[str], set[str]]:
        storage = await SqliteStorage.open(path, SystemClock())
        found = [
            {each.id.partition("_")[2] async for batch in storage.scan(kind) for each in batch}
            for kind in (Payment, IdempotencyKey, Job)
        ]
        await storage.check()
        await storage.close()
        return found[0], found[1], found[2]

    payments, keys, jobs = asyncio.run(everything())
    assert payments == keys == jobs, "a unit is there in part"
    assert told <= payments
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


async def test_waiting_process_has_its_turn_before_the_next_batch(file_location: StorageLocation) -> None:
    storage = await file_location.open()
    with closing(Turnstile(Path(file_location.where))) as waiting:
        with waiting.held():
            task = asyncio.create_task(put(storage, payment("pay_1")))
            turns = iter(range(50))
            assert await turns_until(lambda: next(turns, None) is None) == 50
            assert not task.done()
        await task
    assert await read(storage, Payment, "pay_1") is not None


async def test_a_unit_that_waits_for_another_process_says_so(file_location: StorageLocation) -> None:
    storage = await file_location.open()
    with (
        closing(Turnstile(Path(file_location.where))) as looking,
        closing(sqlite3.connect(file_location.where, isolation_level=None)) as other,
    ):
        assert looking.is_free()
        other.execute("BEGIN IMMEDIATE")
        task = asyncio.create_task(put(storage, payment("pay_1")))
        await turns_until(lambda: not looking.is_free())
        other.execute("COMMIT")
        await task
        assert looking.is_free()


async def test_a_turn_that_never_ends_stops_nobody(
    file_location: StorageLocation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that was stopped while it waited."""
    monkeypatch.setattr(turnstile, "COURTESY", 0.02)
    storage = await file_location.open()
    with closing(Turnstile(Path(file_location.where))) as stopped, stopped.held():
        await put(storage, payment("pay_1"))
        assert isinstance(storage, SqliteStorage)
        assert storage._committer._turnstile.is_free(), "it is not waited for each time"
        await put(storage, payment("pay_2"))


async def test_a_deleted_row_is_overwritten_in_the_file(file_location: StorageLocation) -> None:
    """Persons who are forgotten do not stay behind in free pages."""
    storage = await file_location.open()
    payments = [payment(f"pay_{number}", description=f"CANARY{number:06}" * 20) for number in range(200)]
    await put(storage, *payments)
    async with storage.unit() as unit:
        for each in payments[50:150]:
            unit[Payment].remove(each)
        await unit.commit()
    await storage.close()
    with closing(sqlite3.connect(file_location.where)) as other:
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = Path(file_location.where).read_bytes()
    left = [number for number in range(200) if f"CANARY{number:06}".encode() in content]
    assert left == [*range(50), *range(150, 200)]
