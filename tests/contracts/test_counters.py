"""Every counters keeps what ports/counters.py promises."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime

import pytest
import redis
from hypothesis import given
from hypothesis import strategies as st

from cambist.adapters.clock import SystemClock, VirtualClock
from cambist.adapters.counters import memory as room
from cambist.adapters.counters import redis as redis_room
from cambist.adapters.counters.memory import MemoryCounters
from cambist.adapters.counters.redis import RedisCounters
from cambist.adapters.counters.redis_facts import redis_facts
from cambist.ports.counters import Counter, RateCounters
from cambist.ports.faults import Unavailable
from tests.redis_servers import SERVICE, RedisPair, RedisServer, forget, own_redis, own_redis_pair, redis_server
from tests.stories.processes import eventually

START = datetime(2026, 8, 8, 12, tzinfo=UTC)
IP, KEY = Counter("general:ip:203.0.113.7", 3), Counter("general:key:svc_test_1", 2)


@pytest.fixture(scope="module")
def shared_redis() -> Iterator[str]:
    with redis_server() as url:
        yield url


@pytest.fixture
def names(shared_redis: str) -> Iterator[str]:
    """A prefix for this test's keys."""
    prefix = f"cambist-test-{secrets.token_hex(6)}"
    yield prefix
    forget(shared_redis, f"{prefix}:*")


def _on_redis(request: pytest.FixtureRequest) -> RateCounters:
    url, prefix = request.getfixturevalue("shared_redis"), request.getfixturevalue("names")
    return RedisCounters(url, SystemClock(), prefix=prefix)


MAKERS: dict[str, Callable[[pytest.FixtureRequest], RateCounters]] = {
    "memory": lambda _: MemoryCounters(),
    "redis": _on_redis,
}


@pytest.fixture(params=list(MAKERS))
async def counters(request: pytest.FixtureRequest) -> AsyncIterator[RateCounters]:
    made = MAKERS[request.param](request)
    yield made
    await made.close()


class TestEveryMeter:
    async def test_counts_each_gauge_by_itself(self, counters: RateCounters) -> None:
        assert list(await counters.count(1, [IP])) == [1]
        assert list(await counters.count(1, [IP, KEY])) == [2, 1]
        assert list(await counters.count(1, [KEY])) == [2]

    async def test_stops_after_the_first_gauge_that_is_over(self, counters: RateCounters) -> None:
        """A request stopped by the IP limit does not reach the key counter (docs/limits.md "Requests")."""
        for reached in (1, 2, 3):
            assert list(await counters.count(1, [IP])) == [reached]
        assert list(await counters.count(1, [IP, KEY])) == [4]
        assert list(await counters.count(1, [KEY])) == [1]

    async def test_a_gauge_at_its_limit_is_not_over(self, counters: RateCounters) -> None:
        await counters.count(1, [KEY])
        assert list(await counters.count(1, [KEY, IP])) == [2, 1]
        assert list(await counters.count(1, [KEY, IP])) == [3]

    async def test_another_window_starts_at_zero(self, counters: RateCounters) -> None:
        for _ in range(5):
            await counters.count(1, [IP, KEY])
        assert list(await counters.count(2, [IP, KEY])) == [1, 1]

    async def test_no_count_is_lost_between_requests_at_once(self, counters: RateCounters) -> None:
        wide = Counter("general:ip:203.0.113.8", 1_000)
        counts = await asyncio.gather(*(counters.count(1, [wide]) for _ in range(200)))
        assert sorted(count[0] for count in counts) == list(range(1, 201))

    async def test_nothing_to_count(self, counters: RateCounters) -> None:
        assert list(await counters.count(1, [])) == []

    async def test_requests_at_once_each_stop_at_their_own_first_gauge_over(self, counters: RateCounters) -> None:
        """Requests sent to a server in one call are judged as if they came one after the other."""
        wide = Counter("general:key:svc_test_2", 1_000)
        counts = await asyncio.gather(*(counters.count(1, [IP, wide]) for _ in range(10)))
        assert sorted(map(tuple, counts)) == [(1, 1), (2, 2), (3, 3), *((reached,) for reached in range(4, 11))]

    async def test_a_name_may_hold_anything_that_a_header_can(self, counters: RateCounters) -> None:
        for name in ("general:key:*", "general:key:{a}\r\nDEL x", "general:key:\u0416", "general:key:\udcff"):
            assert list(await counters.count(1, [Counter(name, 5)])) == [1]

    async def test_no_limit_is_too_high(self, counters: RateCounters) -> None:
        assert list(await counters.count(1, [Counter("gateway:1:calls", 2**62), KEY])) == [1, 1]

    async def test_a_meter_whose_server_answers_works(self, counters: RateCounters) -> None:
        assert await counters.works()

    async def test_one_who_asked_and_is_gone_harms_nobody(self, counters: RateCounters) -> None:
        gone = asyncio.create_task(counters.count(1, [KEY]))
        stays = asyncio.create_task(counters.count(1, [IP]))
        await asyncio.sleep(0)
        gone.cancel()
        assert list(await stays) == [1]


