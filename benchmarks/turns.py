"""Alternating rounds of a floor and the measured code. On a shared machine, two measurements some minutes apart differ
by more than the effect of interest."""

from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any, cast

from pytest_benchmark.fixture import BenchmarkFixture


def in_turns(
    benchmark: BenchmarkFixture,
    ours: Callable[..., object],
    floor: Callable[..., object],
    *,
    rounds: int,
    prepare: Callable[[], tuple[Any, ...]] = tuple,
    prepare_floor: Callable[[], tuple[Any, ...]] = tuple,
) -> None:
    """Run rounds of `ours`, each right after one of the floor. `times_floor` in the results is the median of how many
    times faster ours was. Preparing the arguments is not measured."""
    took = [0.0]
    ratios: list[float] = []

    def setup() -> tuple[tuple[Any, ...], dict[str, Any]]:
        arguments = prepare_floor()
        begun = perf_counter()
        floor(*arguments)
        took[0] = perf_counter() - begun
        return prepare(), {}

    def one(*arguments: Any) -> None:
        begun = perf_counter()
        ours(*arguments)
        ratios.append(took[0] / (perf_counter() - begun))

    cast("Callable[..., object]", benchmark.pedantic)(one, setup=setup, rounds=rounds, warmup_rounds=1)
    benchmark.extra_info["times_floor"] = round(median(ratios[1:]), 3)
