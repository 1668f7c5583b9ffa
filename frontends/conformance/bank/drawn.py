"""Contract of banks whose invoices we can create without a request (ports/bank.py: DrawingBank)."""

import pytest

from ....ports.bank import (
    DrawingBank,
    Invoice,
    InvoiceStatus,
)
from ..bank_bench import BankBench
from .kit import OPERATION, OTHER, assert_open


class TestDrawn:
    """An invoice created locally behaves like one created by the provider."""

    @pytest.fixture
    def drawn(self, bank_bench: BankBench) -> Invoice:
        """Return the invoice of OPERATION. Skips if the bank cannot draw invoices."""
        if not bank_bench.bank.capabilities.draws_invoices:
            pytest.skip("the bank must be asked for invoices")
        assert isinstance(bank_bench.bank, DrawingBank)
        invoice = bank_bench.bank.draw_invoice(bank_bench.request(OPERATION))
        assert invoice is not None, "of 100 RUB it draws none"
        assert invoice.reference
        assert invoice.payload
        return invoice

    async def test_it_is_open(self, bank_bench: BankBench, drawn: Invoice) -> None:
        state = await bank_bench.bank.invoice_state(drawn.reference)
        assert_open(state, drawn)

    async def test_it_asks_nobody(self, bank_bench: BankBench, drawn: Invoice) -> None:
        await bank_bench.be_away()
        assert isinstance(bank_bench.bank, DrawingBank)
        assert bank_bench.bank.draw_invoice(bank_bench.request(OTHER)) is not None
        assert drawn.reference

    async def test_money_that_came_is_told_to_the_kopeck(self, bank_bench: BankBench, drawn: Invoice) -> None:
        await bank_bench.pay(OPERATION, drawn, 100_00)
        state = await bank_bench.bank.invoice_state(drawn.reference)
        assert state.status is InvoiceStatus.PAID
        assert [transfer.amount_kopecks for transfer in state.transfers] == [100_00]

    async def test_two_operations_are_two_invoices(self, bank_bench: BankBench, drawn: Invoice) -> None:
        assert isinstance(bank_bench.bank, DrawingBank)
        other = bank_bench.bank.draw_invoice(bank_bench.request(OTHER))
        assert other is not None
        assert other.reference != drawn.reference
        assert other.payload != drawn.payload
        await bank_bench.pay(OPERATION, drawn, 100_00)
        assert (await bank_bench.bank.invoice_state(other.reference)).transfers == ()
