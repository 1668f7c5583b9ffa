"""ATOL Online keeps the contract of cash registers (frontends/conformance/registers.py), at a fake as strict as
itself, in both formats."""

from collections.abc import AsyncIterator

import pytest

from cambist.frontends.conformance import registers
from cambist.frontends.conformance.harnesses import RegisterHarness
from tests.providers.atol.harness import open_harness


class TestAtol:
    @pytest.fixture(params=["v5", "v4"])
    async def register_harness(self, request: pytest.FixtureRequest) -> AsyncIterator[RegisterHarness]:
        async with open_harness(request.param) as harness:
            yield harness

    class TestReceipts(registers.TestReceipts): ...

    class TestStates(registers.TestStates): ...

    class TestNotifications(registers.TestNotifications): ...

    class TestOfItself(registers.TestWhatItSays): ...


class TestAtolAtFaults:
    @pytest.fixture
    async def register_harness(self) -> AsyncIterator[RegisterHarness]:
        async with open_harness() as harness:
            yield harness

    class TestFaults(registers.TestReceiptsAtFaults): ...

    class TestCancelled(registers.TestCancelledReceipts): ...

    class TestTwo(registers.TestTwoReceipts): ...
