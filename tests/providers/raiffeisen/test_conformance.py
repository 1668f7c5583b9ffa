"""Raiffeisenbank's adapter keeps the contracts that are shipped (frontends/conformance), over its fake."""

from collections.abc import AsyncIterator

import msgspec
import pytest

from cambist.adapters.clock import SystemClock
from cambist.frontends.conformance import charges as of_charges
from cambist.frontends.conformance import mandates as of_mandates
from cambist.frontends.conformance.bank import bank as of_banks
from cambist.frontends.conformance.bank_bench import BankBench
from cambist.ports import ReceiptNeed
from tests.providers.bank_suites import suites
from tests.providers.raiffeisen.bench import REGISTER, RaiffeisenBench, new_tools
from tests.providers.raiffeisen.fake import Raiffeisen


@pytest.fixture
async def bank_bench() -> AsyncIterator[BankBench]:
    async with Raiffeisen() as books:
        bench = RaiffeisenBench(new_tools(SystemClock()), books)
        yield bench
        for bank in bench.banks:
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
