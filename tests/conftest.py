"""Fixtures of all tests."""

from collections.abc import AsyncIterator

import pytest

from tests.houses import TestHouse, open_test_house


@pytest.fixture
async def house() -> AsyncIterator[TestHouse]:
    """A house with one merchant, in memory, under a virtual clock."""
    async with open_test_house() as opened:
        yield opened
