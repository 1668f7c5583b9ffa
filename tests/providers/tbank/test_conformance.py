"""T-Bank keeps the contract that is shipped for banks (frontends/conformance), over the fake."""

from collections.abc import AsyncIterator

import pytest

from cambist.conformance import BankBench
from cambist.frontends.conformance import charges as of_charges
from cambist.frontends.conformance import mandates as of_mandates
from cambist.frontends.conformance.bank import bank as of_banks
from tests.providers.tbank.bench import open_bench


@pytest.fixture
async def bank_bench() -> AsyncIterator[BankBench]:
    async with open_bench() as bench:
        yield bench


class TestInvoices(of_banks.TestInvoices): ...


class TestRefunds(of_banks.TestRefunds): ...


class TestFaults(of_banks.TestFaults): ...


class TestCancelledCalls(of_banks.TestCancelledCalls): ...


class TestTwoOfOneName(of_banks.TestTwoOfOneName): ...


class TestExtremes(of_banks.TestExtremes): ...


class TestClosed(of_banks.TestClosed): ...


class TestNotices(of_banks.TestNotices): ...


class TestOfItself(of_banks.TestWhatItSays): ...


class TestBinding(of_mandates.TestBinding): ...


class TestConfirmation(of_mandates.TestConfirmation): ...


class TestRevoke(of_mandates.TestRevoke): ...


class TestOfMandates(of_mandates.TestWhatItSays): ...


class TestCharges(of_charges.TestCharges): ...


class TestMandatesThatAreOver(of_charges.TestMandatesThatAreOver): ...


class TestOfCharges(of_charges.TestWhatItSays): ...


class TestWithRegister:
    """A cash register is connected to the terminal: nothing goes without a receipt."""

    @pytest.fixture
    async def bank_bench(self) -> AsyncIterator[BankBench]:
        async with open_bench(receipts=True) as bench:
            yield bench

    class TestReceipts(of_banks.TestReceipts): ...

    class TestConfirmation(of_mandates.TestConfirmation): ...
