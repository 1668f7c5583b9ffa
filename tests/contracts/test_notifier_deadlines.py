"""The limit of a webhook, and the turns of webhooks: as exact as asyncio.timeout and Semaphore, at less cost
(docs/webhooks.md "What a receiver does")."""

import asyncio

import pytest

from cambist.adapters.notifier.deadlines import Deadlines
from cambist.adapters.notifier.host_limit import HostLimit

LIMIT = 0.1


async def take(deadlines: Deadlines, seconds: float) -> float:
    """How long it was left to run."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    try:
        with deadlines.begin():
            await asyncio.sleep(seconds)
    except TimeoutError:
        return -(loop.time() - began)
    return loop.time() - began


async def test_each_has_the_whole_limit_from_its_own_beginning() -> None:
    deadlines = Deadlines(LIMIT)
    tasks = []
    for _ in range(5):
        tasks.append(asyncio.create_task(take(deadlines, 60)))
        await asyncio.sleep(LIMIT / 5)
    assert all(-took >= LIMIT - 0.002 for took in await asyncio.gather(*tasks))
    assert not deadlines.running


async def test_task_that_ends_in_time_is_not_cancelled_and_is_forgotten() -> None:
    deadlines = Deadlines(LIMIT)
    assert await take(deadlines, 0) >= 0
    assert not deadlines.running
    await asyncio.sleep(1.2 * LIMIT)
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0, "the timer that was set for it rang for nobody"


async def test_a_later_one_is_ended_though_the_first_was_quick() -> None:
    """The one timer is set for the first deadline; it must be set again."""
    deadlines = Deadlines(LIMIT)
    await take(deadlines, 0)
    assert await take(deadlines, 60) < 0
    assert await take(deadlines, 60) < 0, "and again after a pause"


async def test_being_cancelled_by_somebody_else_is_no_timeout() -> None:
    deadlines = Deadlines(60)
    task = asyncio.create_task(take(deadlines, 60))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not deadlines.running


async def test_cancelled_in_the_moment_of_the_deadline_the_cancelling_goes_on() -> None:
    deadlines = Deadlines(60)
    task = asyncio.create_task(take(deadlines, 60))
    await asyncio.sleep(0)
    [deadline] = deadlines.running
    deadline.end()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_turns_are_first_come_first_served_and_outlive_who_gave_up() -> None:
    limit = HostLimit(1)
    here = ("receiver", 443)
    await limit.enter(here)
    came: list[int] = []

    async def visit(number: int) -> None:
        await limit.enter(here)
        came.append(number)
        await asyncio.sleep(0)
        limit.leave(here)

    visits = [asyncio.create_task(visit(number)) for number in range(5)]
    await asyncio.sleep(0)
    visits[1].cancel()
    limit.leave(here)
    visits[0].cancel()  # its turn had come in this very moment
    await asyncio.gather(*visits, return_exceptions=True)
    assert came == [2, 3, 4]
    assert not limit._waitlists


async def test_last_waiting_task_that_gives_up_leaves_no_waitlist() -> None:
    limit = HostLimit(1)
    here, there = ("receiver", 443), ("other", 443)
    await limit.enter(here)
    waiting = [asyncio.create_task(limit.enter(here)) for _ in range(2)]
    await asyncio.sleep(0)
    for task in waiting:
        task.cancel()
    limit.leave(here)
    await asyncio.gather(*waiting, return_exceptions=True)
    assert not limit._waitlists
    await limit.enter(there)
    limit.leave(there)
    assert not limit._waitlists
