"""The daily settlement: time per payment, and memory, among few and among many.

CAMBIST_BENCH_SETTLED sets the counts (default `2000,10000`; `10000,100000,1000000` for the figure in the docs). The
goal: time per payment and memory stay within 20 %, whatever the count. All features are on: ledger entries, statement
lines, events with deliveries, tallies, full durability. The sizes alternate, and the fastest round of each counts,
because other work on the machine can only make a settlement slower.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import cast

import msgspec
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.settling import Settled
from tests.servers import database, postgres_server

COUNTS = sorted(int(payments) for payments in os.environ.get("CAMBIST_BENCH_SETTLED", "2000,10000").split(","))
ROUNDS = 3
ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.benchmark(group="settlement")

Bench = Callable[[], AbstractContextManager[str]]
"""Creates a new, empty database and yields its URL."""


@pytest.fixture(params=["sqlite", "postgres"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    if request.param == "postgres":
        with postgres_server() as server:
            yield partial(database, server)
        return
    numbers = count()

    @contextmanager
    def file() -> Iterator[str]:
        path = tmp_path / f"settled-{next(numbers)}.db"
        yield f"sqlite:///{path}"
        path.unlink()

    yield file


def settling(*arguments: str) -> bytes:
    """Run benchmarks.settling. Raises: CalledProcessError."""
    command = [sys.executable, "-m", "benchmarks.settling", *arguments]
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout


def settled(bench: Bench, payments: int) -> Settled:
    """Settle this many payments in a new database."""
    with bench() as url:
        settling("fill", url, str(payments))
        found = msgspec.json.decode(settling("settle", url), type=Settled)
    assert found.payments == payments
    return found


def test_settling(benchmark: BenchmarkFixture, bench: Bench) -> None:
    rounds: list[list[Settled]] = []
    each = cast("Callable[..., object]", benchmark.pedantic)
    each(lambda: rounds.append([settled(bench, payments) for payments in COUNTS]), rounds=ROUNDS)
    microseconds = [min(one.seconds for one in size) / size[0].payments * 1e6 for size in zip(*rounds, strict=True)]
    memory = [max(one.peak_mib for one in size) for size in zip(*rounds, strict=True)]
    benchmark.extra_info["us_per_payment"] = dict(zip(COUNTS, map(round, microseconds), strict=True))
    benchmark.extra_info["peak_mib"] = dict(zip(COUNTS, map(round, memory), strict=True))
    if len(COUNTS) > 1:
        benchmark.extra_info["dearest"] = max(microseconds) / min(microseconds)
        benchmark.extra_info["largest"] = max(memory) / memory[0]
