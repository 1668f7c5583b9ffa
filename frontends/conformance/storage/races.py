"""Contract under concurrency: exactly the right unit wins, sums are never lost, and cancelled waiters do no harm."""

import asyncio

import msgspec

from ....core.domain.accounts.idempotency import IdempotencyKey
from ....core.domain.money import Rub
from ....core.domain.payments.payments import Payment
from ....ports.faults import Conflict, Stale
from ....ports.jobs import Job
from ....ports.storage import Storage
from ..expectations import must_raise
from .kit import StorageLocation, Tally, job, key, must_read, payment, put, read


async def open_some(place: StorageLocation) -> list[Storage]:
    """Open two storages on one database, or one if the place does not allow a second."""
    return [await place.open() for _ in range(2 if place.is_shared else 1)]


async def outcome(storage: Storage, *records: object) -> str:
    """Return `won`, or the unique rule that the unit broke."""
    try:
        await put(storage, *records)
    except Conflict as conflict:
        return conflict.rule
    return "won"


async def test_200_units_with_20_keys_have_one_winner_each(place: StorageLocation) -> None:
    """Two requests with the same new key at once, exactly one creates (docs/concepts.md "Idempotency")."""
    must = "of units at once with one key exactly one must win, and the others must leave nothing"
    storages = await open_some(place)
    outcomes = await asyncio.gather(
        *(
            outcome(storages[n % len(storages)], payment(f"pay_{n}"), key(f"key_{n % 20}", f"pay_{n}"), job(f"j{n}"))
            for n in range(200)
        )
    )
    assert sorted(set(outcomes)) == ["idempotency_keys_id", "won"], must
    winners = {n for n, end in enumerate(outcomes) if end == "won"}
    assert len(winners) == 20, must
    for n in range(20):
        holder = await must_read(storages[0], IdempotencyKey, f"key_{n}")
        assert int(holder.resource_id.removeprefix("pay_")) in winners, must
    for storage in storages:
        async with storage.unit() as unit:
            assert {found.id for found in await unit[Payment].find()} == {f"pay_{n}" for n in winners}, must
            assert await unit[Job].total() == 20, must
    assert sorted(name for names in place.woken_up for name in names) == sorted(f"j{n}" for n in winners), must


async def test_simultaneous_saves_of_one_version_have_one_winner(place: StorageLocation) -> None:
    must = "of saves of one version at once exactly one must win, and the others must be Stale and leave nothing"
    storages = await open_some(place)
    await put(storages[0], payment("pay_1"))

    async def save(n: int) -> bool:
        async with storages[n % len(storages)].unit() as unit:
            unit[Payment].save(payment("pay_1", sequence=n + 1))
            unit[IdempotencyKey].add(key(f"k{n}"))
            try:
                await unit.commit()
            except Stale:
                return False
            return True

    won = await asyncio.gather(*(save(n) for n in range(50)))
    assert sum(won) == 1, must
    stored = await must_read(storages[0], Payment, "pay_1")
    assert (stored.version, stored.sequence) == (1, won.index(True) + 1), must
    async with storages[-1].unit() as unit:
        assert [found.id for found in await unit[IdempotencyKey].find()] == [f"k{won.index(True)}"], must


async def test_losers_that_read_again_all_get_through(place: StorageLocation) -> None:
    must = "each unit that reads again after Stale must get through, and none may be lost"
    storages = await open_some(place)
    await put(storages[0], payment("pay_1"))

    async def step(n: int) -> None:
        while True:
            async with storages[n % len(storages)].unit() as unit:
                record = await unit[Payment].get("pay_1")
                assert record is not None, must
                unit[Payment].save(msgspec.structs.replace(record, sequence=record.sequence + 1))
                try:
                    await unit.commit()
                except Stale:
                    continue
                return

    await asyncio.gather(*(step(n) for n in range(12)))
    stored = await must_read(storages[0], Payment, "pay_1")
    assert (stored.version, stored.sequence) == (12, 12), must


async def test_50_increases_beside_saves_are_all_there(place: StorageLocation) -> None:
    """ports/storage.py: "Sums that every request moves commute, and so never go stale"."""
    must = "each increase must count, whatever is saved at the same time"
    storages = await open_some(place)
    await put(storages[0], Tally(id="t1", owner="a"))

    async def increase(n: int) -> None:
        async with storages[n % len(storages)].unit() as unit:
            unit[Tally].increase("t1", "count", n)
            unit[Tally].increase("t1", "pending", -1)
            await unit.commit()

    async def rename(n: int) -> int:
        async with storages[n % len(storages)].unit() as unit:
            record = await unit[Tally].get("t1")
            assert record is not None, must
            unit[Tally].save(msgspec.structs.replace(record, owner=f"owner {n}"))
            try:
                await unit.commit()
            except Stale:
                return 0
            return 1

    ends = await asyncio.gather(*(increase(n) if n % 2 else rename(n) for n in range(100)))
    stored = await must_read(storages[0], Tally, "t1")
    assert stored.count == sum(range(1, 100, 2)), must
    assert stored.pending == Rub(-50), must
    assert stored.version == sum(end or 0 for end in ends) >= 1, must