class TestMemory:
    async def test_holds_the_names_of_one_window_only(self) -> None:
        counters = MemoryCounters()
        for window in range(10):
            for number in range(100):
                await counters.count(window, [Counter(f"general:ip:{number}", 9)])
        assert len(counters._counts) == 100

    async def test_memory_is_bounded_however_many_names_come(self) -> None:
        counters = MemoryCounters(capacity=100)
        for number in range(20_000):
            await counters.count(1, [Counter(f"general:key:{number}", 60)])
        assert len(counters._counts) <= 100 + room._OVERFLOW_SLOTS

    async def test_count_from_before_a_flood_goes_on(self) -> None:
        counters = MemoryCounters(capacity=10)
        await counters.count(1, [KEY])
        for number in range(1_000):
            await counters.count(1, [Counter(f"general:key:{number}", 60)])
        assert await counters.count(1, [KEY]) == [2]
        assert await counters.count(1, [KEY]) == [3], "and is stopped at the same count"

    @given(names=st.lists(st.text(max_size=3), max_size=200), limit=st.integers(0, 5))
    async def test_a_flood_of_names_never_escapes_its_limit(self, names: list[str], limit: int) -> None:
        """With any capacity a name passes at most as often as with endless memory."""
        bounded, endless = MemoryCounters(capacity=3), MemoryCounters()
        for name in names:
            limits = [Counter(name, limit)]
            assert (await bounded.count(1, limits))[0] >= (await endless.count(1, limits))[0]

    async def test_new_names_in_a_flood_share_counters_and_are_stopped(self) -> None:
        counters = MemoryCounters(capacity=0)
        requests = 4 * room._OVERFLOW_SLOTS
        passed = 0
        for number in range(requests):
            passed += (await counters.count(1, [Counter(f"general:key:{number}", 1)]))[0] <= 1
        assert passed <= room._OVERFLOW_SLOTS


