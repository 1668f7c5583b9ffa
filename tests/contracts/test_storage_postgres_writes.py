"""The writes of one payment to Postgres (docs/performance.md "Writes of a payment"): no change adds one unseen."""

import asyncio

import pytest

from benchmarks.writes import Written, measure
from tests.servers import own_postgres

COUNT = 25

_MOST = {"create": 9, "pay": 13.5, "webhook": 2.5, "settle": 19.5, "its webhook": 2.5, "movements": 0}
"""Index entries of each step. Lower them when a change saves some."""


@pytest.fixture(scope="module")
def steps() -> dict[str, Written]:
    with own_postgres() as server:
        return asyncio.run(measure(server.url, COUNT))


@pytest.mark.parametrize("step", _MOST)
def test_step_writes_no_more_index_entries(steps: dict[str, Written], step: str) -> None:
    written = steps[step]
    assert written.entries.total() / COUNT <= _MOST[step], written.entries


def test_steps_are_all_of_a_payment(steps: dict[str, Written]) -> None:
    assert list(steps) == list(_MOST)
    assert sum(written.versions["payments"] for written in steps.values()) == 3 * COUNT
