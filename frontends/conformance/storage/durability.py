"""Contract of units that need not reach the disk (ports/storage.py: Unit.commit). Readers see no difference, and
durable units lose nothing because of them."""

import asyncio
from typing import Any

from ....core.domain.accounts.idempotency import IdempotencyKey
from ....core.domain.payments.payments import Payment
from ....ports.faults import Conflict, Stale
from ....ports.jobs import Job
from ....ports.storage import Storage
from ..expectations import must_raise
from .kit import StorageLocation, Tally, job, key, must_read, payment, read


async def put_lightly(storage: Storage, *records: Any) -> None:
    """Add records in one unit that is not durable."""
    async with storage.unit() as unit:
        for record in records:
            unit[type(record)].add(record)
        await unit.commit(durable=False)


async def test_non_durable_commit_is_seen_at_once_by_everybody(place: StorageLocation) -> None:
    must = "a commit that is not durable must be seen at once by every reader, and wake the workers"
    storages = [await place.open() for _ in range(2 if place.is_shared else 1)]
    for number in range(3):
        made = payment(f"pay_{number}", sequence=number)
        await put_lightly(storages[0], made, job(f"j{number}"))
        assert [await read(storage, Payment, made.id) for storage in storages] == [made] * len(storages), must
    assert place.woken_up == [["j0"], ["j1"], ["j2"]], must
    async with storages[-1].unit() as unit:
        assert await unit[Payment].total() == 3, must


async def test_non_durable_commit_obeys_the_same_rules(storage: Storage) -> None:
    must = "a commit that is not durable must keep unique rules and versions"
    await put_lightly(storage, payment("pay_1"), key("k1"))
    with must_raise(must, Conflict) as refused:
        await put_lightly(storage, payment("pay_2"), key("k1"))
    assert refused.value.rule == "idempotency_keys_id", must
    async with storage.unit() as late, storage.unit() as first:
        first[Payment].save(payment("pay_1", sequence=1))
        await first.commit(durable=False)
        late[Payment].save(payment("pay_1", sequence=2))
        late[IdempotencyKey].add(key("k2"))
        with must_raise(must, Stale):
            await late.commit(durable=False)
    assert (await must_read(storage, Payment, "pay_1")).sequence == 1, must
    assert await read(storage, Payment, "pay_2") is None, must
    assert await read(storage, IdempotencyKey, "k2") is None, must


async def test_sums_move_whether_durable_or_not(storage: Storage) -> None:
    must = "each increase must count, durable or not"
    await put_lightly(storage, Tally(id="t1", owner="o"))

    async def increase(number: int) -> None:
        async with storage.unit() as unit:
            unit[Tally].increase("t1", "count", 1)
            await unit.commit(durable=number % 2 == 0)

    await asyncio.gather(*(increase(number) for number in range(40)))
    assert (await must_read(storage, Tally, "t1")).count == 40, must


async def test_among_many_of_both_kinds_exactly_the_right_ones_are_refused(place: StorageLocation) -> None:
    must = "of units with one key, exactly one must win, durable or not"
    storages = [await place.open() for _ in range(2 if place.is_shared else 1)]

    async def add(number: int) -> bool:
        try:
            async with storages[number % len(storages)].unit() as unit:
                unit[Payment].add(payment(f"pay_{number}"))
                unit[IdempotencyKey].add(key(f"k{number // 2}", f"pay_{number}"))
                await unit.commit(durable=number % 3 == 0)
        except Conflict:
            return False
        return True

    won = await asyncio.gather(*(add(number) for number in range(60)))
    async with storages[0].unit() as unit:
        assert {found.id for found in await unit[Payment].find()} == {f"pay_{n}" for n in range(60) if won[n]}, must
    assert [won[n] + won[n + 1] for n in range(0, 60, 2)] == [1] * 30, must


async def test_non_durable_commit_survives_a_close(shared_location: StorageLocation) -> None:
    must = "a commit that is not durable must survive a close"
    first = await shared_location.open()
    await put_lightly(first, payment("pay_1"), job("j1"))
    await first.close()
    again = await shared_location.open()
    assert await read(again, Payment, "pay_1") == payment("pay_1"), must
    assert await read(again, Job, "j1") == job("j1"), must
