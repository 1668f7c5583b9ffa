"""The bank of sunrise.py keeps the whole contract, so what a planted bug breaks is the bug's."""

from collections.abc import AsyncIterator

import pytest

import cambist
from cambist.conformance import BankHarness
from tests.contracts.sunrise import Sunrise, SunriseHarness
from tests.providers.bank_suites import suites


@pytest.fixture
async def bank_harness() -> AsyncIterator[BankHarness]:
    async with cambist.open() as service, Sunrise() as provider:
        harness = SunriseHarness(service.tools(), provider)
        yield harness
        for bank in harness.banks:
            await bank.close()


globals().update(suites("invoices", "invoices at faults", "refunds at faults"))