class TestRedis:
    async def test_processes_count_together(self, shared_redis: str, names: str) -> None:
        all_counters = [RedisCounters(shared_redis, SystemClock(), prefix=names) for _ in range(3)]
        wide = Counter("general:ip:203.0.113.9", 1_000)
        counts = await asyncio.gather(*(counters.count(1, [wide]) for _ in range(100) for counters in all_counters))
        assert sorted(count[0] for count in counts) == list(range(1, 301))
        for counters in all_counters:
            await counters.close()

    async def test_no_name_stands_in_redis_and_every_counter_ends(self, shared_redis: str, names: str) -> None:
        """A merchant who sends the secret in place of the key does not reveal it to Redis."""
        counters = RedisCounters(shared_redis, SystemClock(), prefix=names)
        await counters.count(1, [Counter("general:ip:203.0.113.7", 9), Counter("general:key:sk_live_secret", 9)])
        await counters.close()
        with redis.Redis.from_url(shared_redis, decode_responses=True) as client:
            keys = list(client.scan_iter(f"{names}:*"))
            assert len(keys) == 2
            assert not [key for key in keys if "secret" in key or "203" in key]
            assert all(0 < client.ttl(key) <= redis_room._KEPT for key in keys)

    async def test_counts_of_one_tick_go_in_one_call(self, shared_redis: str, names: str) -> None:
        counters = RedisCounters(shared_redis, SystemClock(), prefix=names)
        calls = 0
        run = counters._run

        async def counted(keys: list[str], arguments: list[int]) -> list[int]:
            nonlocal calls
            calls += 1
            return await run(keys, arguments)

        counters._run = counted  # type: ignore[method-assign]
        await asyncio.gather(*(counters.count(1, [IP, KEY]) for _ in range(50)))
        assert calls == 1
        await counters.close()

    async def test_more_than_a_batch_is_answered_in_several(
        self, shared_redis: str, names: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(redis_room, "_BATCH", 3)
        counters = RedisCounters(shared_redis, SystemClock(), prefix=names)
        wide = Counter("general:ip:203.0.113.9", 1_000)
        counts = await asyncio.gather(*(counters.count(1, [wide]) for _ in range(10)))
        assert [count[0] for count in counts] == list(range(1, 11))
        await counters.close()


class TestRedisAway:
    @pytest.fixture
    def server(self) -> Iterator[RedisServer]:
        with own_redis() as server:
            yield server

    async def test_each_process_counts_by_itself_up_to_the_full_limit_and_comes_back(self, server: RedisServer) -> None:
        clock = VirtualClock(START)
        counters = RedisCounters(server.url, clock)
        assert list(await counters.count(1, [IP, KEY])) == [1, 1]
        server.stop()
        for reached in (1, 2, 3):
            assert list(await counters.count(1, [IP])) == [reached]
        assert list(await counters.count(1, [IP, KEY])) == [4], "and no further"
        assert not await counters.works()
        server.start()
        assert list(await counters.count(1, [IP])) == [5], "not asked again at once"
        await clock.advance(1)
        assert list(await counters.count(1, [IP])) == [1], "a server without its script, and empty"
        assert await counters.works()
        await counters.close()

    async def test_server_that_was_never_there_is_no_error(self, server: RedisServer) -> None:
        server.stop()
        counters = RedisCounters(server.url, SystemClock())
        wide = Counter("general:ip:203.0.113.9", 1_000)
        counts = await asyncio.gather(*(counters.count(1, [wide]) for _ in range(600)))
        assert sorted(count[0] for count in counts) == list(range(1, 601))
        assert not await counters.works()
        await counters.close()

    async def test_asking_for_health_finds_it_back(self, server: RedisServer) -> None:
        server.stop()
        clock = VirtualClock(START)
        counters = RedisCounters(server.url, clock)
        assert not await counters.works()
        server.start()
        assert await counters.works()
        assert list(await counters.count(1, [KEY])) == [1]
        await counters.close()

    async def test_a_redis_that_refuses_to_write_is_away(self, server: RedisServer) -> None:
        with redis.Redis.from_url(server.url) as client:
            client.config_set("maxmemory", "1")
        counters = RedisCounters(server.url, VirtualClock(START))
        assert [list(await counters.count(1, [KEY])) for _ in range(3)] == [[1], [2], [3]]
        assert not await counters.works()
        await counters.close()

    async def test_a_redis_that_hangs_holds_up_nobody_twice(self) -> None:
        """Connections are taken and never answered, as by a machine that is frozen."""
        connections = 0
        release = asyncio.Event()

        async def hang(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal connections
            connections += 1
            await release.wait()
            writer.close()

        server = await asyncio.start_server(hang, "127.0.0.1", 0)
        counters = RedisCounters(f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}", VirtualClock(START))
        assert sorted([list(await counters.count(1, [KEY])) for _ in range(3)]) == [[1], [2], [3]]
        assert connections == 1
        await counters.close()
        release.set()
        server.close()
        await server.wait_closed()


class TestRedisWithSentinels:
    @pytest.fixture
    def pair(self) -> Iterator[RedisPair]:
        with own_redis_pair() as pair:
            yield pair

    async def test_counting_together_continues_after_a_failover(self, pair: RedisPair) -> None:
        clock = VirtualClock(START)
        counters, other = RedisCounters(pair.url, clock), RedisCounters(pair.url, clock)
        for window in (1, 2):
            assert list(await counters.count(window, [IP])) == [1]
            assert list(await other.count(window, [IP])) == [2]
            if window == 1:
                await asyncio.to_thread(pair.fail_over)
                for each in (counters, other):
                    await eventually(each.works)
        await counters.close()
        await other.close()

    async def test_former_primary_that_became_a_replica_counts_nothing(self, pair: RedisPair) -> None:
        """It still answers on our connections, and refuses to write."""
        clock = VirtualClock(START)
        counters = RedisCounters(pair.url, clock)
        await counters.count(1, [IP])
        former = pair.primary()
        with redis.Redis.from_url(pair.sentinels[0].url) as client:
            client.execute_command("SENTINEL", "FAILOVER", SERVICE)

        async def replaced() -> bool:
            return pair.primary() is not former

        await eventually(replaced)
        pair.primary().let_follow(former)
        await eventually(counters.works)
        assert list(await counters.count(2, [KEY])) == [1]
        with redis.Redis.from_url(pair.primary().url) as client:
            assert len(list(client.scan_iter(f"{redis_room.PREFIX}:2:*"))) == 1
        await counters.close()

    async def test_each_process_counts_by_itself_without_a_sentinel(self, pair: RedisPair) -> None:
        for each in (*pair.sentinels, *pair.servers):
            each.stop()
        counters = RedisCounters(pair.url, VirtualClock(START))
        assert [list(await counters.count(1, [KEY])) for _ in range(3)] == [[1], [2], [3]]
        assert not await counters.works()
        await counters.close()

    async def test_facts_name_sentinels_that_do_not_answer(self) -> None:
        with own_redis_pair(sentinels=2) as pair:
            _, said = await redis_facts(pair.url)
            assert (said["silent_sentinels"], said["role"], said["connected_slaves"]) == ("", "master", "1")
            pair.sentinels[0].stop()
            _, said = await redis_facts(pair.url)
            assert said["silent_sentinels"] == f"127.0.0.1:{pair.sentinels[0].port}"
            both = ", ".join(f"127.0.0.1:{each.port}" for each in pair.sentinels)
            with pytest.raises(Unavailable, match=f"Sentinels that fail: {both}$"):
                await redis_facts(pair.url.replace(SERVICE, "another"))
