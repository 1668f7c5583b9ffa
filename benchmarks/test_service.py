"""The whole service under load, beside a bare handler of the same framework in the same server: `POST /payments` with a
new key each, the same key again, and `GET /payments/{id}`, on 32 connections.

Everything is switched on: rate limits, authorization, idempotency, job, full durability; the worker runs in the same
process. Merchants are many, because each may send 120 of them a minute. A round is one load; beside its seconds
stand the rate, the 99th percentile, and the CPU time of the server for one request, which swings far less.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle
from pathlib import Path
from statistics import median
from typing import cast
from uuid import NAMESPACE_OID, uuid4, uuid5

import aiohttp
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.bare import bare_server
from benchmarks.load import Outcome, load, request
from benchmarks.processes import cpu_seconds
from cambist.core.usecases.accounts import KeyPair
from tests.servers import database, postgres_server
from tests.stories.processes import installation

ROUNDS = 5
LOAD = 3000
"""Requests of one round."""

PER_KEY = 40
"""How many a merchant sends in one: within what it may read in a minute, and twice within what it may create."""

MERCHANTS = LOAD * (ROUNDS + 1) // PER_KEY
"""So many that nobody's turn comes twice in a minute."""

BODY = b'{"amount_rub":"100.00","description":"order 1234"}'
NOBODY = KeyPair(api_key="svc_test_" + "0" * 32, api_secret="0" * 64)


class Place:
    """A server, whoever may ask it, and requests that no limit stops."""

    def __init__(self, base: str, pairs: Sequence[KeyPair], pid: int) -> None:
        self.base = base
        self.pid = pid
        self._sources = (f"10.{a}.{b}.{c}" for a in range(256) for b in range(256) for c in range(256))
        self._pairs = cycle(pairs)
        self.payments: dict[str, str] = {}
        """A payment of each merchant, by the API key."""

    def turns(self, count: int = LOAD, per_key: int = PER_KEY) -> Iterator[tuple[KeyPair, str]]:
        """Who sends each request of a load, and from where."""
        for start in range(0, count, per_key):
            pair, source = next(self._pairs), next(self._sources)
            yield from ((pair, source) for _ in range(min(per_key, count - start)))

    def creations(self) -> list[bytes]:
        """Payments with a new key each."""
        return [
            request("POST", "/api/v1/payments", pair, source, BODY, Idempotency_Key=str(uuid4()))
            for pair, source in self.turns()
        ]

    def repetitions(self) -> list[bytes]:
        """The creation of each merchant's payment again, with its key."""
        return [
            request("POST", "/api/v1/payments", pair, source, BODY, Idempotency_Key=key_of(pair))
            for pair, source in self.turns()
        ]

    def readings(self) -> list[bytes]:
        """Each merchant's payment."""
        return [
            request("GET", f"/api/v1/payments/{self.payments.get(pair.api_key, 'pay_1')}", pair, source)
            for pair, source in self.turns()
        ]


def key_of(pair: KeyPair) -> str:
    """The idempotency key of the merchant's payment."""
    return str(uuid5(NAMESPACE_OID, pair.api_key))


def measured(
    benchmark: BenchmarkFixture, place: Place, requests: Callable[[], list[bytes]], *, status: int = 200
) -> None:
    """Rounds of loads of `requests`, which are made outside the measured time."""
    outcomes: list[Outcome] = []
    cpu: list[float] = []

    def setup() -> tuple[tuple[list[bytes]], dict[str, str]]:
        return (requests(),), {}

    def one(made: list[bytes]) -> None:
        before = cpu_seconds(place.pid)
        outcomes.append(load(place.base, made, status=status))
        cpu.append(cpu_seconds(place.pid) - before)

    cast("Callable[..., object]", benchmark.pedantic)(one, setup=setup, rounds=ROUNDS, warmup_rounds=1)
    counted = outcomes[1:]
    benchmark.extra_info["requests_per_second"] = round(median(outcome.rate for outcome in counted))
    benchmark.extra_info["cpu_us"] = round(median(cpu[1:]) / LOAD * 1e6)
    benchmark.extra_info["p99_ms"] = round(median(outcome.p99 for outcome in counted) * 1000, 1)


@pytest.fixture(scope="module")
def bare() -> Iterator[Place]:
    """The floor, asked with the same headers."""
    with bare_server() as (base, pid):
        yield Place(base, [NOBODY], pid)


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def service(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """`cambist serve` on a new database of each kind."""
    folder = tmp_path_factory.mktemp("service")
    if request.param == "sqlite":
        yield from serving(folder)
        return
    with postgres_server() as server, database(server) as url:
        yield from serving(folder, database_url=url)


def serving(folder: Path, **settings: str) -> Iterator[Place]:
    with installation(folder, trusted_proxies="127.0.0.1/32", log_level="warning", **settings) as made:
        asyncio.run(made.migrate())
        pairs = [account.test for account in asyncio.run(made.accounts(MERCHANTS))]
        running, base = made.serve()
        place = Place(base, pairs, running.pid)
        asyncio.run(pay_once(place, pairs))
        yield place
        running.terminate()


async def pay_once(place: Place, pairs: Sequence[KeyPair]) -> None:
    """Let each merchant have a payment."""
    async with aiohttp.ClientSession(place.base) as session:
        for number, pair in enumerate(pairs):
            headers = {
                "X-Api-Key": pair.api_key,
                "X-Api-Secret": pair.api_secret,
                "X-Forwarded-For": f"192.0.2.{number % 250}",
                "Idempotency-Key": key_of(pair),
            }
            async with session.post("/api/v1/payments", json={"amount_rub": "100.00"}, headers=headers) as answer:
                place.payments[pair.api_key] = (await answer.json())["id"]


@pytest.mark.benchmark(group="POST /payments: 3000, 32 at once")
class TestCreate:
    def test_floor_bare_handler(self, benchmark: BenchmarkFixture, bare: Place) -> None:
        measured(benchmark, bare, bare.creations, status=201)

    def test_service(self, benchmark: BenchmarkFixture, service: Place) -> None:
        measured(benchmark, service, service.creations, status=201)


@pytest.mark.benchmark(group="POST /payments with a known key: 3000, 32 at once")
class TestRepeat:
    def test_floor_bare_handler(self, benchmark: BenchmarkFixture, bare: Place) -> None:
        measured(benchmark, bare, bare.repetitions, status=201)

    def test_service(self, benchmark: BenchmarkFixture, service: Place) -> None:
        measured(benchmark, service, service.repetitions)


@pytest.mark.benchmark(group="GET /payments/{id}: 3000, 32 at once")
class TestRead:
    def test_floor_bare_handler(self, benchmark: BenchmarkFixture, bare: Place) -> None:
        measured(benchmark, bare, bare.readings)

    def test_service(self, benchmark: BenchmarkFixture, service: Place) -> None:
        measured(benchmark, service, service.readings)
