"""Settings of all benchmarks."""

import os
from typing import Any

import pytest

# Let measured processes store their bytecode, as installed programs do. Otherwise each compiles every module.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


@pytest.hookimpl(tryfirst=True)
def pytest_benchmark_generate_json(benchmarks: list[Any]) -> None:
    """Remove failed benchmarks: they have no times, and pytest-benchmark would discard all results because of them."""
    benchmarks[:] = [each for each in benchmarks if each.stats.data]
