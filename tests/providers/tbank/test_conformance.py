"""T-Bank keeps the contract that is shipped for banks (frontends/conformance), over the fake."""

from collections.abc import AsyncIterator

import pytest

from cambist.conformance import BankHarness
from cambist.frontends.conformance import mandates as of_mandates
from cambist.frontends.conformance.bank import bank as of_banks
from tests.providers.bank_suites import suites
from tests.providers.tbank.harness import open_harness


@pytest.fixture
async def bank_harness() -> AsyncIterator[BankHarness]:
    async with open_harness() as harness:
        yield harness


globals().update(
    suites(
        "invoices",
        "invoices at faults",
        "refunds at faults",
        "mandates",
        "mandates at faults",
        "charges",
        "charges at faults",
    )
)


class TestWithRegister:
    """A cash register is connected to the terminal: nothing goes without a receipt."""

    @pytest.fixture
    async def bank_harness(self) -> AsyncIterator[BankHarness]:
        async with open_harness(receipts=True) as harness:
            yield harness

    class TestReceipts(of_banks.TestReceipts): ...

    class TestConfirmation(of_mandates.TestConfirmation): ...
