"""Every queue keeps what ports/queue.py promises."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
import redis

from cambist.adapters.clock import SystemClock, VirtualClock
from cambist.adapters.queue import dramatiq as dramatiq_room
from cambist.adapters.queue import memory as room
from cambist.adapters.queue.dramatiq import DramatiqQueue
from cambist.adapters.queue.memory import MemoryQueue
from cambist.ports.jobs import Job
from cambist.ports.queue import Queue
from tests.redis_servers import RedisServer, forget, own_redis, own_redis_pair, redis_server
from tests.stories.processes import eventually

START = datetime(2026, 8, 8, 12, tzinfo=UTC)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(START)


@dataclass
class Ends:
    """Where wake-ups are sent and where workers wait: two processes if the queue supports several, else the same
    one."""

    far: Queue
    near: Queue


@pytest.fixture(scope="module")
def shared_redis() -> Iterator[str]:
    with redis_server() as url:
        yield url


@pytest.fixture
def namespace(shared_redis: str) -> Iterator[str]:
    """The beginning of this test's keys."""
    name = f"cambist-test-{secrets.token_hex(6)}"
    yield name
    forget(shared_redis, f"{name}:*")


@pytest.fixture(params=["memory", "dramatiq, one process", "dramatiq, two processes"])
async def ends(request: pytest.FixtureRequest, clock: VirtualClock) -> AsyncIterator[Ends]:
    if request.param == "memory":
        queue = MemoryQueue(clock)
        yield Ends(queue, queue)
        return
    url, namespace = request.getfixturevalue("shared_redis"), request.getfixturevalue("namespace")
    near = DramatiqQueue(url, clock, namespace=namespace)
    far = DramatiqQueue(url, clock, namespace=namespace) if "two" in request.param else near
    yield Ends(far, near)
    await far.close()
    if near is not far:
        await near.close()


def job(seconds: float = 0, number: int = 1) -> Job:
    """A job that is due `seconds` from the start."""
    return Job(id=f"job:{number}", kind="job", argument="", due=START + timedelta(seconds=seconds), created_at=START)


class Worker:
    """Waits once, and notes when it returned."""

    def __init__(self, queue: Queue, clock: VirtualClock, seconds: float) -> None:
        self._queue, self._clock, self._seconds = queue, clock, seconds
        self.woke: float | None = None
        """Time of the wake-up by the virtual clock, which does not advance while a message is in transit."""
        self.task = asyncio.create_task(self._wait())

    async def _wait(self) -> None:
        await self._queue.wait(self._seconds)
        self.woke = self._clock.monotonic()

    async def wakes(self, seconds: float = 10) -> float | None:
        """When it returned, in real time within so many seconds."""
        await asyncio.wait([self.task], timeout=seconds)
        return self.woke


