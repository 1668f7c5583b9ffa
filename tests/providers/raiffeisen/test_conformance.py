"""Raiffeisenbank's adapter keeps the contracts that are shipped (frontends/conformance), over its fake."""

from collections.abc import AsyncIterator

import msgspec
import pytest

from cambist.adapters.clock import SystemClock
from cambist.frontends.conformance import charges as of_charges
from cambist.frontends.conformance import mandates as of_mandates
from cambist.frontends.conformance import remittances as of_remittances
from cambist.frontends.conformance.bank import bank as of_banks
from cambist.frontends.conformance.benches import BankBench
from cambist.ports import ReceiptNeed
from tests.providers.raiffeisen.bench import REGISTER, RaiffeisenBench, new_tools
from tests.providers.raiffeisen.fake import Raiffeisen


@pytest.fixture
async def bank_bench() -> AsyncIterator[BankBench]:
    async with Raiffeisen() as books:
        bench = RaiffeisenBench(new_tools(SystemClock()), books)
        yield bench
        for bank in bench.banks:
            await bank.close()


class TestInvoices(of_banks.TestInvoices): ...


class TestClosing(of_banks.TestClosing): ...


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


class TestRemittances(of_remittances.TestRemittances): ...


class TestFailures(of_remittances.TestFailures): ...


class TestOfRemittances(of_remittances.TestWhatItSays): ...


class TestWithACashRegister:
    """Without a receipt the bank takes no money."""

    @pytest.fixture
    async def bank_bench(self) -> AsyncIterator[BankBench]:
        async with Raiffeisen() as books:
            required = msgspec.structs.replace(REGISTER, need=ReceiptNeed.REQUIRED)
            bench = RaiffeisenBench(new_tools(SystemClock()), books, required)
            yield bench
            for bank in bench.banks:
                await bank.close()

    class TestReceipts(of_banks.TestReceipts): ...

    class TestConfirmation(of_mandates.TestConfirmation): ...

    class TestMandatesThatAreOver(of_charges.TestMandatesThatAreOver): ...
