"""Sumsub keeps the contract of verifiers (frontends/conformance/kyc.py), at a fake as strict as itself."""

from collections.abc import AsyncIterator

import pytest

from cambist.frontends.conformance import kyc as of_verifiers
from cambist.frontends.conformance.benches import KycBench
from tests.providers.sumsub.kit import open_bench


class TestSumsub:
    @pytest.fixture
    async def kyc_bench(self) -> AsyncIterator[KycBench]:
        async with open_bench() as bench:
            yield bench

    class TestChecks(of_verifiers.TestChecks): ...

    class TestVerdicts(of_verifiers.TestVerdicts): ...

    class TestFailures(of_verifiers.TestFailures): ...

    class TestNotices(of_verifiers.TestNotices): ...

    class TestOfItself(of_verifiers.TestWhatItSays): ...
