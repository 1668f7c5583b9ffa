"""Resident memory of `cambist serve`: idle beside a bare application in the same server; then after many payments and
their webhooks beside its idle value.

Each payment is of 404.02 rubles, which the simulated bank refuses after a second, so that each has an event and a
webhook. CAMBIST_BENCH_MEMORY sets their number (default 5000; the goal is for 100000). The results are mebibytes, not
seconds, and are in `extra_info`.
"""

import asyncio
import os
import sqlite3
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import cast
from uuid import uuid4

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.bare import bare_server
from benchmarks.load import load, request
from benchmarks.processes import resident_mib
from benchmarks.test_deliveries import RECEIVER
from benchmarks.test_service import Bench
from tests.stories.processes import Installation, installation

PAYMENTS = int(os.environ.get("CAMBIST_BENCH_MEMORY", "5000"))
MERCHANTS = 1200
"""Each may create 120 payments a minute."""
PER_KEY = 50
BODY = b'{"amount_rub":"404.02","description":"order 1234"}'
PATIENCE = 1800.0

pytestmark = pytest.mark.benchmark(group="resident memory")


def noted(benchmark: BenchmarkFixture, measure: Callable[[], float]) -> None:
    """Record the result of `measure`."""
    found: list[float] = []
    cast("Callable[..., object]", benchmark.pedantic)(lambda: found.append(measure()), rounds=1)
    benchmark.extra_info["mib"] = round(found[0], 1)


@pytest.fixture(scope="module")
def receiver() -> Iterator[str]:
    process = subprocess.Popen([sys.executable, "-c", RECEIVER, "1"], stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/hook"
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, receiver: str) -> Iterator[tuple[Installation, Bench, int]]:
    settings = {"trusted_proxies": "127.0.0.1/32", "log_level": "warning"}
    with installation(tmp_path_factory.mktemp("memory"), True, **settings) as made:
        asyncio.run(made.migrate())
        pairs = [account.test for account in asyncio.run(made.accounts(MERCHANTS, receiver))]
        service, base = made.serve()
        yield made, Bench(base, pairs, service.pid), service.pid


def test_floor_bare_application(benchmark: BenchmarkFixture) -> None:
    with bare_server() as (base, pid):
        with urllib.request.urlopen(f"{base}/api/v1/payments/pay_1", timeout=10) as answer:
            assert answer.status == 200
        noted(benchmark, lambda: resident_mib(pid))


def test_service_at_rest(benchmark: BenchmarkFixture, running: tuple[Installation, Bench, int]) -> None:
    _, bench, pid = running
    with urllib.request.urlopen(f"{bench.base}/readyz", timeout=10) as answer:
        assert answer.status == 200
    time.sleep(3)  # until the worker's first round is over
    noted(benchmark, lambda: resident_mib(pid))


def test_service_after_payments(benchmark: BenchmarkFixture, running: tuple[Installation, Bench, int]) -> None:
    made, bench, pid = running
    for start in range(0, PAYMENTS, 1000):
        turns = bench.turns(min(1000, PAYMENTS - start), PER_KEY)
        load(
            bench.base,
            [
                request("POST", "/api/v1/payments", pair, source, BODY, Idempotency_Key=str(uuid4()))
                for pair, source in turns
            ],
            status=201,
        )
    wait_for_letters(made.settings.data_dir / "cambist.db", PAYMENTS)
    noted(benchmark, lambda: resident_mib(pid))
    benchmark.extra_info["payments"] = PAYMENTS


def wait_for_letters(path: Path, count: int) -> None:
    """Wait until this many webhooks were delivered."""
    done, deadline = 0, time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as database:
            (done,) = database.execute("SELECT count(*) FROM deliveries WHERE status = 'delivered'").fetchone()
        if done >= count:
            return
        time.sleep(1)
    raise AssertionError(f"{done} of {count} letters were delivered")
