"""The adapter keeps the contracts that every bank has to keep, over the fake."""

from collections.abc import AsyncIterator

import pytest

from cambist.adapters.clock import VirtualClock
from cambist.frontends.conformance import charges as of_charges
from cambist.frontends.conformance import mandates as of_mandates
from cambist.frontends.conformance.bank import bank as of_banks
from cambist.frontends.conformance.bank_harness import BankHarness
from cambist.ports import ReceiptNeed
from tests.providers.bank_suites import suites

from .conftest import tools_of
from .fake import YooKassaFake
from .harness import YooKassaHarness


@pytest.fixture
def bank_harness(harness: YooKassaHarness) -> BankHarness:
    return harness


globals().update(
    suites(
        "invoices",
        "invoices at faults",
        "refunds at faults",
        "mandates",
        "mandates at faults",
        "charges",
        "charges at faults",
        "remittances",
        "remittances at faults",
        "reporting",
    )
)


class TestWithACashRegister:
    """Without a receipt the shop takes no money."""

    @pytest.fixture
    async def bank_harness(self, clock: VirtualClock, fake: YooKassaFake) -> AsyncIterator[BankHarness]:
        fake.needs_receipts = True
        made = YooKassaHarness(tools_of(clock), clock, fake, receipts=ReceiptNeed.REQUIRED)
        yield made
        for bank in made.banks:
            await bank.close()

    class TestReceipts(of_banks.TestReceipts): ...

    class TestConfirmation(of_mandates.TestConfirmation): ...

    class TestMandatesThatAreOver(of_charges.TestMandatesThatAreOver): ...


class TestWithAPage:
    """Payers continue on a page of YooKassa, which sends them back to our window."""

    @pytest.fixture
    async def bank_harness(self, clock: VirtualClock, fake: YooKassaFake) -> AsyncIterator[BankHarness]:
        made = YooKassaHarness(tools_of(clock), clock, fake, by_page=True)
        yield made
        for bank in made.banks:
            await bank.close()

    class TestRequests(of_banks.TestRequests): ...

    class TestInvoices(of_banks.TestInvoices): ...

    class TestPayments(of_banks.TestPayments): ...