class TestEveryQueue:
    async def test_wait_ends_after_its_seconds(self, ends: Ends, clock: VirtualClock) -> None:
        worker = Worker(ends.near, clock, 5)
        await clock.advance(4.9)
        assert worker.woke is None
        await clock.advance(1)
        assert worker.woke == 5.0

    async def test_a_wait_for_nothing_returns(self, ends: Ends) -> None:
        await ends.near.wait(0)
        await ends.near.wait(-1)

    async def test_a_wake_up_wakes_at_once(self, ends: Ends, clock: VirtualClock) -> None:
        worker = Worker(ends.near, clock, 60)
        await clock.advance(1)
        await ends.far.wake_up([job()])
        assert await worker.wakes() == 1.0

    async def test_a_wake_up_wakes_every_waiter(self, ends: Ends, clock: VirtualClock) -> None:
        workers = [Worker(ends.near, clock, 60) for _ in range(3)]
        await clock.advance(1)
        await ends.far.wake_up([job()])
        assert [await worker.wakes() for worker in workers] == [1.0] * 3

    async def test_a_wake_up_that_nobody_waited_for_is_not_lost(self, ends: Ends, clock: VirtualClock) -> None:
        await ends.far.wake_up([job()])
        await clock.advance(10)
        worker = Worker(ends.near, clock, 60)
        assert await worker.wakes() == 10.0

    async def test_a_wake_up_wakes_once(self, ends: Ends, clock: VirtualClock) -> None:
        first = Worker(ends.near, clock, 60)
        await clock.advance(0)
        await ends.far.wake_up([job(number=1), job(number=2)])
        assert await first.wakes() == 0.0
        second = Worker(ends.near, clock, 60)
        await clock.advance(59)
        assert second.woke is None
        await clock.advance(1)
        assert second.woke == 60.0

    async def test_wake_ups_one_after_the_other_all_wake(self, ends: Ends, clock: VirtualClock) -> None:
        """On a busy machine the last wake-up wakes its waiter before its sender rests, and the next one is sent after
        that rest: with time going on."""
        for _ in range(3):
            worker = Worker(ends.near, clock, 60)
            await clock.advance(1)
            woken_up = clock.monotonic()
            await ends.far.wake_up([job()])
            if await worker.wakes(1) is None:
                await clock.advance(1)
            assert await worker.wakes() in (woken_up, woken_up + 1)

    async def test_a_wake_up_with_no_jobs_wakes_nobody(self, ends: Ends, clock: VirtualClock) -> None:
        worker = Worker(ends.near, clock, 60)
        await clock.advance(1)
        await ends.far.wake_up([])
        await clock.advance(1)
        assert worker.woke is None
        await clock.advance(60)
        assert worker.woke == 60.0

    async def test_a_cancelled_waiter_leaves_the_hint_to_the_next(self, ends: Ends, clock: VirtualClock) -> None:
        first = Worker(ends.near, clock, 60)
        await clock.advance(1)
        await ends.far.wake_up([job()])
        first.task.cancel()
        await asyncio.gather(first.task, return_exceptions=True)
        assert first.woke is None
        second = Worker(ends.near, clock, 60)
        assert await second.wakes() == 1.0

    async def test_a_cancelled_waiter_leaves_no_timer_behind(self, ends: Ends, clock: VirtualClock) -> None:
        worker = Worker(ends.near, clock, 60)
        await clock.advance(1)
        worker.task.cancel()
        await asyncio.gather(worker.task, return_exceptions=True)
        await clock.advance(0)
        assert clock.next_wake() is None

    async def test_a_queue_whose_server_answers_works(self, ends: Ends) -> None:
        assert await ends.near.works()
        assert await ends.far.works()


