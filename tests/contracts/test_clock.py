"""The clocks and the identifiers keep what ports/clock.py promises."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from uuid import UUID

import pytest

from cambist.adapters.clock import ShiftingClock, SystemClock, VirtualClock
from cambist.adapters.ids import SeededIds, SystemIds
from cambist.ports.clock import Clock, Ids, TestClock

START = datetime(2026, 8, 8, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "clock",
    [SystemClock(), VirtualClock(START), ShiftingClock(VirtualClock(START))],
    ids=["system", "virtual", "shifting"],
)
class TestEveryClock:
    def test_now_is_aware_and_in_utc(self, clock: Clock) -> None:
        assert clock.now().tzinfo is UTC

    def test_monotonic_never_goes_back(self, clock: Clock) -> None:
        moments = [clock.monotonic() for _ in range(100)]
        assert moments == sorted(moments)

    async def test_a_sleep_of_nothing_lets_other_tasks_run(self, clock: Clock) -> None:
        ran = asyncio.Event()
        asyncio.get_running_loop().call_soon(ran.set)
        await clock.sleep(0)
        assert ran.is_set()

    async def test_an_alarm_that_was_cancelled_is_not_called(self, clock: Clock) -> None:
        called: list[bool] = []
        alarm = clock.call_later(0.001, lambda: called.append(True))
        alarm.cancel()
        alarm.cancel()
        if isinstance(clock, VirtualClock):
            await clock.advance(1)
        assert called == []


async def test_the_system_clock_sleeps() -> None:
    clock = SystemClock()
    before = clock.monotonic()
    await clock.sleep(0.01)
    # The event loop rounds to its own resolution, so a timer may be that much early.
    assert clock.monotonic() - before >= 0.009


async def test_the_system_clock_calls_later() -> None:
    clock = SystemClock()
    called = asyncio.Event()
    before = clock.monotonic()
    clock.call_later(0.01, called.set)
    await called.wait()
    assert clock.monotonic() - before >= 0.009


class Diary:
    """Notes what happens when, by the virtual clock."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.notes: list[tuple[str, float]] = []
        self.tasks: list[asyncio.Task[None]] = []

    def sleeper(self, name: str, *naps: float) -> asyncio.Task[None]:
        async def live() -> None:
            for nap in naps:
                await self.clock.sleep(nap)
                self.notes.append((name, self.clock.monotonic()))

        task = asyncio.create_task(live())
        self.tasks.append(task)
        return task


