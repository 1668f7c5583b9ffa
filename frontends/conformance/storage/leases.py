"""Contract of claims by kind and of lease renewal (ports/storage.py: `claim`, `renew`)."""

import asyncio
from datetime import timedelta

import msgspec
import pytest

from ....ports.faults import Stale
from ....ports.jobs import Job
from ....ports.storage import Storage
from ..expectations import must_raise
from .kit import START, StorageLocation, job, only, put, read


async def _claimed(storage: Storage, limit: int = 10, **which: str) -> list[str]:
    return [taken.id for taken in await storage.claim(limit, 10, **which)]


async def test_a_claim_by_kind_takes_only_jobs_of_that_kind_oldest_due_first(storage: Storage) -> None:
    must = "a claim by kind must take due jobs of that kind only, the oldest due first"
    await put(
        storage, job("a:1", -9), job("b:2", -1), job("b:1", -2), job("b:later", 5), job("b:0", -1), job("c:1", -8)
    )
    assert await _claimed(storage, 2, kind="b") == ["b:1", "b:0"], must
    assert await _claimed(storage, kind="b") == ["b:2"], must
    assert await _claimed(storage, kind="b") == [], must
    assert await _claimed(storage) == ["a:1", "c:1"], must


async def test_a_claim_but_for_a_kind_takes_all_others_oldest_due_first(storage: Storage) -> None:
    must = "a claim but for a kind must take all other due jobs, the oldest due first"
    await put(storage, job("b:1", -9), job("a:1", -1), job("c:1", -2), job("b", -5), job("c:later", 5))
    assert await _claimed(storage, 2, but_kind="b") == ["b", "c:1"], must
    assert await _claimed(storage, but_kind="b") == ["a:1"], must
    assert await _claimed(storage) == ["b:1"], must


@pytest.mark.parametrize("other", ["b", "ba:1", "b.c:1", "B:1", "a:b:1", "b-:1"])
async def test_a_kind_is_all_that_stands_before_the_colon(storage: Storage, other: str) -> None:
    """`webhook.deliver` and `webhook.deliver2` are two kinds."""
    must = "a kind must be compared as a whole: all that stands before the first colon"
    await put(storage, job("b:1"), job(other))
    assert await _claimed(storage, kind="b") == ["b:1"], must
    assert await _claimed(storage, but_kind="b") == [other], must


async def test_one_kind_and_all_but_one_are_two_questions(storage: Storage) -> None:
    must = "a claim of one kind and but for one at once must be a ValueError"
    with must_raise(must, ValueError):
        await storage.claim(1, 10, kind="a", but_kind="b")


async def test_many_workers_claim_a_kind_without_taking_one_twice(storage: Storage) -> None:
    must = "no job may be given to two workers, and none may be lost"
    await put(storage, *(job(f"b:{number}") for number in range(40)), *(job(f"a:{number}") for number in range(40)))
    found = await asyncio.gather(*(_claimed(storage, 7, kind="b") for _ in range(8)))
    taken = [name for part in found for name in part]
    assert sorted(taken) == sorted(f"b:{number}" for number in range(40)), must


async def test_a_renewed_lease_lasts_so_long_from_now(place: StorageLocation) -> None:
    must = "a renewed lease must last `lease` seconds from the renewal"
    storage = await place.open()
    await put(storage, job("a:1"), job("a:2"))
    first, second = await storage.claim(2, 10)
    await place.clock.advance(9)
    await storage.renew([first], 10)
    await place.clock.advance(2)
    assert await _claimed(storage) == [second.id], must
    await place.clock.advance(7.999999)
    assert await _claimed(storage) == [], must
    await place.clock.advance(0.000001)
    assert await _claimed(storage) == [first.id], must


async def test_renewing_keeps_the_version_so_that_work_can_save_or_remove(storage: Storage) -> None:
    must = "a renewal must change the lease only, and not the version"
    await put(storage, job("a:1"), job("a:2"))
    saved, removed = taken = await storage.claim(2, 10)
    await storage.renew(taken, 20)
    present = await read(storage, Job, "a:1")
    assert present == msgspec.structs.replace(saved, leased_until=START + timedelta(seconds=20)), must
    async with storage.unit() as unit:
        unit[Job].save(msgspec.structs.replace(saved, argument="on", leased_until=None))
        unit[Job].remove(removed)
        await unit.commit()
    assert await _claimed(storage) == ["a:1"], must


async def test_a_job_that_changed_since_its_claim_is_not_renewed(place: StorageLocation) -> None:
    """The worker has released the job or another worker has claimed it, so the lease is no longer ours."""
    must = "a job that changed since its claim must not be renewed: the lease is another worker's"
    storage = await place.open()
    await put(storage, job("a:freed"), job("a:gone"), job("a:taken"), job("a:free"))
    free, freed, gone, taken = await storage.claim(4, 10)
    async with storage.unit() as unit:
        unit[Job].save(msgspec.structs.replace(freed, leased_until=None))
        unit[Job].remove(gone)
        await unit.commit()
    await place.clock.advance(11)
    [again] = [each for each in await storage.claim(10, 5) if each.id == taken.id]
    async with storage.unit() as unit:
        unit[Job].save(msgspec.structs.replace(free, version=free.version + 1, leased_until=None))
        await unit.commit()
    await storage.renew([freed, gone, taken, free], 1000)
    assert await read(storage, Job, taken.id) == again, must
    await place.clock.advance(5)
    assert sorted(await _claimed(storage)) == ["a:free", "a:freed", "a:taken"], must


async def test_renewed_job_requested_meanwhile_is_stale_when_removed(storage: Storage) -> None:
    """Requests increase the sum `asked` (ports/jobs.py), and a renewal does not hide that."""
    must = "a renewal must not hide that the job was requested meanwhile"
    await put(storage, job("a:1"))
    taken = only(await storage.claim(1, 10), must)
    async with storage.unit() as unit:
        unit[Job].accrue(job("a:1", asked=1))
        await unit.commit()
    await storage.renew([taken], 20)
    present = await read(storage, Job, "a:1")
    assert present == msgspec.structs.replace(taken, asked=1, leased_until=START + timedelta(seconds=20)), must
    async with storage.unit() as unit:
        unit[Job].remove(taken)
        with must_raise(must, Stale):
            await unit.commit()


async def test_renewing_nothing_is_nothing_and_a_lease_is_longer_than_nothing(storage: Storage) -> None:
    must = "a lease must be longer than nothing"
    await storage.renew([], 10)
    with must_raise(must, ValueError):
        await storage.renew([], 0)


async def test_renewals_beside_units_on_the_same_jobs_wait_for_nobody(storage: Storage) -> None:
    """A unit and a renewal never abort one another, in whatever order the unit writes its jobs."""
    must = "a renewal beside units on the same jobs must neither wait nor be lost"
    names = [f"a:{number}" for number in range(20)]
    await put(storage, *(job(name) for name in names))
    taken = await storage.claim(20, 10)

    async def ask(backwards: bool) -> None:
        for _ in range(10):
            async with storage.unit() as unit:
                for name in sorted(names, reverse=backwards):
                    unit[Job].increase(name, "asked", 1)
                await unit.commit()

    async def renew() -> None:
        for _ in range(20):
            await storage.renew(taken, 10)

    await asyncio.gather(ask(backwards=False), ask(backwards=True), renew(), renew())
    for name in names:
        found = await read(storage, Job, name)
        assert found is not None, must
        assert (found.asked, found.version) == (20, 1), must
