"""Other services and packages at the same work, in environments of their own (benchmarks/peers/). Run with
CAMBIST_BENCH_PEERS=FOLDER, which says where those lie; else they are skipped, because making them takes minutes."""

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
from tests.servers import database, postgres_server

ROUNDS = 3
LOAD = 200
"""Requests of one round: it answers some ten a second."""

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


@pytest.mark.benchmark(group=f"LNbits, an invoice: {LOAD}, 32 at once")
def test_lnbits_invoice(benchmark: BenchmarkFixture, peer: Running) -> None:
    outcomes: list[Outcome] = []
    cpu: list[float] = []

    def one() -> None:
        before = cpu_seconds(peer.pid)
        outcomes.append(load(peer.base, [peer.invoice()] * LOAD, status=201))
        cpu.append(cpu_seconds(peer.pid) - before)

    cast("Callable[..., object]", benchmark.pedantic)(one, rounds=ROUNDS, warmup_rounds=1)
    benchmark.extra_info["requests_per_second"] = round(median(outcome.rate for outcome in outcomes[1:]), 1)
    benchmark.extra_info["cpu_us"] = round(median(cpu[1:]) / LOAD * 1e6)
    benchmark.extra_info["p99_ms"] = round(median(outcome.p99 for outcome in outcomes[1:]) * 1000, 1)


@pytest.mark.benchmark(group="rate limit: 1000 requests")
def test_limits_package(benchmark: BenchmarkFixture) -> None:
    try:
        took = limits_package.nanoseconds_per_decision()
    except NotToBeHad as fault:
        pytest.skip(str(fault))
    cast("Callable[..., object]", benchmark.pedantic)(lambda: None, rounds=1)
    benchmark.extra_info["us_per_1000"] = round(took)
