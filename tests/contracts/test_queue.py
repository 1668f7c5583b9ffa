"""Every queue keeps what ports/queue.py promises."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from cambist.adapters.clock import SystemClock, VirtualClock
from cambist.adapters.queue import memory as room
from cambist.adapters.queue.memory import MemoryQueue
from cambist.ports.clock import Clock
from cambist.ports.jobs import Job
from cambist.ports.queue import Queue

START = datetime(2026, 8, 8, 12, tzinfo=UTC)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(START)


@pytest.fixture(params=[MemoryQueue], ids=["memory"])
def queue(request: pytest.FixtureRequest, clock: VirtualClock) -> Queue:
    make: Callable[[Clock], Queue] = request.param
    return make(clock)


def job(seconds: float = 0, number: int = 1) -> Job:
    """A job that is due `seconds` from the start."""
    return Job(id=f"job:{number}", kind="job", argument="", due=START + timedelta(seconds=seconds), created_at=START)


class Worker:
    """Waits once, and notes when it returned."""

    def __init__(self, queue: Queue, clock: VirtualClock, seconds: float) -> None:
        self._queue, self._clock, self._seconds = queue, clock, seconds
        self.woke: float | None = None
        self.task = asyncio.create_task(self._wait())

    async def _wait(self) -> None:
        await self._queue.wait(self._seconds)
        self.woke = self._clock.monotonic()


class TestEveryQueue:
    async def test_wait_ends_after_its_seconds(self, queue: Queue, clock: VirtualClock) -> None:
        worker = Worker(queue, clock, 5)
        await clock.advance(4.9)
        assert worker.woke is None
        await clock.advance(1)
        assert worker.woke == 5.0

    async def test_a_wait_for_nothing_returns(self, queue: Queue) -> None:
        await queue.wait(0)
        await queue.wait(-1)

    async def test_a_kick_wakes_at_once(self, queue: Queue, clock: VirtualClock) -> None:
        worker = Worker(queue, clock, 60)
        await clock.advance(1)
        await queue.kick([job()])
        await clock.advance(0)
        assert worker.woke == 1.0

    async def test_a_kick_wakes_every_waiter(self, queue: Queue, clock: VirtualClock) -> None:
        workers = [Worker(queue, clock, 60) for _ in range(3)]
        await clock.advance(1)
        await queue.kick([job()])
        await clock.advance(0)
        assert [worker.woke for worker in workers] == [1.0] * 3

    async def test_a_kick_that_nobody_waited_for_is_not_lost(self, queue: Queue, clock: VirtualClock) -> None:
        await queue.kick([job()])
        await clock.advance(10)
        worker = Worker(queue, clock, 60)
        await clock.advance(0)
        assert worker.woke == 10.0

    async def test_a_kick_wakes_once(self, queue: Queue, clock: VirtualClock) -> None:
        await queue.kick([job(number=1), job(number=2)])
        await queue.wait(60)
        worker = Worker(queue, clock, 60)
        await clock.advance(59)
        assert worker.woke is None
        await clock.advance(1)
        assert worker.woke == 60.0

    async def test_a_kick_with_no_jobs_wakes_nobody(self, queue: Queue, clock: VirtualClock) -> None:
        worker = Worker(queue, clock, 60)
        await clock.advance(1)
        await queue.kick([])
        await clock.advance(1)
        assert worker.woke is None
        await clock.advance(60)
        assert worker.woke == 60.0


class TestMemory:
    async def test_a_later_job_wakes_all_at_its_time(self, clock: VirtualClock) -> None:
        queue = MemoryQueue(clock)
        workers = [Worker(queue, clock, 60) for _ in range(2)]
        await clock.advance(1)
        await queue.kick([job(30), job(20)])
        await clock.advance(18.9)
        assert [worker.woke for worker in workers] == [None, None]
        await clock.advance(10)
        assert [worker.woke for worker in workers] == [20.0, 20.0]

    async def test_a_later_job_kicked_before_the_wait_counts_too(self, clock: VirtualClock) -> None:
        queue = MemoryQueue(clock)
        await queue.kick([job(20), job(30)])
        first = Worker(queue, clock, 60)
        await clock.advance(25)
        assert first.woke == 20.0
        second = Worker(queue, clock, 60)
        await clock.advance(25)
        assert second.woke == 30.0

    async def test_a_job_later_than_the_wait_does_not_lengthen_it(self, clock: VirtualClock) -> None:
        queue = MemoryQueue(clock)
        await queue.kick([job(100)])
        worker = Worker(queue, clock, 10)
        await clock.advance(50)
        assert worker.woke == 10.0

    async def test_an_earlier_job_moves_the_time_to_wake_at(self, clock: VirtualClock) -> None:
        queue = MemoryQueue(clock)
        worker = Worker(queue, clock, 60)
        await queue.kick([job(40)])
        await clock.advance(10)
        await queue.kick([job(15)])
        await clock.advance(30)
        assert worker.woke == 15.0

    async def test_a_cancelled_waiter_leaves_the_hint_to_the_next(self, clock: VirtualClock) -> None:
        queue = MemoryQueue(clock)
        first = Worker(queue, clock, 60)
        await clock.advance(1)
        await queue.kick([job()])
        first.task.cancel()
        await asyncio.gather(first.task, return_exceptions=True)
        assert first.woke is None
        second = Worker(queue, clock, 60)
        await clock.advance(0)
        assert second.woke == 1.0

    async def test_a_cancelled_waiter_leaves_no_timer_behind(self, clock: VirtualClock) -> None:
        worker = Worker(MemoryQueue(clock), clock, 60)
        await clock.advance(1)
        worker.task.cancel()
        await asyncio.gather(worker.task, return_exceptions=True)
        await clock.advance(0)
        assert clock.next_wake() is None

    async def test_due_times_are_kept_up_to_a_bound_the_earliest_first(self, clock: VirtualClock) -> None:
        queue = MemoryQueue(clock)
        await queue.kick([job(1 + number) for number in reversed(range(3 * room._REMEMBERED))])
        assert len(queue._due) <= 2 * room._REMEMBERED
        worker = Worker(queue, clock, 60)
        await clock.advance(5)
        assert worker.woke == 1.0

    async def test_works_by_the_system_clock(self) -> None:
        clock = SystemClock()
        queue = MemoryQueue(clock)
        waiting = asyncio.create_task(queue.wait(60))
        await asyncio.sleep(0)
        await queue.kick([job()])
        await waiting
        await queue.wait(0.001)
