"""Our own storages keep the contract of jobs; and what holds for some of them only."""

from cambist.adapters.clock import VirtualClock
from cambist.adapters.storage.memory.memory import MemoryStorage
from cambist.frontends.conformance.storage.jobs import *  # noqa: F403 - its tests
from cambist.frontends.conformance.storage.jobs import at, claimed
from cambist.ports.jobs import Job
from tests.contracts.storage_kit import START, StorageLocation, job, must_read, put


async def test_claims_survive_reopening(shared_location: StorageLocation) -> None:
    storage = await shared_location.open()
    await put(storage, job("a"), job("b", 1))
    assert await claimed(storage, lease=10) == ["a"]
    await storage.close()
    again = await shared_location.open()
    assert (await must_read(again, Job, "a")).attempts == 1
    assert await again.next_due() == at(1)
    await shared_location.clock.advance(10)
    assert await claimed(again) == ["a", "b"]


async def test_a_clock_set_back_frees_no_lease_twice() -> None:
    """Only a virtual clock could; the memory storage still must not lose a job by it."""

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
