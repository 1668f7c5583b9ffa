"""The fake and the adapter over it."""

from collections.abc import AsyncIterator
from typing import cast

import pytest

from cambist.adapters.clock import VirtualClock
from cambist.adapters.ids import SeededIds
from cambist.adapters.storage.memory.memory import MemoryStorage
from cambist.ports.files import FileStore
from cambist.ports.tools import Tools

from .fake import YooKassaFake
from .harness import YooKassaHarness


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
async def fake(clock: VirtualClock) -> AsyncIterator[YooKassaFake]:
    async with YooKassaFake(clock.now) as opened:
        yield opened


@pytest.fixture
async def harness(clock: VirtualClock, fake: YooKassaFake) -> AsyncIterator[YooKassaHarness]:
    """Yield a harness over storage in memory."""
    made = YooKassaHarness(tools_of(clock), clock, fake)
    yield made
    for bank in made.banks:
        await bank.close()


def tools_of(clock: VirtualClock) -> Tools:
    storage = MemoryStorage(clock)
    return Tools(
        mode="live",
        storage=storage,
        clock=clock,
        ids=SeededIds(),
        base_url="https://pay.example",
        files=cast("FileStore", None),  # a bank reads none
    )