async def test_units_that_write_the_same_rows_in_opposite_orders_all_commit(place: StorageLocation) -> None:
    """On Postgres they deadlock; the server aborts one, and the storage retries it."""
    must = "units that write the same rows in opposite orders must all commit"
    storages = await open_some(place)
    await put(storages[0], Tally(id="t1", owner="a"), Tally(id="t2", owner="b"))

    async def increase(n: int) -> None:
        async with storages[n % len(storages)].unit() as unit:
            for name in ("t1", "t2") if n % 2 else ("t2", "t1"):
                unit[Tally].increase(name, "count", 1)
            await unit.commit()

    await asyncio.gather(*(increase(n) for n in range(30)))
    for name in ("t1", "t2"):
        assert (await must_read(storages[0], Tally, name)).count == 30, must


async def test_cancelled_committers_leave_whole_units_or_nothing(place: StorageLocation) -> None:
    """A disconnecting client cancels its request at any point. Each unit is written completely or not at all, other
    units are unaffected, and every stored job got its wake-up."""
    must = "a cancelled commit must be written as a whole or not at all"
    storage = await place.open()

    async def create(n: int) -> None:
        await put(storage, payment(f"pay_{n}"), key(f"key_{n}"), job(f"j{n}"))

    tasks = []
    for n in range(90):
        tasks.append(asyncio.create_task(create(n)))
        if n % 10 == 9:
            await read(storage, Payment, "pay_0")
        if n % 3 == 2:
            # The cancelled task may be unstarted, waiting, or in the middle of its write.
            tasks[n - n % 11].cancel()
    ends = await asyncio.gather(*tasks, return_exceptions=True)
    assert {type(end) for end in ends} <= {type(None), asyncio.CancelledError}, must
    await put(storage, payment("pay_after"))
    async with storage.unit() as unit:
        payments = {found.id for found in await unit[Payment].find()} - {"pay_after"}
        assert {found.id.replace("key", "pay") for found in await unit[IdempotencyKey].find()} == payments, must
        jobs = {found.id.replace("j", "pay_") for found in await unit[Job].find()}
    assert jobs == payments, must
    assert {f"pay_{n}" for n, end in enumerate(ends) if end is None} <= payments, must


async def test_closing_finishes_what_is_being_written(shared_location: StorageLocation) -> None:
    must = "a close must finish the commits under way"
    storage = await shared_location.open()
    tasks = [asyncio.create_task(put(storage, payment(f"pay_{n}"))) for n in range(40)]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    await storage.close()
    ends = await asyncio.gather(*tasks, return_exceptions=True)
    written = {f"pay_{n}" for n, end in enumerate(ends) if end is None}
    assert written, must
    again = await shared_location.open()
    async with again.unit() as unit:
        assert written <= {found.id for found in await unit[Payment].find()}, must


async def test_a_unit_reads_nothing_half_done(place: StorageLocation) -> None:
    """A reader beside a writer of pairs sees both halves of a unit or neither."""
    must = "a read must see a commit as a whole or not at all"
    storages = await open_some(place)
    await put(storages[0], Tally(id="t1", owner="a"), Tally(id="t2", owner="b"))
    over = asyncio.Event()

    async def write() -> int:
        written = 0
        while not over.is_set():
            async with storages[0].unit() as unit:
                unit[Tally].increase("t1", "count", 1)
                unit[Tally].increase("t2", "count", -1)
                await unit.commit()
            written += 1
            await asyncio.sleep(0)  # noqa: TID251 - lets the reader on; no time passes
        return written

    async def watch() -> None:
        for _ in range(20):
            async with storages[-1].snapshot() as snapshot:
                one, two = await snapshot[Tally].get("t1"), await snapshot[Tally].get("t2")
                assert one is not None, must
                assert two is not None, must
                assert one.count + two.count == 0, must
                async with storages[-1].unit() as unit:
                    assert sum(tally.count for tally in await unit[Tally].find()) == 0, must
            await asyncio.sleep(0)  # noqa: TID251 - lets the writer on; no time passes
        over.set()

    written, _ = await asyncio.gather(write(), watch())
    assert written > 1, must


async def test_a_unit_holds_no_lock_while_it_thinks(place: StorageLocation) -> None:
    """No transaction and no lock is ever held across an await (ARCHITECTURE.md "Units and jobs")."""
    must = "an open unit must hold no lock: other units must commit meanwhile"
    storages = await open_some(place)
    await put(storages[0], payment("pay_1"))
    async with storages[0].unit() as slow:
        record = await slow[Payment].get("pay_1")
        assert record is not None, must
        slow[Payment].save(msgspec.structs.replace(record, sequence=1))
        async with storages[-1].unit() as quick:
            quick[Payment].save(msgspec.structs.replace(record, sequence=2))
            await quick.commit()
        with must_raise(must, Stale):
            await slow.commit()
    assert (await must_read(storages[0], Payment, "pay_1")).sequence == 2, must
