"""From the shell to the first answer of `cambist serve`, on an installation that is there, beside the bare import of
the two libraries that it stands on."""

import asyncio
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from tests.stories.processes import Installation, installation

ROUNDS = 5

pytestmark = pytest.mark.benchmark(group="start to first answer")


def rounds(benchmark: BenchmarkFixture, one: Callable[[], None]) -> None:
    cast("Callable[..., object]", benchmark.pedantic)(one, rounds=ROUNDS, warmup_rounds=1)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    with installation(tmp_path_factory.mktemp("start"), log_level="warning") as made:
        asyncio.run(made.migrate())
        yield made


def test_floor_imports(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    def one() -> None:
        subprocess.run([sys.executable, "-c", "import litestar, sqlalchemy"], check=True, cwd=tmp_path)

    rounds(benchmark, one)


def test_service(benchmark: BenchmarkFixture, place: Installation) -> None:
    def one() -> None:
        service, base = place.serve()
        answered(f"{base}/readyz")
        service.kill()

    rounds(benchmark, one)


def answered(url: str) -> None:
    """Return once there is an answer of 200."""
    for _ in range(1000):
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                assert answer.status == 200
                return
        except urllib.error.URLError:
            time.sleep(0.005)
    raise AssertionError("no answer")
