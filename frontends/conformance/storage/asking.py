"""Contract that webhook delivery depends on (ports/storage.py, ports/jobs.py): many units can request one job, a job
requested meanwhile cannot be removed, and quick reads."""

import asyncio

import msgspec
import pytest

from ....core.domain.money import Rub
from ....ports.faults import Stale
from ....ports.jobs import Job
from ....ports.storage import OneOf, Storage
from ..expectations import must_raise
from .kit import Sample, StorageLocation, Tally, job, must_read, only, put, read
from .reads import CRITERIA, ORDERS, SAMPLES


async def ask(storage: Storage, job_id: str = "a") -> None:
    async with storage.unit() as unit:
        unit[Job].accrue(job(job_id, asked=1))
        await unit.commit()


async def test_asking_writes_the_job_or_counts_where_it_stands(storage: Storage) -> None:
    must = "a request must write the job, or count once on the job that is there"
    await ask(storage)
    assert await read(storage, Job, "a") == job("a", asked=1), must
    await asyncio.gather(*(ask(storage) for _ in range(20)))
    assert await read(storage, Job, "a") == job("a", asked=21), must


async def test_asking_wake_ups_and_makes_it_claimable(place: StorageLocation) -> None:
    must = "each request must wake the workers, and the job must be claimed once"
    storage = await place.open()
    await ask(storage)
    await ask(storage)
    assert place.woken_up == [["a"], ["a"]], must
    assert [taken.id for taken in await storage.claim(10, 60)] == ["a"], must


async def test_asking_leaves_the_lease_and_the_claim_says_how_often_it_was_asked(storage: Storage) -> None:
    must = "a request must leave the lease, and be counted in the job"
    await ask(storage)
    await ask(storage)
    taken = only(await storage.claim(10, 60), must)
    assert taken.asked == 2, must
    await ask(storage)
    assert await must_read(storage, Job, "a") == msgspec.structs.replace(taken, asked=3), must
    assert await storage.claim(10, 60) == [], must


@pytest.mark.parametrize("asks_first", [True, False])
async def test_asking_at_the_moment_of_removing_is_not_forgotten(storage: Storage, asks_first: bool) -> None:
    """The rule holds in either order, and if both share one transaction."""
    must = "a request at the moment of the removal must leave the job, or make the removal Stale"
    for number in range(20):
        job_id = f"a{number}"
        await ask(storage, job_id)
        taken = only(await storage.claim(10, 60), must)

        async def remove(taken: Job = taken) -> None:
            async with storage.unit() as unit:
                unit[Job].remove(taken)
                await unit.commit()

        both = [ask(storage, job_id), remove()]
        outcomes = await asyncio.gather(*(both if asks_first else reversed(both)), return_exceptions=True)
        assert all(outcome is None or isinstance(outcome, Stale) for outcome in outcomes), must
        went = not any(isinstance(outcome, Stale) for outcome in outcomes)
        assert (await must_read(storage, Job, job_id)).asked == (1 if went else 2), must
        assert [each.id for each in await storage.claim(10, 60)] == ([job_id] if went else []), must


async def test_removing_a_job_that_was_requested_meanwhile_is_stale(storage: Storage) -> None:
    """Removing the job would lose the work that the requesting unit added."""
    must = "removing a job that was requested meanwhile must be Stale"
    await ask(storage)
    taken = only(await storage.claim(10, 60), must)
    await ask(storage)
    async with storage.unit() as unit:
        unit[Job].remove(taken)
        with must_raise(must, Stale):
            await unit.commit()
    async with storage.unit() as unit:
        unit[Job].remove(msgspec.structs.replace(taken, asked=2))
        await unit.commit()
    assert await read(storage, Job, "a") is None, must


async def test_request_after_the_removal_writes_the_job_anew(storage: Storage) -> None:
    must = "a request after the removal must write the job anew"
    await ask(storage)
    taken = only(await storage.claim(10, 60), must)
    async with storage.unit() as unit:
        unit[Job].remove(taken)
        await unit.commit()
    await ask(storage)
    assert await read(storage, Job, "a") == job("a", asked=1), must


