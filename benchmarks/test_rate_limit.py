"""Rate-limit decision of a request. The floor is two bare counters in dicts and seven headers built by f-strings.

Both count the same requests: fresh key strings, as in real requests, within the limits, in a new window each round.
`whole_edge` is the full cost of a real request: path normalisation, client address and decision. On Redis the floor is
redis-py's EVALSHA of one script per decision; in both cases 50 tasks decide at once.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from itertools import count
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture
from redis.asyncio import Redis

from cambist.adapters.clock import SystemClock
from cambist.adapters.counters.memory import MemoryCounters
from cambist.adapters.counters.redis import RedisCounters
from cambist.core.domain.accounts.rate_limit import (
    MONEY,
    Bucket,
    Header,
    api_path,
    bucket,
    client_ip,
    headers,
    limits,
    normalise_path,
    verdict,
    window,
)
from cambist.ports.counters import Counter, RateCounters
from tests.redis_servers import forget, redis_server

CLIENTS = [(f"203.0.{number // 250}.{number % 250}", b"svc_test_%032d" % number) for number in range(20)]
REQUESTS = CLIENTS * 50
"""A thousand requests, fifty of each client."""

AT_ONCE = 50
"""Concurrent tasks on Redis."""

EACH = """
local ip = redis.call('INCR', KEYS[1])
if ip == 1 then redis.call('EXPIRE', KEYS[1], ARGV[1]) end
if ip > tonumber(ARGV[2]) then return {ip} end
local key = redis.call('INCR', KEYS[2])
if key == 1 then redis.call('EXPIRE', KEYS[2], ARGV[1]) end
return {ip, key}
"""
"""Decision of one request as a separate script."""

pytestmark = pytest.mark.benchmark(min_rounds=20, warmup=True, warmup_iterations=5)
in_memory = pytest.mark.benchmark(group="rate limit: 1000 requests")
on_redis = pytest.mark.benchmark(group=f"rate limit on Redis: 1000 requests, {AT_ONCE} at once")


class Floor:
    """The minimum work of any limiter."""

    def __init__(self) -> None:
        self.window = 0
        self.ips: dict[str, int] = {}
        self.keys: dict[str, int] = {}

    def decide(self, ip: str, key: str, now: int) -> list[Header]:
        present = now // 60
        if present != self.window:
            self.window, self.ips, self.keys = present, {}, {}
        limit = 120
        reached = self.ips[ip] = self.ips.get(ip, 0) + 1
        if reached <= limit:
            reached = self.keys[key] = self.keys.get(key, 0) + 1
        left = max(0, limit - reached)
        reset = (present + 1) * 60
        return [
            (b"x-ratelimit-limit", f"{limit}".encode()),
            (b"x-ratelimit-remaining", f"{left}".encode()),
            (b"x-ratelimit-reset", f"{reset}".encode()),
            (b"ratelimit-policy", f"{limit};w=60".encode()),
            (b"ratelimit-limit", f"{limit}".encode()),
            (b"ratelimit-remaining", f"{left}".encode()),
            (b"ratelimit-reset", f"{reset - now}".encode()),
        ]


async def decide(counters: RateCounters, of: Bucket, ip: str, key: str, now: int) -> list[Header]:
    counts = await counters.count(window(now), limits(of, ip, key, Counter))
    return headers(verdict(of, counts, now))


@pytest.fixture
def run() -> Iterator[Callable[[Coroutine[Any, Any, None]], None]]:
    """Run a coroutine on a loop that stays open between rounds, so that its start is not measured."""
    with asyncio.Runner() as runner:
        yield runner.run


@in_memory
def test_floor(benchmark: BenchmarkFixture) -> None:
    floor = Floor()
    minutes = count(30_000_000)

    def round_of_requests() -> None:
        now = next(minutes) * 60 + 13
        for ip, key in REQUESTS:
            floor.decide(ip, key.decode("latin-1"), now)

    benchmark(round_of_requests)
    assert dict(floor.decide(*_first_client(), floor.window * 60 + 13))[b"ratelimit-remaining"] == b"69"


@in_memory
def test_decision(benchmark: BenchmarkFixture, run: Callable[[Coroutine[Any, Any, None]], None]) -> None:
    counters = MemoryCounters()
    minutes = count(30_000_000)
    now = 0

    async def round_of_requests() -> None:
        nonlocal now
        now = next(minutes) * 60 + 13
        for ip, key in REQUESTS:
            await decide(counters, MONEY, ip, key.decode("latin-1"), now)

    benchmark(lambda: run(round_of_requests()))
    assert dict(asyncio.run(decide(counters, MONEY, *_first_client(), now)))[b"ratelimit-remaining"] == b"69"


@in_memory
def test_whole_edge(benchmark: BenchmarkFixture, run: Callable[[Coroutine[Any, Any, None]], None]) -> None:
    counters = MemoryCounters()
    minutes = count(30_000_000)
    now = 0

    async def round_of_requests() -> None:
        nonlocal now
        now = next(minutes) * 60 + 13
        for ip, key in REQUESTS:
            path = api_path(normalise_path("/api/v1/payments"))
            assert path is not None
            of = bucket("POST", path)
            await decide(counters, of, client_ip(ip, None, ()), key.decode("latin-1"), now)

    benchmark(lambda: run(round_of_requests()))
    assert dict(asyncio.run(decide(counters, MONEY, *_first_client(), now)))[b"ratelimit-remaining"] == b"69"


@pytest.fixture(scope="module")
def shared_redis() -> Iterator[str]:
    with redis_server() as url:
        yield url


@pytest.fixture
def prefix(shared_redis: str) -> Iterator[str]:
    """Prefix of this benchmark's keys."""
    name = f"cambist-bench-{secrets.token_hex(6)}"
    yield name
    forget(shared_redis, f"{name}:*")


