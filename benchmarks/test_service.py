"""The whole service under load, beside a bare handler of the same framework in the same server: `POST /payments` with
new keys, with repeated keys, and `GET /payments/{id}`, on 32 connections.

All features are on: rate limits, authorization, idempotency, jobs, full durability; the worker runs in the same
process. There are many merchants, because each may send 120 requests a minute. A round is one load. Its results are the
seconds, the rate, the 99th percentile, and the server's CPU time per request, which varies far less.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle
from pathlib import Path
from statistics import median
from uuid import NAMESPACE_OID, uuid4, uuid5

import aiohttp
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.bare import bare_server
from benchmarks.load import load, request
from benchmarks.processes import cpu_seconds
from benchmarks.turns import in_turns
from cambist.core.usecases.accounts.accounts import KeyPair
from tests.servers import database, postgres_server
from tests.stories.processes import installation

ROUNDS = 5
LOAD = 3000
"""Requests of one round."""

PER_KEY = 40
"""Requests of a merchant in one round: within its read limit per minute, and at most half of its creation limit."""

MERCHANTS = LOAD * (ROUNDS + 1) // PER_KEY
"""Enough merchants that no merchant is used twice in a minute."""

BODY = b'{"amount_rub":"100.00","description":"order 1234"}'
NOBODY = KeyPair(api_key="svc_test_" + "0" * 32, api_secret="0" * 64)


class Bench:
    """A server, its merchants, and requests that no limit refuses."""

    def __init__(self, base: str, pairs: Sequence[KeyPair], pid: int) -> None:
        self.base = base
        self.pid = pid
        self._sources = (f"10.{a}.{b}.{c}" for a in range(256) for b in range(256) for c in range(256))
        self._pairs = cycle(pairs)
        self.payments: dict[str, str] = {}
        """A payment of each merchant, by API key."""

    def turns(self, count: int = LOAD, per_key: int = PER_KEY) -> Iterator[tuple[KeyPair, str]]:
        """Yield the merchant and the client address of each request."""
        for start in range(0, count, per_key):
            pair, source = next(self._pairs), next(self._sources)
            yield from ((pair, source) for _ in range(min(per_key, count - start)))

    def creations(self) -> list[bytes]:
        """Build creations of payments with new keys."""
        return [
            request("POST", "/api/v1/payments", pair, source, BODY, Idempotency_Key=str(uuid4()))
            for pair, source in self.turns()
        ]

    def repetitions(self) -> list[bytes]:
        """Build repeated creations of each merchant's payment, with its key."""
        return [
            request("POST", "/api/v1/payments", pair, source, BODY, Idempotency_Key=key_of(pair))
            for pair, source in self.turns()
        ]

    def readings(self) -> list[bytes]:
        """Build reads of each merchant's payment."""
        return [
            request("GET", f"/api/v1/payments/{self.payments.get(pair.api_key, 'pay_1')}", pair, source)
            for pair, source in self.turns()
        ]


def key_of(pair: KeyPair) -> str:
    """Return the idempotency key of the merchant's payment."""
    return str(uuid5(NAMESPACE_OID, pair.api_key))


class Rounds:
    """Results of one server's rounds."""

    def __init__(self, bench: Bench, requests: Callable[[Bench], list[bytes]], status: int) -> None:
        self._place, self._requests, self._status = bench, requests, status
        self.rates: list[float] = []
        self.cpu: list[float] = []
        self.p99: list[float] = []

    def prepare(self) -> tuple[list[bytes]]:
        """Build the requests of the next round."""
        return (self._requests(self._place),)

    def load(self, requests: list[bytes]) -> None:
        """Run one round."""
        before = cpu_seconds(self._place.pid)
        outcome = load(self._place.base, requests, status=self._status)
        self.cpu.append(cpu_seconds(self._place.pid) - before)
        self.rates.append(outcome.rate)
        self.p99.append(outcome.p99)


