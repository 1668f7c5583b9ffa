"""The decision at the door against its floor: two bare counters in dicts, and seven headers by f-strings.

Both count the same requests: fresh key strings, as every request brings them, within the limits, in a new window each
round. `whole door` is what a request really pays: the path normalised, the source found, and all of the decision.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from itertools import count
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from cambist.adapters.meter.memory import MemoryMeter
from cambist.core.domain.quota import (
    MONEY,
    Bucket,
    Header,
    api_path,
    bucket,
    client_ip,
    gauges,
    headers,
    normalise_path,
    verdict,
    window,
)
from cambist.ports.meter import Gauge

CLIENTS = [(f"203.0.{number // 250}.{number % 250}", b"svc_test_%032d" % number) for number in range(20)]
REQUESTS = CLIENTS * 50
"""A thousand requests, fifty of each client."""

pytestmark = pytest.mark.benchmark(group="rate limit: 1000 requests", min_rounds=20, warmup=True, warmup_iterations=5)


class Floor:
    """What no limiter can do without."""

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


async def decide(meter: MemoryMeter, of: Bucket, ip: str, key: str, now: int) -> list[Header]:
    counts = await meter.count(window(now), gauges(of, ip, key, Gauge))
    return headers(verdict(of, counts, now))


@pytest.fixture
def run() -> Iterator[Callable[[Coroutine[Any, Any, None]], None]]:
    """Run a coroutine on a loop that stays open between rounds, so that its start is not measured."""
    with asyncio.Runner() as runner:
        yield runner.run


def test_floor(benchmark: BenchmarkFixture) -> None:
    floor = Floor()
    minutes = count(30_000_000)

    def round_of_requests() -> None:
        now = next(minutes) * 60 + 13
        for ip, key in REQUESTS:
            floor.decide(ip, key.decode("latin-1"), now)

    benchmark(round_of_requests)
    assert dict(floor.decide(*_first_client(), floor.window * 60 + 13))[b"ratelimit-remaining"] == b"69"


def test_decision(benchmark: BenchmarkFixture, run: Callable[[Coroutine[Any, Any, None]], None]) -> None:
    meter = MemoryMeter()
    minutes = count(30_000_000)
    now = 0

    async def round_of_requests() -> None:
        nonlocal now
        now = next(minutes) * 60 + 13
        for ip, key in REQUESTS:
            await decide(meter, MONEY, ip, key.decode("latin-1"), now)

    benchmark(lambda: run(round_of_requests()))
    assert dict(asyncio.run(decide(meter, MONEY, *_first_client(), now)))[b"ratelimit-remaining"] == b"69"


def test_whole_door(benchmark: BenchmarkFixture, run: Callable[[Coroutine[Any, Any, None]], None]) -> None:
    meter = MemoryMeter()
    minutes = count(30_000_000)
    now = 0

    async def round_of_requests() -> None:
        nonlocal now
        now = next(minutes) * 60 + 13
        for ip, key in REQUESTS:
            path = api_path(normalise_path("/api/v1/payments"))
            assert path is not None
            of = bucket("POST", path)
            await decide(meter, of, client_ip(ip, None, ()), key.decode("latin-1"), now)

    benchmark(lambda: run(round_of_requests()))
    assert dict(asyncio.run(decide(meter, MONEY, *_first_client(), now)))[b"ratelimit-remaining"] == b"69"


def _first_client() -> tuple[str, str]:
    ip, key = CLIENTS[0]
    return ip, key.decode("latin-1")
