"""Pages that operations read on Postgres, beside a database with ten times the payments (docs/scaling.md)."""

import asyncio

import pytest

from benchmarks.scale.measure import Cost, measure
from benchmarks.scale.plant import plant
from cambist.adapters.storage.migrate import migrate
from tests.servers import own_postgres

_FLAT = (
    "create a payment",
    "repeat its key",
    "read an old payment",
    "first page of payments",
    "first page of failed ones",
    "find an order",
    "movements",
    "balance",
)
_SIZES = (300, 3000)


@pytest.fixture(scope="module")
def costs() -> list[dict[str, Cost]]:
    async def one(url: str, payments: int) -> dict[str, Cost]:
        await migrate(url)
        planted = await plant(url, payments, merchants=10, days=40, progress=lambda _: None)
        return await measure(url, planted, _FLAT, times=4)

    found = []
    for size in _SIZES:
        with own_postgres() as server:
            found.append(asyncio.run(one(server.url, size)))
    return found


@pytest.mark.parametrize("name", _FLAT)
def test_pages_of_an_operation_do_not_grow_with_the_payments(costs: list[dict[str, Cost]], name: str) -> None:
    """A deeper index adds a page to each of a creation's searches."""
    small, large = (each[name].pages for each in costs)
    assert large <= 1.25 * small + 8, (small, large)
