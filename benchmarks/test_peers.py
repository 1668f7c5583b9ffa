"""Other services and packages at the same work, in their own environments (benchmarks/peers/).
CAMBIST_BENCH_PEERS=FOLDER enables these benchmarks and names the environments' folder; creating them takes minutes."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import cast

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.load import Outcome, load
from benchmarks.peers import limits_package
from benchmarks.peers.environments import NotToBeHad
from benchmarks.peers.lnbits import Running, lnbits
from benchmarks.processes import cpu_seconds
from benchmarks.test_service import LOAD as PAYMENTS
from benchmarks.test_service import Bench, Rounds, beside, serving
from benchmarks.turns import in_turns
from tests.servers import database, postgres_server

ROUNDS = 5
LOAD = 200
"""Requests of one round. LNbits answers about ten a second."""

pytestmark = pytest.mark.skipif("CAMBIST_BENCH_PEERS" not in os.environ, reason="CAMBIST_BENCH_PEERS is not set")


@pytest.fixture(params=["sqlite", "postgres"])
def peer(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Running]:
    try:
        if request.param == "sqlite":
            with lnbits(tmp_path) as running:
                yield running
        else:
            with postgres_server() as server, database(server) as url, lnbits(tmp_path, url) as running:
                yield running
    except NotToBeHad as fault:
        pytest.skip(str(fault))


@pytest.fixture
def service(peer: Running, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Bench]:
    """Run `cambist serve` on a new database of the same kind, beside the peer."""
    assert peer.pid
    folder = tmp_path / "service"
    folder.mkdir()
    if request.node.callspec.params["peer"] == "sqlite":
        yield from serving(folder)
        return
    with postgres_server() as server, database(server) as url:
        yield from serving(folder, database_url=url)


@pytest.mark.benchmark(group=f"POST /payments: {PAYMENTS}, LNbits: {LOAD}, 32 at once")
def test_lnbits_invoice(benchmark: BenchmarkFixture, peer: Running, service: Bench) -> None:
    """Alternate with our payments, so that other load on the machine affects both."""
    ours = Rounds(service, Bench.creations, 201)
    outcomes: list[Outcome] = []
    cpu: list[float] = []

    def theirs() -> None:
        before = cpu_seconds(peer.pid)
        outcomes.append(load(peer.base, [peer.invoice()] * LOAD, status=201))
        cpu.append((cpu_seconds(peer.pid) - before) / LOAD)

    in_turns(benchmark, ours.load, theirs, rounds=ROUNDS, prepare=ours.prepare)
    rates = [outcome.rate for outcome in outcomes]
    info = benchmark.extra_info
    info["requests_per_second"] = round(median(rates[1:]), 1)
    info["cpu_us"] = round(median(cpu[1:]) * 1e6)
    info["p99_ms"] = round(median(outcome.p99 for outcome in outcomes[1:]) * 1000, 1)
    info["times_peer"] = round(beside(ours.rates, rates), 1)
    info["times_peer_cpu"] = round(beside(cpu, [each / PAYMENTS for each in ours.cpu]), 1)


@pytest.mark.benchmark(group="rate limit: 1000 requests")
def test_limits_package(benchmark: BenchmarkFixture) -> None:
    try:
        took = limits_package.nanoseconds_per_decision()
    except NotToBeHad as fault:
        pytest.skip(str(fault))
    cast("Callable[..., object]", benchmark.pedantic)(lambda: None, rounds=1)
    benchmark.extra_info["us_per_1000"] = round(took)
