"""Raiffeisenbank's adapter keeps the contracts that are shipped (frontends/conformance), over its fake."""

from collections.abc import AsyncIterator

import msgspec
import pytest

from cambist.adapters.clock import SystemClock
from cambist.frontends.conformance import charges as of_charges
from cambist.frontends.conformance import mandates as of_mandates
from cambist.frontends.conformance.bank import bank as of_banks
from cambist.frontends.conformance.bank_harness import BankHarness
from cambist.ports import ReceiptNeed
from tests.providers.bank_suites import suites
from tests.providers.raiffeisen.fake import Raiffeisen
from tests.providers.raiffeisen.harness import REGISTER, RaiffeisenHarness, new_tools


@pytest.fixture
async def bank_harness() -> AsyncIterator[BankHarness]:
    async with Raiffeisen() as books:
        harness = RaiffeisenHarness(new_tools(SystemClock()), books)
        yield harness
        for bank in harness.banks:
            await bank.close()


globals().update(
    suites(
        "invoices",
        "invoices at faults",
        "closing",
        "refunds at faults",
        "mandates",
        "mandates at faults",
        "charges",
        "charges at faults",
        "remittances",
        "remittances at faults",
    )
)


class TestWithACashRegister:
    """Without a receipt the bank takes no money."""

    @pytest.fixture
    async def bank_harness(self) -> AsyncIterator[BankHarness]:
        async with Raiffeisen() as books:
            required = msgspec.structs.replace(REGISTER, need=ReceiptNeed.REQUIRED)
            harness = RaiffeisenHarness(new_tools(SystemClock()), books, required)
            yield harness
            for bank in harness.banks:
                await bank.close()

    class TestReceipts(of_banks.TestReceipts): ...

    class TestConfirmation(of_mandates.TestConfirmation): ...

    class TestMandatesThatAreOver(of_charges.TestMandatesThatAreOver): ...
