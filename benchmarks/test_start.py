"""Start time of `cambist serve` on an existing installation, from the shell to the first answer, beside a bare import
of its two main libraries. Also the time of a merchant's test until its first paid payment, beside a bare import of the
framework."""

import asyncio
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.turns import in_turns
from tests.stories.processes import Installation, installation

ROUNDS = 5
SANDBOX = """
from cambist.frontends.testing import open_stage
with open_stage() as stage, stage.open_sandbox() as sandbox:
    payment = sandbox.client.payments.create(amount_rub="100.00", description="order 1")
    assert sandbox.pay(payment.id).status == "paid"
"""

pytestmark = pytest.mark.benchmark(group="start to first answer")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    with installation(tmp_path_factory.mktemp("start"), True, log_level="warning") as made:
        asyncio.run(made.migrate())
        yield made


def runs(script: str, folder: Path) -> Callable[[], None]:
    """Build a function that runs a program from start to end."""

    def one() -> None:
        subprocess.run([sys.executable, "-c", script], check=True, cwd=folder)

    return one


def test_sandbox(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    in_turns(benchmark, runs(SANDBOX, tmp_path), runs("import litestar", tmp_path), rounds=ROUNDS)


def test_service(benchmark: BenchmarkFixture, place: Installation, tmp_path: Path) -> None:
    def one() -> None:
        service, base = place.serve()
        answered(f"{base}/readyz")
        service.kill()

    in_turns(benchmark, one, runs("import litestar, sqlalchemy", tmp_path), rounds=ROUNDS)


def answered(url: str) -> None:
    """Wait for an answer of 200."""
    for _ in range(1000):
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                assert answer.status == 200
                return
        except urllib.error.URLError:
            time.sleep(0.005)
    raise AssertionError("no answer")