class TestVirtualClock:
    async def test_stands_still_until_advanced(self) -> None:
        clock = VirtualClock(START)
        diary = Diary(clock)
        diary.sleeper("a", 0.001)
        for _ in range(100):
            await asyncio.sleep(0)
        assert diary.notes == []
        assert clock.now() == START
        await clock.advance(0.001)
        assert diary.notes == [("a", 0.001)]
        assert clock.now() == START + timedelta(milliseconds=1)

    async def test_sleepers_wake_in_time_order_each_at_its_own_moment(self) -> None:
        clock = VirtualClock(START)
        diary = Diary(clock)
        for name, nap in (("late", 30.0), ("early", 10.0), ("never", 61.0), ("middle", 20.0)):
            diary.sleeper(name, nap)
        await clock.advance(60)
        assert diary.notes == [("early", 10.0), ("middle", 20.0), ("late", 30.0)]
        assert clock.monotonic() == 60.0

    async def test_sleepers_of_one_moment_wake_in_the_order_they_lay_down(self) -> None:
        clock = VirtualClock(START)
        diary = Diary(clock)
        for name in "abc":
            diary.sleeper(name, 5)
        await clock.advance(5)
        assert [name for name, _ in diary.notes] == ["a", "b", "c"]

    async def test_a_sleep_begun_on_the_way_ends_on_the_way(self) -> None:
        clock = VirtualClock(START)
        diary = Diary(clock)
        diary.sleeper("ticker", *[1.0] * 5)
        diary.sleeper("other", 2.5)
        await clock.advance(4)
        assert diary.notes == [("ticker", 1.0), ("ticker", 2.0), ("other", 2.5), ("ticker", 3.0), ("ticker", 4.0)]

    async def test_the_loop_settles_between_two_moments(self) -> None:
        """Tasks that a sleeper wakes run at the sleeper's moment, not at the next one."""
        clock = VirtualClock(START)
        seen: list[float] = []

        async def chain(length: int) -> None:
            if length:
                await asyncio.create_task(chain(length - 1))
            else:
                seen.append(clock.monotonic())

        async def first() -> None:
            await clock.sleep(1)
            await chain(20)

        task = asyncio.create_task(first())
        Diary(clock).sleeper("second", 2)
        await clock.advance(2)
        assert seen == [1.0]
        assert task.done()

    async def test_caller_gives_settle_where_loop_turns_do_not_show_the_work(self) -> None:
        calls: list[float] = []

        async def settle() -> None:
            calls.append(clock.monotonic())
            for _ in range(3):
                await asyncio.sleep(0)

        clock = VirtualClock(START, settle=settle)
        diary = Diary(clock)
        diary.sleeper("a", 1, 1)
        await clock.advance(5)
        assert diary.notes == [("a", 1.0), ("a", 2.0)]
        assert calls == [0.0, 1.0, 2.0, 5.0]

    async def test_advance_to_a_moment(self) -> None:
        clock = VirtualClock(START)
        diary = Diary(clock)
        diary.sleeper("a", 3600)
        await clock.advance_to(START + timedelta(days=1))
        assert diary.notes == [("a", 3600.0)]
        assert clock.now() == START + timedelta(days=1)

    async def test_time_moves_forward_only(self) -> None:
        clock = VirtualClock(START)
        with pytest.raises(ValueError, match="forward"):
            await clock.advance(-1)
        with pytest.raises(ValueError, match="forward"):
            await clock.advance_to(START - timedelta(seconds=1))

    async def test_time_does_not_go_back_when_a_sleeper_advances_the_clock_itself(self) -> None:
        turns = iter([1, 50])

        async def settle() -> None:
            """The outer advance settles for longer than the inner one takes, so it comes last."""
            for _ in range(next(turns, 1)):
                await asyncio.sleep(0)

        clock = VirtualClock(START, settle=settle)

        async def impatient() -> None:
            await clock.sleep(1)
            await clock.advance(100)

        task = asyncio.create_task(impatient())
        await clock.advance(10)
        assert task.done()
        assert clock.monotonic() == 101.0

    async def test_a_cancelled_sleeper_holds_nothing_up_and_is_forgotten(self) -> None:
        clock = VirtualClock(START)
        diary = Diary(clock)
        cancelled = diary.sleeper("cancelled", 1)
        diary.sleeper("kept", 2)
        await asyncio.sleep(0)
        cancelled.cancel()
        await asyncio.gather(cancelled, return_exceptions=True)
        assert clock.next_wake() == START + timedelta(seconds=2)
        await clock.advance(3)
        assert diary.notes == [("kept", 2.0)]
        assert clock.next_wake() is None

    async def test_cancelled_sleeps_do_not_pile_up_while_time_stands_still(self) -> None:
        clock = VirtualClock(START)
        for _ in range(1_000):
            task = asyncio.create_task(clock.sleep(60))
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        assert len(clock._queue) < 100

    async def test_many_small_steps_do_not_drift(self) -> None:
        clock = VirtualClock(START, settle=lambda: asyncio.sleep(0))
        for _ in range(1_000):
            await clock.advance(0.1)
        assert clock.now() == START + timedelta(seconds=100)

    async def test_the_shortest_sleep_takes_time(self) -> None:
        clock = VirtualClock(START)
        diary = Diary(clock)
        diary.sleeper("a", 1e-9)
        await clock.advance(0)
        assert diary.notes == []
        await clock.advance(0.000_001)
        assert len(diary.notes) == 1

    async def test_alarms_ring_among_the_sleepers_each_at_its_own_moment(self) -> None:
        clock = VirtualClock(START)
        diary = Diary(clock)
        diary.sleeper("sleeper", 1, 1)
        clock.call_later(1.5, lambda: diary.notes.append(("alarm", clock.monotonic())))
        gone = clock.call_later(1.7, lambda: diary.notes.append(("gone", clock.monotonic())))
        clock.call_later(1.6, gone.cancel)
        assert clock.next_wake() == START + timedelta(seconds=1.5)
        await clock.advance(3600)
        assert diary.notes == [("sleeper", 1.0), ("alarm", 1.5), ("sleeper", 2.0)]
        assert clock.next_wake() is None


AHEAD = TestClock("acc_1", timedelta(days=400))


class TestShiftingClock:
    def test_outside_of_all_test_clocks_it_is_the_machines_clock(self) -> None:
        clock = ShiftingClock(VirtualClock(START))
        assert clock.test_clock is None
        assert clock.now() == clock.real() == START

    def test_shifted_clock_is_ahead_by_the_offset_and_knows_the_real_time(self) -> None:
        clock = ShiftingClock(VirtualClock(START))
        with clock.entered(AHEAD):
            assert clock.test_clock == AHEAD
            assert clock.now() == START + AHEAD.offset
            assert clock.real() == START
        assert clock.now() == START

    def test_test_clocks_are_left_in_turn_and_also_by_an_error(self) -> None:
        clock = ShiftingClock(VirtualClock(START))

        def fail() -> None:
            with clock.entered(None):
                clock.enter(TestClock("acc_2", timedelta(1)))
                raise RuntimeError

        with clock.entered(AHEAD):
            with pytest.raises(RuntimeError):
                fail()
            assert clock.test_clock == AHEAD
        assert clock.test_clock is None

    async def test_a_task_takes_its_world_along_and_leaves_the_others_alone(self) -> None:
        clock = ShiftingClock(VirtualClock(START))

        async def enter() -> None:
            assert clock.test_clock == AHEAD
            clock.enter(None)

        with clock.entered(AHEAD):
            await asyncio.create_task(enter())
            assert clock.test_clock == AHEAD

    async def test_durations_are_the_machines(self) -> None:
        machine = VirtualClock(START)
        clock = ShiftingClock(machine)
        with clock.entered(AHEAD):
            sleeper = asyncio.create_task(clock.sleep(5))
            await machine.advance(5)
            assert sleeper.done()
            assert clock.monotonic() == 5

    def test_two_apps_in_one_task_do_not_share_a_world(self) -> None:
        one, other = ShiftingClock(VirtualClock(START)), ShiftingClock(VirtualClock(START))
        with one.entered(AHEAD):
            assert other.test_clock is None


