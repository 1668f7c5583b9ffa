"""Contract of a storage's jobs: claims, leases and due times (ports/storage.py)."""

import asyncio
from datetime import datetime, timedelta

import msgspec
import pytest

from ....core.domain.payments.payments import Payment
from ....ports.faults import Conflict, Stale
from ....ports.jobs import Job
from ....ports.storage import Storage
from ..expectations import must_raise
from .kit import START, StorageLocation, job, must_read, only, payment, put, read


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


async def claimed(storage: Storage, limit: int = 10, lease: float = 60) -> list[str]:
    return [taken.id for taken in await storage.claim(limit, lease)]


async def test_claim_takes_due_jobs_oldest_due_first_and_at_most_limit(storage: Storage) -> None:
    must = "a claim must take due jobs only, the oldest due first, at most `limit`, each once"
    await put(storage, job("c", -1), job("a", 0), job("z", -5), job("later", 0.000001), job("b", -1))
    assert await claimed(storage, 2) == ["z", "b"], must
    assert await claimed(storage, 2) == ["c", "a"], must
    assert await claimed(storage, 2) == [], must


async def test_a_claimed_job_is_returned_as_it_now_stands(storage: Storage) -> None:
    must = "a claimed job must be returned as it is stored: attempts and version one higher, leased for `lease` seconds"
    await put(storage, job("a"))
    taken = only(await storage.claim(1, 2.5), must)
    assert taken == job("a", attempts=1, version=1, leased_until=at(2.5)), must
    assert await read(storage, Job, "a") == taken, must


async def test_a_claim_takes_a_job_once_also_beside_a_snapshot(storage: Storage) -> None:
    """A claim must not return one job several times to fill its limit."""
    must = "a claim must take a job once, and a snapshot must not see it"
    await put(storage, job("a"), job("b"))
    async with storage.snapshot() as seen:
        assert await seen[Job].total() == 2, must
        assert await claimed(storage) == ["a", "b"], must
        assert await seen[Job].get("a") == job("a"), must
    assert (await must_read(storage, Job, "a")).attempts == 1, must


async def test_claim_of_nothing_takes_nothing(storage: Storage) -> None:
    must = "a claim of nothing must take nothing, and a lease must be longer than nothing"
    assert await claimed(storage) == [], must
    await put(storage, job("a"))
    assert await claimed(storage, limit=0) == [], must
    with must_raise(must, ValueError):
        await storage.claim(1, 0)
    assert await read(storage, Job, "a") == job("a"), must


async def test_a_job_is_free_again_when_its_lease_ends(place: StorageLocation) -> None:
    """When a worker dies, its lease expires and another worker claims the job (ports/jobs.py)."""
    must = "a leased job must be free exactly when its lease ends"
    storage = await place.open()
    await put(storage, job("a"))
    assert await claimed(storage, lease=10) == ["a"], must
    await place.clock.advance(9.999999)
    assert await claimed(storage) == [], must
    await place.clock.advance(0.000001)
    again = only(await storage.claim(1, 10), must)
    assert (again.attempts, again.version, again.leased_until) == (2, 2, at(20)), must


async def test_due_is_judged_by_the_storages_clock(place: StorageLocation) -> None:
    must = "the storage's clock must decide which jobs are due"
    storage = await place.open()
    await put(storage, job("a", 30))
    assert await storage.now() == START, must
    assert await claimed(storage) == [], must
    await place.clock.advance(30)
    assert await storage.now() == at(30), must
    assert await claimed(storage) == ["a"], must


async def test_a_job_moved_or_freed_by_its_worker_is_claimed_accordingly(place: StorageLocation) -> None:
    must = "a job that its worker moved must be claimed at its new due time"
    storage = await place.open()
    await put(storage, job("a"), job("b"))
    for taken in await storage.claim(2, 60):
        async with storage.unit() as unit:
            unit[Job].save(msgspec.structs.replace(taken, due=at(5 if taken.id == "a" else 7), leased_until=None))
            await unit.commit()
    assert await claimed(storage) == [], must
    await place.clock.advance(6)
    assert await claimed(storage) == ["a"], must
    await place.clock.advance(1)
    assert await claimed(storage) == ["b"], must


