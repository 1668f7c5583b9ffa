"""The deterministic loop (loop.py): virtual time, scheduling, the remains of a killed process, refused calls."""

import asyncio
import inspect
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, cast

import pytest

from tests.simulation.loop import NoSuchThing, SimLoop, Stuck
from tests.simulation.strands import Strand


@pytest.fixture
def loop() -> Iterator[SimLoop]:
    made = SimLoop("seed")
    yield made
    made.dismiss()


async def _writes(name: str, into: list[str], times: int = 3) -> None:
    for number in range(times):
        into.append(f"{name}{number}")
        await asyncio.sleep(0)


def _order(seed: str, *, shuffled: bool = False) -> list[str]:
    loop, seen = SimLoop(seed, shuffled=shuffled), list[str]()

    async def main() -> None:
        tasks = [loop.spawn(Strand(name, number), _writes(name, seen)) for number, name in enumerate("abc", 1)]
        await asyncio.gather(*tasks)

    loop.run_until_complete(main())
    loop.dismiss()
    return seen


def test_the_same_seed_chooses_the_same_order_and_others_choose_others() -> None:
    assert _order("one") == _order("one")
    assert len({tuple(_order(str(seed))) for seed in range(40)}) > 20


def test_first_ready_task_of_a_process_runs_first_unless_shuffled(loop: SimLoop) -> None:
    def order(loop: SimLoop) -> list[str]:
        seen: list[str] = []

        async def main() -> None:
            await asyncio.gather(*(_writes(name, seen) for name in "abc"))

        loop.run_until_complete(main())
        return seen

    plain = order(loop)
    assert plain == ["a0", "b0", "c0", "a1", "b1", "c1", "a2", "b2", "c2"]
    others = [SimLoop(str(seed), shuffled=True) for seed in range(10)]
    assert any(order(other) != plain for other in others)
    for other in others:
        other.dismiss()


def test_time_passes_at_once_when_nobody_can_go_on(loop: SimLoop) -> None:
    began = time.monotonic()
    loop.run_until_complete(asyncio.sleep(1_000_000))
    assert loop.time() == 1_000_000
    assert time.monotonic() - began < 60


def test_a_killed_process_runs_nothing_more_not_even_its_finally(loop: SimLoop) -> None:
    seen: list[str] = []
    strand = Strand("victim", 1)

    async def victim() -> None:
        try:
            await asyncio.sleep(5)
            seen.append("slept")
        finally:
            seen.append("finally")

    async def main() -> None:
        loop.spawn(strand, victim())
        await asyncio.sleep(1)
        loop.kill(strand)
        await asyncio.sleep(60)

    loop.run_until_complete(main())
    assert seen == []


def test_dismissed_tasks_end_in_this_loop_through_every_await() -> None:
    """Otherwise coroutines started in a `finally` are never awaited, or wait in a loop that is never closed."""
    loop, begun, left = SimLoop("seed"), list[asyncio.Task[None]](), list[str]()

    async def part() -> None:
        left.append("ran")

    async def closed_soon() -> None:
        begun.append(asyncio.ensure_future(part()))
        await asyncio.wait(begun[-1:])

    @asynccontextmanager
    async def app() -> AsyncIterator[None]:
        async with AsyncExitStack() as closing:
            closing.callback(left.append, "the last")
            closing.push_async_callback(closed_soon)
            closing.push_async_callback(closed_soon)
            yield

    async def victim() -> None:
        async with app():
            await loop.create_future()

    async def main() -> None:
        loop.spawn(Strand("victim", 1), victim())
        await asyncio.sleep(1)

    loop.run_until_complete(main())
    loop.dismiss()
    assert [task.get_loop() for task in begun] == [loop, loop]
    assert {inspect.getcoroutinestate(cast("Any", task.get_coro())) for task in begun} == {inspect.CORO_CLOSED}
    assert left == ["the last"]


def test_a_fuse_kills_after_so_many_steps(loop: SimLoop) -> None:
    seen: list[str] = []
    strand = Strand("victim", 1)
    strand.fuse, strand.on_fuse = 2, lambda: loop.kill(strand)

    async def main() -> None:
        loop.spawn(strand, _writes("step", seen, 10))
        await asyncio.sleep(1)

    loop.run_until_complete(main())
    assert seen == ["step0", "step1"]


def test_a_stopped_process_goes_on_later_as_if_nothing_had_been(loop: SimLoop) -> None:
    moments: list[float] = []
    strand = Strand("sleeper", 1)

    async def sleeper() -> None:
        await asyncio.sleep(2)
        moments.append(loop.time())

    async def main() -> None:
        loop.spawn(strand, sleeper())
        await asyncio.sleep(1)
        loop.stop_strand(strand)
        await asyncio.sleep(9)
        loop.go_on(strand)
        await asyncio.sleep(1)

    loop.run_until_complete(main())
    assert moments == [10.0]


def test_message_in_flight_arrives_after_its_sender_died(loop: SimLoop) -> None:
    seen: list[str] = []
    strand = Strand("sender", 1)

    async def sender() -> None:
        loop.outside(5, lambda: seen.append("arrived"))
        loop.call_later(5, lambda: seen.append("own"))

    async def main() -> None:
        loop.spawn(strand, sender())
        await asyncio.sleep(1)
        loop.kill(strand)
        await asyncio.sleep(10)

    loop.run_until_complete(main())
    assert seen == ["arrived"]


def test_threads_are_refused_and_reported(loop: SimLoop) -> None:
    async def main() -> None:
        with pytest.raises(NoSuchThing):
            await asyncio.to_thread(time.time)

    loop.run_until_complete(main())
    assert len(loop.refused) == 1


def test_a_call_from_another_thread_is_refused(loop: SimLoop) -> None:
    raised: list[BaseException] = []

    def elsewhere() -> None:
        try:
            loop.call_soon_threadsafe(print)
        except NoSuchThing as refused:
            raised.append(refused)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert len(raised) == 1


def test_deadlock_is_detected(loop: SimLoop) -> None:
    async def main() -> None:
        await loop.create_future()

    with pytest.raises(Stuck):
        loop.run_until_complete(main())


def test_sets_of_tasks_are_gone_through_in_the_order_of_making(loop: SimLoop) -> None:
    async def main() -> list[int]:
        tasks = {asyncio.ensure_future(asyncio.sleep(number)) for number in range(50)}
        numbers = [hash(task) for task in sorted(tasks, key=hash)]
        await asyncio.wait(tasks)
        return numbers

    numbers = loop.run_until_complete(main())
    assert numbers == sorted(numbers)
    assert numbers[-1] < 10_000  # numbers of a count, and no addresses
