"""The adapter keeps the contracts that every bank has to keep, over the fake."""

from collections.abc import AsyncIterator

import pytest

from cambist.adapters.clock import VirtualClock
from cambist.frontends.conformance import charges as of_charges
from cambist.frontends.conformance import mandates as of_mandates
from cambist.frontends.conformance import remittances as of_remittances
from cambist.frontends.conformance import reporting as of_lists
from cambist.frontends.conformance.bank import bank as of_banks
from cambist.frontends.conformance.benches import BankBench
from cambist.ports import ReceiptNeed

from .bench import YooKassaBench
from .conftest import tools_of
from .fake import YooKassaFake


@pytest.fixture
def bank_bench(bench: YooKassaBench) -> BankBench:
    return bench


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


class TestRemittances(of_remittances.TestRemittances): ...


class TestFailures(of_remittances.TestFailures): ...


class TestOfRemittances(of_remittances.TestWhatItSays): ...


class TestReporting(of_lists.TestReporting): ...


class TestRefundsAtFaults(of_banks.TestRefundsAtFaults): ...


class TestCancelledRefunds(of_banks.TestCancelledRefunds): ...


class TestTwoRefund(of_banks.TestTwoRefund): ...


class TestBindingAtFaults(of_mandates.TestBindingAtFaults): ...


class TestCancelledBinding(of_mandates.TestCancelledBinding): ...


class TestTwoBind(of_mandates.TestTwoBind): ...


class TestChargesAtFaults(of_charges.TestChargesAtFaults): ...


class TestCancelledCharges(of_charges.TestCancelledCharges): ...


class TestTwoCharge(of_charges.TestTwoCharge): ...


class TestRemittancesAtFaults(of_remittances.TestRemittancesAtFaults): ...


class TestCancelledRemittances(of_remittances.TestCancelledRemittances): ...


class TestTwoRemit(of_remittances.TestTwoRemit): ...


class TestWithACashRegister:
    """Without a receipt the shop takes no money."""

    @pytest.fixture
    async def bank_bench(self, clock: VirtualClock, fake: YooKassaFake) -> AsyncIterator[BankBench]:
        fake.needs_receipts = True
        made = YooKassaBench(tools_of(clock), clock, fake, receipts=ReceiptNeed.REQUIRED)
        yield made
        for bank in made.banks:
            await bank.close()

    class TestReceipts(of_banks.TestReceipts): ...

    class TestConfirmation(of_mandates.TestConfirmation): ...

    class TestMandatesThatAreOver(of_charges.TestMandatesThatAreOver): ...