async def test_request_and_removal_at_once_forget_no_work(storage: Storage) -> None:
    """Afterwards the job exists exactly if a request came after the worker read it."""
    must = "of a request and a removal at once, no work may be forgotten"
    for _ in range(20):
        await ask(storage)
        taken = only(await storage.claim(10, 60), must)

        async def remove(seen: Job = taken) -> bool:
            async with storage.unit() as unit:
                unit[Job].remove(seen)
                try:
                    await unit.commit()
                except Stale:
                    return False
                return True

        removed, _ = await asyncio.gather(remove(), ask(storage))
        left = await must_read(storage, Job, "a")
        assert (left.asked, left.leased_until is None) == ((1, True) if removed else (2, False)), must
        async with storage.unit() as unit:
            unit[Job].remove(left)
            await unit.commit()


async def test_a_save_of_the_job_leaves_how_often_it_was_asked_for(storage: Storage) -> None:
    must = "saving a job must leave the count of its requests"
    await ask(storage)
    taken = only(await storage.claim(10, 60), must)
    await ask(storage)
    async with storage.unit() as unit:
        unit[Job].save(msgspec.structs.replace(taken, leased_until=None))
        await unit.commit()
    assert (await must_read(storage, Job, "a")).asked == 2, must


@pytest.mark.parametrize("field", ["count", "pending"])
async def test_removing_a_record_whose_sums_moved_is_stale(storage: Storage, field: str) -> None:
    """ports/storage.py: "Commit raises Stale when it changed, sums included"."""
    must = "removing a record whose sums changed must be Stale"
    await put(storage, Tally(id="t1", owner="a", count=1, pending=Rub(5)))
    seen = await must_read(storage, Tally, "t1")
    async with storage.unit() as unit:
        unit[Tally].increase("t1", field, 1)
        await unit.commit()
    async with storage.unit() as unit:
        unit[Tally].remove(seen)
        with must_raise(must, Stale):
            await unit.commit()
    async with storage.unit() as unit:
        unit[Tally].remove(await must_read(storage, Tally, "t1"))
        await unit.commit()
    assert await read(storage, Tally, "t1") is None, must


class TestQuick:
    """ports/storage.py: "`quick`: ... A storage may then read them at once". The records and their order stay the
    same."""

    async def test_it_finds_what_find_finds(self, storage: Storage) -> None:
        must = "a quick read must find the same records as any other, in the same order"
        await put(storage, *SAMPLES)
        for _ in range(2):  # the second round uses the prepared statement
            for criteria, expected in CRITERIA:
                async with storage.unit() as unit:
                    found = await unit[Sample].find(quick=True, **criteria)
                    assert found == await unit[Sample].find(**criteria), must
                assert "".join(each.id for each in found) == expected, f"{must}: {criteria}"

    async def test_in_every_order(self, storage: Storage) -> None:
        must = "a quick read must keep the order, the limit and the offset"
        await put(storage, *SAMPLES)
        for order, expected in ORDERS.items():
            async with storage.unit() as unit:
                for limit in (0, 1, 3, 10):
                    found = await unit[Sample].find(order=order, limit=limit, quick=True)
                    assert "".join(each.id for each in found) == expected[:limit], f"{must}: {order}"
                for offset in range(5):
                    found = await unit[Sample].find(order=order, limit=2, offset=offset, quick=True)
                    assert "".join(each.id for each in found) == expected[offset : offset + 2], f"{must}: {order}"

    async def test_criteria_with_many_values_find_them_all(self, storage: Storage) -> None:
        """Any number of values is allowed; a storage sends them in few query shapes."""
        must = "OneOf must find the records of each of its values"
        await put(storage, *(Sample(id=f"s{number:03}", number=number) for number in range(70)))
        async with storage.unit() as unit:
            for size in (1, 2, 3, 4, 5, 8, 9, 31, 33, 64, 65):
                wanted = tuple(range(0, 2 * size, 2))
                found = await unit[Sample].find(number=OneOf(wanted), limit=100, quick=True)
                assert [each.number for each in found] == [number for number in wanted if number < 70], must

    async def test_it_sees_the_last_commit(self, storage: Storage) -> None:
        must = "a quick read must see the last commit"
        for number in range(5):
            await put(storage, Sample(id=f"s{number}"))
            async with storage.unit() as unit:
                assert len(await unit[Sample].find(quick=True)) == number + 1, must
