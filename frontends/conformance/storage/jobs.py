"""Contract of a storage's jobs: claims, leases and due times (ports/storage.py)."""

import asyncio
from datetime import datetime, timedelta

import msgspec
import pytest

from ....core.domain.payments.payments import Payment
from ....ports.faults import Conflict, Stale
from ....ports.jobs import Job
from ....ports.storage import Storage
from .kit import START, StorageLocation, job, must_read, payment, put, read


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


async def claimed(storage: Storage, limit: int = 10, lease: float = 60) -> list[str]:
    return [taken.id for taken in await storage.claim(limit, lease)]


async def test_claim_takes_due_jobs_oldest_due_first_and_at_most_limit(storage: Storage) -> None:
    await put(storage, job("c", -1), job("a", 0), job("z", -5), job("later", 0.000001), job("b", -1))
    assert await claimed(storage, 2) == ["z", "b"]
    assert await claimed(storage, 2) == ["c", "a"]
    assert await claimed(storage, 2) == []


async def test_a_claimed_job_is_returned_as_it_now_stands(storage: Storage) -> None:
    await put(storage, job("a"))
    (taken,) = await storage.claim(1, 2.5)
    assert taken == job("a", attempts=1, version=1, leased_until=at(2.5))
    assert await read(storage, Job, "a") == taken


async def test_a_claim_takes_a_job_once_also_beside_a_snapshot(storage: Storage) -> None:
    """A claim must not return one job several times to fill its limit."""
    await put(storage, job("a"), job("b"))
    async with storage.snapshot() as seen:
        assert await seen[Job].total() == 2
        assert await claimed(storage) == ["a", "b"]
        assert await seen[Job].get("a") == job("a")
    assert (await must_read(storage, Job, "a")).attempts == 1


async def test_claim_of_nothing_takes_nothing(storage: Storage) -> None:
    assert await claimed(storage) == []
    await put(storage, job("a"))
    assert await claimed(storage, limit=0) == []
    with pytest.raises(ValueError, match="lease"):
        await storage.claim(1, 0)
    assert await read(storage, Job, "a") == job("a")


async def test_a_job_is_free_again_when_its_lease_ends(place: StorageLocation) -> None:
    """When a worker dies, its lease expires and another worker claims the job (ports/jobs.py)."""
    storage = await place.open()
    await put(storage, job("a"))
    assert await claimed(storage, lease=10) == ["a"]
    await place.clock.advance(9.999999)
    assert await claimed(storage) == []
    await place.clock.advance(0.000001)
    (again,) = await storage.claim(1, 10)
    assert (again.attempts, again.version, again.leased_until) == (2, 2, at(20))


async def test_due_is_judged_by_the_storages_clock(place: StorageLocation) -> None:
    storage = await place.open()
    await put(storage, job("a", 30))
    assert await storage.now() == START
    assert await claimed(storage) == []
    await place.clock.advance(30)
    assert await storage.now() == at(30)
    assert await claimed(storage) == ["a"]


async def test_a_job_moved_or_freed_by_its_worker_is_claimed_accordingly(place: StorageLocation) -> None:
    storage = await place.open()
    await put(storage, job("a"), job("b"))
    for taken in await storage.claim(2, 60):
        async with storage.unit() as unit:
            unit[Job].save(msgspec.structs.replace(taken, due=at(5 if taken.id == "a" else 7), leased_until=None))
            await unit.commit()
    assert await claimed(storage) == []
    await place.clock.advance(6)
    assert await claimed(storage) == ["a"]
    await place.clock.advance(1)
    assert await claimed(storage) == ["b"]


async def test_a_worker_that_lost_its_lease_cannot_end_the_job(place: StorageLocation) -> None:
    storage = await place.open()
    await put(storage, job("a"))
    (first,) = await storage.claim(1, 10)
    await place.clock.advance(10)
    (second,) = await storage.claim(1, 10)
    async with storage.unit() as unit:
        unit[Job].remove(first)
        with pytest.raises(Stale):
            await unit.commit()
    async with storage.unit() as unit:
        unit[Job].remove(second)
        await unit.commit()
    await place.clock.advance(100)
    assert await claimed(storage) == []


