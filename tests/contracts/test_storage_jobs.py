"""Our own storages keep the contract of jobs; and what holds for some of them only."""

from collections import UserDict
from datetime import UTC, datetime

import msgspec

from cambist.adapters.clock import VirtualClock
from cambist.adapters.storage.memory.due import DueJobs
from cambist.adapters.storage.memory.memory import MemoryStorage
from cambist.adapters.storage.table.codec import Codec
from cambist.frontends.conformance.storage_jobs import *  # noqa: F403 - its tests
from cambist.frontends.conformance.storage_jobs import at, claimed
from cambist.ports.jobs import Job
from tests.contracts.storage_kit import START, Place, job, must_read, put


async def test_claims_survive_reopening(shared_place: Place) -> None:
    storage = await shared_place.open()
    await put(storage, job("a"), job("b", 1))
    assert await claimed(storage, lease=10) == ["a"]
    await storage.close()
    again = await shared_place.open()
    assert (await must_read(again, Job, "a")).attempts == 1
    assert await again.next_due() == at(1)
    await shared_place.clock.advance(10)
    assert await claimed(again) == ["a", "b"]


def test_the_memory_storage_finds_due_jobs_without_looking_at_all() -> None:
    """Many jobs wait far in the future (one per payment): asking for the next must not walk them."""

    class Watched(UserDict[str, list[object]]):
        asked = 0

        def __getitem__(self, name: str) -> list[object]:
            self.asked += 1
            return super().__getitem__(name)

    codec = Codec(Job)
    rows = Watched({f"j{n}": codec.encode(job(f"j{n}", 1000 + n)) for n in range(2000)})
    due = DueJobs(codec.place)
    for name in rows:
        due.note(name, rows)
    rows["now"] = codec.encode(job("now", 1))
    due.note("now", rows)
    rows.asked = 0
    now = round((at(5) - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()) * 1_000_000
    assert due.earliest(rows, now) == "now"
    assert rows.asked < 5


async def test_a_clock_set_back_frees_no_lease_twice() -> None:
    """Only a virtual clock could; the heaps of the memory storage still must not lose a job by it."""

    class Back(VirtualClock):
        def set(self, seconds: float) -> None:
            self._elapsed = round(seconds * 1_000_000)

    clock = Back(START)
    storage = MemoryStorage(clock)
    await put(storage, job("a"))
    assert await claimed(storage, lease=10) == ["a"]
    clock.set(20)
    assert await storage.next_due() == at(0)
    clock.set(5)
    assert await storage.next_due() is None
    assert await claimed(storage) == []
    clock.set(10)
    assert await claimed(storage) == ["a"]


async def test_the_memory_storage_forgets_jobs_that_are_over() -> None:
    """A job moved a thousand times leaves no thousand marks behind."""
    storage = MemoryStorage(VirtualClock(START))
    moving = job("a", 1000)
    await put(storage, moving)
    for n in range(300):
        async with storage.unit() as unit:
            moving = unit[Job].save(msgspec.structs.replace(moving, due=at(1000 + n)))
            await unit.commit()
    assert await storage.next_due() == at(1299)
    assert len(storage._due) < 100