def measured(
    benchmark: BenchmarkFixture,
    service: Bench,
    bare: Bench,
    requests: Callable[[Bench], list[bytes]],
    *,
    status: int = 200,
    floor_status: int = 200,
) -> None:
    """Run alternating rounds of `requests` against the service and the bare handler. The ratios to the floor are
    medians over the rounds."""
    ours, floor = Rounds(service, requests, status), Rounds(bare, requests, floor_status)
    in_turns(benchmark, ours.load, floor.load, rounds=ROUNDS, prepare=ours.prepare, prepare_floor=floor.prepare)
    info = benchmark.extra_info
    info["requests_per_second"] = round(median(ours.rates[1:]))
    info["cpu_us"] = round(median(ours.cpu[1:]) / LOAD * 1e6)
    info["p99_ms"] = round(median(ours.p99[1:]) * 1000, 1)
    info["rate_beside_floor"] = beside(ours.rates, floor.rates)
    info["cpu_beside_floor"] = beside(floor.cpu, ours.cpu)
    info["p99_beside_floor"] = beside(ours.p99, floor.p99)


def beside(over: Sequence[float], under: Sequence[float]) -> float:
    """Return the median of the rounds' ratios without the first round, which warms up."""
    return round(median(a / b for a, b in zip(over[1:], under[1:], strict=True)), 3)


@pytest.fixture(scope="module")
def bare() -> Iterator[Bench]:
    """Run the floor. It gets the same headers."""
    with bare_server() as (base, pid):
        yield Bench(base, [NOBODY], pid)


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def service(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """Run `cambist serve` on a new database of each kind."""
    folder = tmp_path_factory.mktemp("service")
    if request.param == "sqlite":
        yield from serving(folder)
        return
    with postgres_server() as server, database(server) as url:
        yield from serving(folder, database_url=url)


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """Run `cambist serve` on SQLite with a bank that needs a call for every invoice: two more steps."""
    yield from serving(tmp_path_factory.mktemp("asking"), test_banks="simulator-asked")


def serving(folder: Path, **settings: str) -> Iterator[Bench]:
    with installation(folder, True, trusted_proxies="127.0.0.1/32", log_level="warning", **settings) as made:
        asyncio.run(made.migrate())
        pairs = [account.test for account in asyncio.run(made.accounts(MERCHANTS))]
        running, base = made.serve()
        bench = Bench(base, pairs, running.pid)
        asyncio.run(pay_once(bench, pairs))
        yield bench
        running.terminate()


async def pay_once(bench: Bench, pairs: Sequence[KeyPair]) -> None:
    """Create a payment of each merchant."""
    async with aiohttp.ClientSession(bench.base) as session:
        for number, pair in enumerate(pairs):
            headers = {
                "X-Api-Key": pair.api_key,
                "X-Api-Secret": pair.api_secret,
                "X-Forwarded-For": f"192.0.2.{number % 250}",
                "Idempotency-Key": key_of(pair),
            }
            async with session.post("/api/v1/payments", json={"amount_rub": "100.00"}, headers=headers) as answer:
                bench.payments[pair.api_key] = (await answer.json())["id"]


@pytest.mark.benchmark(group="POST /payments: 3000, 32 at once")
def test_create(benchmark: BenchmarkFixture, service: Bench, bare: Bench) -> None:
    measured(benchmark, service, bare, Bench.creations, status=201, floor_status=201)


@pytest.mark.benchmark(group="POST /payments: 3000, 32 at once")
def test_create_at_a_bank_that_is_asked(benchmark: BenchmarkFixture, asking: Bench, bare: Bench) -> None:
    measured(benchmark, asking, bare, Bench.creations, status=201, floor_status=201)


@pytest.mark.benchmark(group="POST /payments with a known key: 3000, 32 at once")
def test_repeat(benchmark: BenchmarkFixture, service: Bench, bare: Bench) -> None:
    measured(benchmark, service, bare, Bench.repetitions, floor_status=201)


@pytest.mark.benchmark(group="GET /payments/{id}: 3000, 32 at once")
def test_read(benchmark: BenchmarkFixture, service: Bench, bare: Bench) -> None:
    measured(benchmark, service, bare, Bench.readings)