class TestMemory:
    async def test_a_job_due_soon_wakes_all_at_its_time(self, clock: VirtualClock) -> None:
        queue = MemoryQueue(clock)
        workers = [Worker(queue, clock, 60) for _ in range(2)]
        await clock.advance(0.125)
        await queue.wake_up([job(1), job(0.5)])
        await clock.advance(0.25)
        assert [worker.woke for worker in workers] == [None, None]
        await clock.advance(10)
        assert [worker.woke for worker in workers] == [0.5, 0.5]

    async def test_a_job_due_soon_woken_up_before_the_wait_counts_too(self, clock: VirtualClock) -> None:
        queue = MemoryQueue(clock)
        await queue.wake_up([job(0.5), job(0.75)])
        first = Worker(queue, clock, 60)
        await clock.advance(0.625)
        assert first.woke == 0.5
        second = Worker(queue, clock, 60)
        await clock.advance(1)
        assert second.woke == 0.75

    async def test_a_later_job_wakes_nobody(self, clock: VirtualClock) -> None:
        """Workers read the next due jobs by themselves."""
        queue = MemoryQueue(clock)
        worker = Worker(queue, clock, 60)
        await queue.wake_up([job(1.125)])
        await clock.advance(59)
        assert worker.woke is None
        assert queue._due == []
        await clock.advance(1)
        assert worker.woke == 60.0

    async def test_a_job_later_than_the_wait_does_not_lengthen_it(self, clock: VirtualClock) -> None:
        queue = MemoryQueue(clock)
        await queue.wake_up([job(1)])
        worker = Worker(queue, clock, 0.25)
        await clock.advance(50)
        assert worker.woke == 0.25

    async def test_an_earlier_job_moves_the_time_to_wake_at(self, clock: VirtualClock) -> None:
        queue = MemoryQueue(clock)
        worker = Worker(queue, clock, 60)
        await queue.wake_up([job(1)])
        await clock.advance(0.25)
        await queue.wake_up([job(0.5)])
        await clock.advance(30)
        assert worker.woke == 0.5

    async def test_due_times_are_kept_up_to_a_bound_the_earliest_first(
        self, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(room, "_REMEMBERED", 100)
        queue = MemoryQueue(clock)
        await queue.wake_up([job(0.25 + number / 512) for number in reversed(range(300))])
        assert len(queue._due) <= 200
        worker = Worker(queue, clock, 60)
        await clock.advance(5)
        assert worker.woke == 0.25

    async def test_works_by_the_system_clock(self) -> None:
        clock = SystemClock()
        queue = MemoryQueue(clock)
        waiting = asyncio.create_task(queue.wait(60))
        await asyncio.sleep(0)
        await queue.wake_up([job()])
        await waiting
        await queue.wait(0.001)


class TestDramatiq:
    @pytest.fixture
    def server(self) -> Iterator[RedisServer]:
        with own_redis() as server:
            yield server

    async def test_a_later_job_is_not_sent(self, shared_redis: str, namespace: str, clock: VirtualClock) -> None:
        """Workers read the next due jobs by themselves; a message that waits for weeks helps nobody."""
        queue = DramatiqQueue(shared_redis, clock, namespace=namespace)
        await queue.wake_up([job(60)])
        await queue.close()
        assert _waiting(shared_redis, namespace) == 0

    async def test_wake_ups_that_come_together_are_one_message(
        self, shared_redis: str, namespace: str, clock: VirtualClock
    ) -> None:
        queue = DramatiqQueue(shared_redis, clock, namespace=namespace)
        for number in range(100):
            await queue.wake_up([job(number=number)])
        await queue.close()
        assert _waiting(shared_redis, namespace) == 1

    async def test_messages_do_not_pile_up_where_no_worker_runs(
        self, shared_redis: str, namespace: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(dramatiq_room, "_ENOUGH", 3)
        for _ in range(5):
            queue = DramatiqQueue(shared_redis, VirtualClock(START), namespace=namespace)
            await queue.wake_up([job()])
            await queue.close()
        assert _waiting(shared_redis, namespace) == 3

    async def test_a_worker_that_rests_is_woken_without_redis(self, server: RedisServer, clock: VirtualClock) -> None:
        queue = DramatiqQueue(server.url, clock)
        server.stop()
        worker = Worker(queue, clock, 60)
        await clock.advance(1)
        await queue.wake_up([job()])
        assert await worker.wakes() == 1.0
        await queue.close()

    async def test_redis_away_loses_wake_ups_says_so_once_and_comes_back(
        self, server: RedisServer, caplog: pytest.LogCaptureFixture
    ) -> None:
        clock = VirtualClock(START)
        queue = DramatiqQueue(server.url, clock)
        server.stop()
        for _ in range(3):
            await queue.wake_up([job()])
            assert not await queue.works()
            await clock.advance(2)
        assert [record.message for record in caplog.records if "away" in record.message] == [
            "Redis is away; workers look for jobs every second"
        ]
        server.start()
        assert await queue.works()
        await queue.wake_up([job()])
        await queue.close()
        # One more where the last of the lost ones was still under way.
        assert _waiting(server.url, dramatiq_room.NAMESPACE) in (1, 2)

    async def test_a_listener_outlives_a_restart_of_redis_that_empties_it(self, server: RedisServer) -> None:
        clock = VirtualClock(START)
        near, far = DramatiqQueue(server.url, clock), DramatiqQueue(server.url, clock)
        for turn in range(2):
            worker = Worker(near, clock, 60)
            await clock.advance(1)
            await far.wake_up([job()])
            assert await worker.wakes() == 1.0 + 3 * turn
            server.stop()
            assert not await far.works()
            server.start()
            await clock.advance(2)  # the sender's pause
        await far.close()
        await near.close()

    async def test_wake_ups_arrive_again_after_sentinels_replaced_redis(self) -> None:
        clock = VirtualClock(START)
        with own_redis_pair() as pair:
            near, far = DramatiqQueue(pair.url, clock), DramatiqQueue(pair.url, clock)
            for turn in range(2):
                worker = Worker(near, clock, 60)
                await clock.advance(1)
                await far.wake_up([job()])
                assert await worker.wakes() == 1.0 + 3 * turn
                if turn == 0:
                    await asyncio.to_thread(pair.fail_over)
                    await eventually(far.works)
                    await clock.advance(2)  # the sender's pause
            await far.close()
            await near.close()


def _waiting(url: str, namespace: str) -> int:
    """Messages that nobody has taken."""
    with redis.Redis.from_url(url) as client:
        count: int = client.llen(f"{namespace}:{dramatiq_room._QUEUE}")
    return count