async def test_a_job_removed_and_queued_again_is_claimed_once(place: StorageLocation) -> None:
    storage = await place.open()
    await put(storage, job("a", 5))
    async with storage.unit() as unit:
        unit[Job].remove(job("a", 5))
        unit[Job].add(job("a", 8))
        await unit.commit()
    await place.clock.advance(6)
    assert await claimed(storage) == []
    await place.clock.advance(2)
    assert await claimed(storage) == ["a"]
    assert await claimed(storage) == []


async def test_next_due_is_of_the_earliest_job_without_a_living_lease(place: StorageLocation) -> None:
    storage = await place.open()
    assert await storage.next_due() is None
    await put(storage, job("b", 20), job("a", -10), job("c", 30))
    assert await storage.next_due() == at(-10)
    assert await claimed(storage, 1, lease=25) == ["a"]
    assert await storage.next_due() == at(20)
    async with storage.unit() as unit:
        unit[Job].remove(job("b", 20))
        await unit.commit()
    assert await storage.next_due() == at(30)
    await place.clock.advance(25)
    assert await storage.next_due() == at(-10)
    assert await claimed(storage, 1, lease=5) == ["a"]
    assert await storage.next_due() == at(30)


async def test_ten_claimers_at_once_take_every_job_exactly_once(place: StorageLocation) -> None:
    """ports/storage.py: "Atomic for many workers". Uses two storages if the place allows it."""
    storages = [await place.open()]
    if place.is_shared:
        storages.append(await place.open())
    await put(storages[0], *(job(f"j{n:03}", -n) for n in range(60)))

    async def claimer(storage: Storage) -> list[str]:
        taken: list[str] = []
        while some := await claimed(storage, 3):
            taken += some
        return taken

    rounds = await asyncio.gather(*(claimer(storages[n % len(storages)]) for n in range(10)))
    everything = sorted(job_id for taken in rounds for job_id in taken)
    # A claimer may stop early while the others are claiming its jobs. No job may be claimed twice.
    everything += sorted(await claimed(storages[0], 60))
    assert sorted(everything) == [f"j{n:03}" for n in range(60)]


async def test_jobs_are_woken_up_after_the_commit_only(place: StorageLocation) -> None:
    storage = await place.open()
    seen: list[bool] = []

    async def look(jobs: object) -> None:
        seen.append(await read(storage, Job, "a") is not None)

    note = place.wake_up
    place.wake_up = look
    await put(storage, payment("pay_1"), job("a"))
    assert seen == [True]
    place.wake_up = note
    async with storage.unit() as unit:
        moved = unit[Job].save(job("a", 9))
        unit[Job].add(job("b"))
        await unit.commit()
    assert place.woken_up == [["a", "b"]]
    with pytest.raises(Conflict):
        await put(storage, job("c"), payment("pay_1"))
    async with storage.unit() as unit:
        unit[Job].remove(moved)
        await unit.commit()
    async with storage.unit() as unit:
        unit[Job].add(job("d"))
    await put(storage, payment("pay_2"))
    assert place.woken_up == [["a", "b"]]


async def test_a_wake_up_that_fails_does_not_fail_the_commit(
    place: StorageLocation, caplog: pytest.LogCaptureFixture
) -> None:
    """The commit stands, and the periodic sweep finds the job."""

    async def fail(jobs: object) -> None:
        raise ConnectionError("the queue is away")

    storage = await place.open()
    place.wake_up = fail
    await put(storage, job("a"), payment("pay_1"))
    assert await read(storage, Payment, "pay_1") is not None
    assert caplog.records, "nobody was told that a wake-up failed"