@pytest.mark.parametrize("make", [SystemIds, SeededIds], ids=["system", "seeded"])
class TestAllIds:
    def test_uuids_are_version_7_and_rise(self, make: Callable[[], Ids]) -> None:
        ids = make()
        texts = [ids.uuid() for _ in range(5_000)]
        uuids = [UUID(text) for text in texts]
        assert [str(uuid) for uuid in uuids] == texts, "each in the one canonical form"
        assert {uuid.version for uuid in uuids} == {7}
        assert {uuid.variant for uuid in uuids} == {"specified in RFC 4122"}
        assert all(before < after for before, after in pairwise(uuids))
        assert texts == sorted(texts), "the text sorts as the number"

    def test_secrets_have_the_size_asked_for(self, make: Callable[[], Ids]) -> None:
        ids = make()
        assert [len(bytes.fromhex(ids.secret(size))) for size in (0, 1, 32)] == [0, 1, 32]
        assert len({ids.secret(32) for _ in range(100)}) == 100


class TestSystemIds:
    def test_the_first_48_bits_are_the_time(self) -> None:
        before = time.time_ns() // 1_000_000
        milliseconds = UUID(SystemIds().uuid()).int >> 80
        assert before <= milliseconds <= time.time_ns() // 1_000_000

    def test_uuids_rise_also_when_the_clock_was_set_back(self, monkeypatch: pytest.MonkeyPatch) -> None:
        ids = SystemIds()
        before = ids.uuid()
        monkeypatch.setattr(time, "time_ns", lambda: 1)
        after = ids.uuid()
        assert before < after
        assert UUID(after).int >> 80 == UUID(before).int >> 80

    def test_a_full_tail_borrows_the_next_millisecond(self, monkeypatch: pytest.MonkeyPatch) -> None:
        ids = SystemIds()
        monkeypatch.setattr(time, "time_ns", lambda: 5_000_000)
        assert UUID(ids.uuid()).int >> 80 == 5
        ids._tail = (1 << 74) - 1
        uuid = UUID(ids.uuid())
        assert uuid.int >> 80 == 6
        assert uuid.version == 7

    def test_a_process_that_was_forked_draws_none_of_its_parents(self) -> None:
        """The child would continue with the same random state, and both would create the same ids."""
        code = (
            "import os, time\n"
            "from cambist.adapters.ids import SystemIds\n"
            "time.time_ns = lambda: 5_000_000\n"
            "ids = SystemIds(); ids.uuid(); child = os.fork()\n"
            "os.write(1, ''.join(ids.uuid() + ' ' for _ in range(9)).encode())\n"  # at once: both have this pipe
            "child and os.waitpid(child, 0)\n"
        )
        said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60)
        assert len(set(said.stdout.split())) == 18

    def test_neighbours_within_a_millisecond_cannot_be_guessed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Payment ids open the payer window: knowing one must not give the next."""
        ids = SystemIds()
        monkeypatch.setattr(time, "time_ns", lambda: 5_000_000)
        uuids = [UUID(ids.uuid()) for _ in range(100)]
        # A step below 2^32 has a chance of 2^-32 each.
        assert all(after.int - before.int > 1 << 32 for before, after in pairwise(uuids))

    def test_threads_never_get_the_same_uuid(self) -> None:
        ids = SystemIds()
        with ThreadPoolExecutor(4) as pool:
            lists = list(pool.map(lambda _: [ids.uuid() for _ in range(1_000)], range(4)))
        assert len({uuid for some in lists for uuid in some}) == 4_000


class TestSeededIds:
    def test_one_seed_gives_one_sequence(self) -> None:
        one, same, other = SeededIds(7), SeededIds(7), SeededIds(8)
        drawn = [one.uuid(), one.secret(16), one.uuid()]
        assert drawn == [same.uuid(), same.secret(16), same.uuid()]
        assert drawn != [other.uuid(), other.secret(16), other.uuid()]
