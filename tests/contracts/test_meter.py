"""Every meter keeps what ports/meter.py promises."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.adapters.meter import memory as room
from cambist.adapters.meter.memory import MemoryMeter
from cambist.ports.meter import Gauge, Meter

IP, KEY = Gauge("general:ip:203.0.113.7", 3), Gauge("general:key:svc_test_1", 2)


@pytest.fixture(params=["memory"])
async def meter(request: pytest.FixtureRequest) -> AsyncIterator[Meter]:
    made = {"memory": MemoryMeter}[request.param]()
    yield made
    await made.close()


class TestEveryMeter:
    async def test_counts_each_gauge_by_itself(self, meter: Meter) -> None:
        assert list(await meter.count(1, [IP])) == [1]
        assert list(await meter.count(1, [IP, KEY])) == [2, 1]
        assert list(await meter.count(1, [KEY])) == [2]

    async def test_stops_after_the_first_gauge_that_is_over(self, meter: Meter) -> None:
        """SPEC "Limits", 3: a request stopped by the IP limit does not reach the key counter."""
        for reached in (1, 2, 3):
            assert list(await meter.count(1, [IP])) == [reached]
        assert list(await meter.count(1, [IP, KEY])) == [4]
        assert list(await meter.count(1, [KEY])) == [1]

    async def test_a_gauge_at_its_limit_is_not_over(self, meter: Meter) -> None:
        await meter.count(1, [KEY])
        assert list(await meter.count(1, [KEY, IP])) == [2, 1]
        assert list(await meter.count(1, [KEY, IP])) == [3]

    async def test_another_window_starts_at_zero(self, meter: Meter) -> None:
        for _ in range(5):
            await meter.count(1, [IP, KEY])
        assert list(await meter.count(2, [IP, KEY])) == [1, 1]

    async def test_no_count_is_lost_between_requests_at_once(self, meter: Meter) -> None:
        wide = Gauge("general:ip:203.0.113.8", 1_000)
        counts = await asyncio.gather(*(meter.count(1, [wide]) for _ in range(200)))
        assert sorted(count[0] for count in counts) == list(range(1, 201))

    async def test_nothing_to_count(self, meter: Meter) -> None:
        assert list(await meter.count(1, [])) == []


class TestMemory:
    async def test_holds_the_names_of_one_window_only(self) -> None:
        meter = MemoryMeter()
        for window in range(10):
            for number in range(100):
                await meter.count(window, [Gauge(f"general:ip:{number}", 9)])
        assert len(meter._counts) == 100

    async def test_memory_is_bounded_however_many_names_come(self) -> None:
        meter = MemoryMeter(capacity=100)
        for number in range(20_000):
            await meter.count(1, [Gauge(f"general:key:{number}", 60)])
        assert len(meter._counts) <= 100 + room._OVERFLOW_SLOTS

    async def test_who_was_counted_before_a_flood_is_counted_on(self) -> None:
        meter = MemoryMeter(capacity=10)
        await meter.count(1, [KEY])
        for number in range(1_000):
            await meter.count(1, [Gauge(f"general:key:{number}", 60)])
        assert await meter.count(1, [KEY]) == [2]
        assert await meter.count(1, [KEY]) == [3], "and is stopped at the same count"

    @given(names=st.lists(st.text(max_size=3), max_size=200), limit=st.integers(0, 5))
    async def test_a_flood_of_names_never_escapes_its_limit(self, names: list[str], limit: int) -> None:
        """With any capacity a name passes at most as often as with endless memory."""
        bounded, endless = MemoryMeter(capacity=3), MemoryMeter()
        for name in names:
            gauges = [Gauge(name, limit)]
            assert (await bounded.count(1, gauges))[0] >= (await endless.count(1, gauges))[0]

    async def test_new_names_in_a_flood_share_counters_and_are_stopped(self) -> None:
        meter = MemoryMeter(capacity=0)
        requests = 4 * room._OVERFLOW_SLOTS
        passed = 0
        for number in range(requests):
            passed += (await meter.count(1, [Gauge(f"general:key:{number}", 1)]))[0] <= 1
        assert passed <= room._OVERFLOW_SLOTS
