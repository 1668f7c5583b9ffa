"""What holds for all benchmarks."""

import os
from typing import Any

import pytest

# Processes that are measured may keep their bytecode, as installed ones do: else each compiles all of it.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


@pytest.hookimpl(tryfirst=True)
def pytest_benchmark_generate_json(benchmarks: list[Any]) -> None:
    """One that failed has no times, and pytest-benchmark would lose those of all others over it."""
    benchmarks[:] = [each for each in benchmarks if each.stats.data]
