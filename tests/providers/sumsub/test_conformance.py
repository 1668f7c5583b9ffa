"""Sumsub keeps the contract of verifiers (frontends/conformance/kyc.py), at a fake as strict as itself."""

from collections.abc import AsyncIterator

import pytest

from cambist.frontends.conformance import kyc as of_verifiers
from cambist.frontends.conformance.harnesses import KycHarness
from tests.providers.sumsub.kit import open_harness


class TestSumsub:
    @pytest.fixture
    async def kyc_harness(self) -> AsyncIterator[KycHarness]:
        async with open_harness() as harness:
            yield harness

    class TestChecks(of_verifiers.TestChecks): ...

    class TestVerdicts(of_verifiers.TestVerdicts): ...

    class TestFailures(of_verifiers.TestFailures): ...

    class TestNotifications(of_verifiers.TestNotifications): ...

    class TestOfItself(of_verifiers.TestWhatItSays): ...