async def test_a_worker_that_lost_its_lease_cannot_end_the_job(place: StorageLocation) -> None:
    must = "a worker whose lease another took must get Stale, and the job must stay"
    storage = await place.open()
    await put(storage, job("a"))
    first = only(await storage.claim(1, 10), must)
    await place.clock.advance(10)
    second = only(await storage.claim(1, 10), must)
    async with storage.unit() as unit:
        unit[Job].remove(first)
        with must_raise(must, Stale):
            await unit.commit()
    async with storage.unit() as unit:
        unit[Job].remove(second)
        await unit.commit()
    await place.clock.advance(100)
    assert await claimed(storage) == [], must


async def test_a_job_removed_and_queued_again_is_claimed_once(place: StorageLocation) -> None:
    must = "a job that was removed and added again must be claimed once, at its new due time"
    storage = await place.open()
    await put(storage, job("a", 5))
    async with storage.unit() as unit:
        unit[Job].remove(job("a", 5))
        unit[Job].add(job("a", 8))
        await unit.commit()
    await place.clock.advance(6)
    assert await claimed(storage) == [], must
    await place.clock.advance(2)
    assert await claimed(storage) == ["a"], must
    assert await claimed(storage) == [], must


async def test_next_due_is_of_the_earliest_job_without_a_living_lease(place: StorageLocation) -> None:
    must = "`next_due` must be that of the earliest job without a living lease"
    storage = await place.open()
    assert await storage.next_due() is None, must
    await put(storage, job("b", 20), job("a", -10), job("c", 30))
    assert await storage.next_due() == at(-10), must
    assert await claimed(storage, 1, lease=25) == ["a"], must
    assert await storage.next_due() == at(20), must
    async with storage.unit() as unit:
        unit[Job].remove(job("b", 20))
        await unit.commit()
    assert await storage.next_due() == at(30), must
    await place.clock.advance(25)
    assert await storage.next_due() == at(-10), must
    assert await claimed(storage, 1, lease=5) == ["a"], must
    assert await storage.next_due() == at(30), must


async def test_ten_claimers_at_once_take_every_job_exactly_once(place: StorageLocation) -> None:
    """ports/storage.py: "Atomic for many workers". Uses two storages if the place allows it."""
    must = "no job may be given to two workers, and none may be lost"
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
    assert sorted(everything) == [f"j{n:03}" for n in range(60)], must


async def test_jobs_are_woken_up_after_the_commit_only(place: StorageLocation) -> None:
    must = "the workers must be woken once after a commit that wrote jobs, and after no other"
    storage = await place.open()
    seen: list[bool] = []

    async def look(jobs: object) -> None:
        seen.append(await read(storage, Job, "a") is not None)

    note = place.wake_up
    place.wake_up = look
    await put(storage, payment("pay_1"), job("a"))
    assert seen == [True], must
    place.wake_up = note
    async with storage.unit() as unit:
        moved = unit[Job].save(job("a", 9))
        unit[Job].add(job("b"))
        await unit.commit()
    assert place.woken_up == [["a", "b"]], must
    with must_raise(must, Conflict):
        await put(storage, job("c"), payment("pay_1"))
    async with storage.unit() as unit:
        unit[Job].remove(moved)
        await unit.commit()
    async with storage.unit() as unit:
        unit[Job].add(job("d"))
    await put(storage, payment("pay_2"))
    assert place.woken_up == [["a", "b"]], must


async def test_a_wake_up_that_fails_does_not_fail_the_commit(
    place: StorageLocation, caplog: pytest.LogCaptureFixture
) -> None:
    """The commit stands, and the periodic sweep finds the job."""
    must = "a wake-up that fails must not fail the commit, and must be logged"

    async def fail(jobs: object) -> None:
        raise ConnectionError("the queue is away")

    storage = await place.open()
    place.wake_up = fail
    await put(storage, job("a"), payment("pay_1"))
    assert await read(storage, Payment, "pay_1") is not None, must
    assert caplog.records, "nobody was told that a wake-up failed"