async def fifty_at_once(decision: Callable[[str, str], Awaitable[list[Header]]]) -> None:
    """Run 50 tasks. Each makes its share of the decisions one after another."""

    async def one(number: int) -> None:
        for ip, key in REQUESTS[number::AT_ONCE]:
            await decision(ip, key.decode("latin-1"))

    await asyncio.gather(*(one(number) for number in range(AT_ONCE)))


@on_redis
def test_redis_evalsha_each(
    benchmark: BenchmarkFixture, run: Callable[[Coroutine[Any, Any, Any]], Any], shared_redis: str, prefix: str
) -> None:
    minutes = count(30_000_000)
    now = 0
    redis = Redis.from_url(shared_redis)

    async def load() -> str:
        return await redis.script_load(EACH)

    script = run(load())

    async def decision(ip: str, key: str) -> list[Header]:
        of = limits(MONEY, ip, key, Counter)
        names = [f"{prefix}:{window(now)}:{counter.key}" for counter in of]
        counts = await redis.evalsha(script, 2, *names, "180", str(of[0].limit))
        return headers(verdict(MONEY, counts, now))

    async def round_of_requests() -> None:
        nonlocal now
        now = next(minutes) * 60 + 13
        await fifty_at_once(decision)

    benchmark(lambda: run(round_of_requests()))
    assert dict(run(decision(*_first_client())))[b"ratelimit-remaining"] == b"69"
    run(redis.aclose())


@on_redis
def test_redis_decision(
    benchmark: BenchmarkFixture, run: Callable[[Coroutine[Any, Any, Any]], Any], shared_redis: str, prefix: str
) -> None:
    counters = RedisCounters(shared_redis, SystemClock(), prefix=prefix)
    minutes = count(30_000_000)
    now = 0

    async def decision(ip: str, key: str) -> list[Header]:
        return await decide(counters, MONEY, ip, key, now)

    async def round_of_requests() -> None:
        nonlocal now
        now = next(minutes) * 60 + 13
        await fifty_at_once(decision)

    benchmark(lambda: run(round_of_requests()))
    assert dict(run(decision(*_first_client())))[b"ratelimit-remaining"] == b"69"
    assert run(counters.works())
    run(counters.close())


def _first_client() -> tuple[str, str]:
    ip, key = CLIENTS[0]
    return ip, key.decode("latin-1")
