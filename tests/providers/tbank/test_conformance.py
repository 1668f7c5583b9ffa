"""T-Bank keeps the contract that is shipped for banks (frontends/conformance), over the fake."""

from collections.abc import AsyncIterator

import pytest

from cambist.conformance import BankBench
from cambist.frontends.conformance import mandates as of_mandates
from cambist.frontends.conformance.bank import bank as of_banks
from tests.providers.bank_suites import suites
from tests.providers.tbank.bench import open_bench


@pytest.fixture
async def bank_bench() -> AsyncIterator[BankBench]:
    async with open_bench() as bench:
        yield bench


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
    async def bank_bench(self) -> AsyncIterator[BankBench]:
        async with open_bench(receipts=True) as bench:
            yield bench

    class TestReceipts(of_banks.TestReceipts): ...

    class TestConfirmation(of_mandates.TestConfirmation): ...
