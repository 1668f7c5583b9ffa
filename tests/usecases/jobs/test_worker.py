"""The worker: the jobs that it runs side by side, and its leases (docs/decisions.md "Slow receivers": one slow receiver
or job delays no other; a worker that dies)."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from cambist.adapters.clock import VirtualClock
from cambist.adapters.ids import SeededIds
from cambist.core.usecases.jobs import RENEW
from cambist.core.usecases.jobs import WORKER_LEASE as LEASE
from cambist.core.usecases.webhooks.outbox import DELIVER
from cambist.frontends.app.compose import open_app
from cambist.frontends.settings.settings import Settings
from cambist.frontends.worker import loop
from cambist.frontends.worker.loop import SWEEP, WATCH, Worker
from cambist.ports.bundle import Ports
from cambist.ports.faults import Unavailable
from cambist.ports.jobs import Job

SLOW = "slow"
QUICK = "quick"


class Shop:
    """An app with jobs of two kinds besides deliveries, and workers that can be killed."""

    def __init__(self, ports: Ports, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ports = ports
        self.clock = clock
        self.begun: Counter[str] = Counter()
        self.began_at: dict[str, list[float]] = defaultdict(list)
        self.take = 1000.0
        """Seconds that a slow job takes."""
        self._start = clock.now()
        handlers = {SLOW: self._slow, QUICK: self._quick, DELIVER: self._quick}
        monkeypatch.setattr(loop, "HANDLERS", handlers)
        monkeypatch.setattr(loop, "start_recurring_jobs", self._nothing)

    async def _nothing(self, _: Ports) -> None:
        """Write no recurring jobs: only the jobs of the test run."""

    def _note(self, job: Job) -> None:
        self.begun[job.id] += 1
        self.began_at[job.id].append((self.clock.now() - self._start).total_seconds())

    async def _slow(self, _: Ports, job: Job) -> None:
        self._note(job)
        await self.clock.sleep(self.take)
        await self._remove(job)

    async def _quick(self, _: Ports, job: Job) -> None:
        self._note(job)
        await self._remove(job)

    async def _remove(self, job: Job) -> None:
        async with self.ports.storage.unit() as unit:
            unit[Job].remove(job)
            await unit.commit()

    async def put(self, *names: str) -> None:
        now = self.clock.now()
        async with self.ports.storage.unit() as unit:
            for name in names:
                kind = name.partition(":")[0]
                unit[Job].add(Job(id=name, kind=kind, argument="", due=now, created_at=now))
            await unit.commit()

    def worker(self, at_once: int = 64) -> Worker:
        worker = Worker(self.ports, at_once=at_once)
        # Deliveries themselves are tested elsewhere.
        worker._handlers = {**worker._handlers, DELIVER: self._quick}
        return worker

    @asynccontextmanager
    async def working(self, worker: Worker) -> AsyncIterator[asyncio.Task[None]]:
        task = asyncio.create_task(worker.work())
        await self.clock.advance(0)
        try:
            yield task
        finally:
            worker.stop()
            while not task.done():
                await self.clock.advance(50)


@pytest.fixture
async def shop(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Shop]:
    clock = VirtualClock()
    settings = Settings(database_url="memory://", base_url="https://pay.example", allow_live_simulators=True)
    async with open_app(settings, clock=clock, ids=SeededIds()) as app:
        yield Shop(app.ports, clock, monkeypatch)


async def test_64_hanging_jobs_delay_no_delivery(shop: Shop) -> None:
    await shop.put(*(f"{SLOW}:{number}" for number in range(100)))
    async with shop.working(shop.worker()):
        assert len(shop.begun) == 64
        await shop.clock.advance(5)
        await shop.put(f"{DELIVER}:acc_1:test")
        await shop.clock.advance(0)
        assert shop.began_at[f"{DELIVER}:acc_1:test"] == [5.0]
        shop.take = 0.0


async def test_deliveries_that_are_many_leave_room_for_other_jobs(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "RECEIVERS", 2)
    worker = shop.worker()
    worker._handlers = {**worker._handlers, DELIVER: shop._slow}
    await shop.put(*(f"{DELIVER}:acc_{number}:test" for number in range(5)))
    async with shop.working(worker):
        assert len(shop.begun) == 2
        await shop.put(f"{QUICK}:1")
        await shop.clock.advance(0)
        assert shop.begun[f"{QUICK}:1"] == 1
        shop.take = 0.0


async def test_a_full_worker_does_not_ask_in_a_circle(shop: Shop) -> None:
    """Due jobs may be of a kind for which the worker is full. It then polls at its usual interval, and at once when a
    job ends."""
    asked = 0
    claim = shop.ports.storage.claim

    async def counted(limit: int, lease: float, **which: str) -> list[Job]:
        nonlocal asked
        asked += 1
        return await claim(limit, lease, **which)

    shop.take = 10.0
    shop.ports.storage.claim = counted  # type: ignore[method-assign,assignment]  # counts
    await shop.put(f"{SLOW}:1", f"{SLOW}:2")
    async with shop.working(shop.worker(at_once=1)):
        await shop.clock.advance(9.9)
        assert asked < 4 + 9.9 / SWEEP
        await shop.clock.advance(0.1)
        assert shop.began_at[f"{SLOW}:2"] == [10.0]


async def test_a_job_under_way_is_nobody_elses_however_long_it_takes(shop: Shop) -> None:
    """A worker claims the row (ARCHITECTURE.md "Units and jobs"). Two workers, one job of many leases."""
    shop.take = 20 * LEASE
    await shop.put(f"{SLOW}:1")
    async with shop.working(shop.worker()), shop.working(shop.worker()):
        await shop.clock.advance(19 * LEASE)
        assert shop.begun == {f"{SLOW}:1": 1}
        await shop.clock.advance(LEASE)
    async with shop.ports.storage.unit() as unit:
        assert await unit[Job].get(f"{SLOW}:1") is None, "its work removed it, by the version it was claimed at"


async def test_the_work_of_a_dead_worker_is_taken_up_within_ten_seconds(shop: Shop) -> None:
    await shop.put(f"{SLOW}:1")
    dying = asyncio.create_task(shop.worker().work())
    await shop.clock.advance(100)
    dying.cancel()
    await asyncio.gather(dying, return_exceptions=True)
    shop.take = 0.0
    async with shop.working(shop.worker()):
        await shop.clock.advance(10)
    assert shop.begun[f"{SLOW}:1"] == 2
    assert shop.began_at[f"{SLOW}:1"][1] <= 110


async def test_renewals_that_fail_now_and_then_lose_no_lease(shop: Shop) -> None:
    """A storage that is away for a moment: three renewals in a row may fail."""
    renew: Callable[..., Awaitable[None]] = shop.ports.storage.renew
    tried = 0

    async def failing(jobs: list[Job], lease: float) -> None:
        nonlocal tried
        tried += 1
        if tried % 3:
            raise Unavailable("away")
        await renew(jobs, lease)

    shop.ports.storage.renew = failing  # type: ignore[method-assign,assignment]  # fails
    shop.take = 10 * LEASE
    await shop.put(f"{SLOW}:1")
    async with shop.working(shop.worker()), shop.working(shop.worker()):
        await shop.clock.advance(10 * LEASE)
    assert shop.begun == {f"{SLOW}:1": 1}
    assert tried > 10 * LEASE / RENEW - 2


async def test_nothing_is_renewed_while_nothing_is_under_way(shop: Shop) -> None:
    async def never(*_: object) -> None:
        raise AssertionError("nothing is under way")

    shop.ports.storage.renew = never  # type: ignore[method-assign,assignment]  # watches
    async with shop.working(shop.worker()):
        await shop.clock.advance(timedelta(minutes=5).total_seconds())


async def test_loop_survives_any_error_of_a_claim_and_claims_again_after_a_sweep(shop: Shop) -> None:
    claim = shop.ports.storage.claim
    asked = 0

    async def failing(limit: int, lease: float, **which: str) -> list[Job]:
        nonlocal asked
        asked += 1
        if asked <= 6:
            raise TypeError("a row is none")
        return await claim(limit, lease, **which)

    shop.ports.storage.claim = failing  # type: ignore[method-assign,assignment]  # fails
    await shop.put(f"{QUICK}:1")
    async with shop.working(shop.worker()) as working:
        await shop.clock.advance(0)
        assert asked == 4  # for deliveries and for all else, once more for the wake-up; not in a circle
        await shop.clock.advance(2 * SWEEP)
        assert shop.began_at[f"{QUICK}:1"] == [2 * SWEEP]
        assert not working.done()


async def test_deliveries_that_cannot_be_claimed_keep_no_other_job_waiting(shop: Shop) -> None:
    claim = shop.ports.storage.claim

    async def failing(limit: int, lease: float, **which: str) -> list[Job]:
        if which == {"kind": DELIVER}:
            raise OverflowError
        return await claim(limit, lease, **which)

    shop.ports.storage.claim = failing  # type: ignore[method-assign,assignment]  # fails
    await shop.put(f"{QUICK}:1")
    async with shop.working(shop.worker()):
        assert shop.began_at[f"{QUICK}:1"] == [0.0]


@pytest.mark.parametrize("broken", ["wait", "next_due"])
async def test_the_loop_outlives_a_queue_and_a_storage_that_fail_where_it_rests(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    async def failing(*_: object) -> None:
        raise TypeError("nothing that was foreseen")

    monkeypatch.setattr(shop.ports.queue if broken == "wait" else shop.ports.storage, broken, failing)
    async with shop.working(shop.worker()) as working:
        await shop.clock.advance(SWEEP / 2)
        await shop.put(f"{QUICK}:1")
        await shop.clock.advance(2 * SWEEP)
        assert len(shop.began_at[f"{QUICK}:1"]) == 1
        assert not working.done()


async def test_a_worker_whose_storage_is_lost_dies_with_the_reason(shop: Shop) -> None:
    """Its process ends with exit status 1, and a new one finds what there is."""
    await shop.put(f"{SLOW}:1")
    working = asyncio.create_task(shop.worker().work())
    await shop.clock.advance(10)
    assert not working.done()
    shop.ports.storage.lost = lambda: "the file is gone"  # type: ignore[attr-defined]
    await shop.clock.advance(WATCH)
    with pytest.raises(Unavailable, match="the file is gone"):
        await working


@pytest.mark.parametrize("hours", [1, -1])
async def test_a_job_under_way_is_begun_once_though_the_clock_is_set(shop: Shop, hours: int) -> None:
    """A clock set forward ends every lease, so the worker renews its leases before the next claim."""
    shop.take = 60.0
    await shop.put(f"{SLOW}:1", f"{SLOW}:2")
    async with shop.working(shop.worker()):
        await shop.clock.advance(4.5)  # before a sweep, and then a renewal
        shop.clock.step(hours * 3600)
        await shop.clock.advance(60)
    assert shop.begun == {f"{SLOW}:1": 1, f"{SLOW}:2": 1}
