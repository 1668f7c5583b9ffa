"""Contract of banks whose invoices we can create without a request (ports/bank.py: DrawingBank)."""

import pytest

from ....ports.bank import (
    DrawingBank,
    Invoice,
    InvoiceStatus,
)
from ..bank_harness import BankHarness
from .kit import OPERATION, OTHER, assert_open


class TestDrawn:
    """An invoice created locally behaves like one created by the provider."""

    @pytest.fixture
    def drawn(self, bank_harness: BankHarness) -> Invoice:
        """Return the invoice of OPERATION. Skips if the bank cannot draw invoices."""
        if not bank_harness.bank.capabilities.draws_invoices:
            pytest.skip("the bank must be asked for invoices")
        assert isinstance(bank_harness.bank, DrawingBank)
        invoice = bank_harness.bank.draw_invoice(bank_harness.request(OPERATION))
        assert invoice is not None, "of 100 RUB it draws none"
        assert invoice.reference
        assert invoice.payload
        return invoice

    async def test_it_is_open(self, bank_harness: BankHarness, drawn: Invoice) -> None:
        state = await bank_harness.bank.invoice_state(drawn.reference)
        assert_open(state, drawn)

    async def test_it_asks_nobody(self, bank_harness: BankHarness, drawn: Invoice) -> None:
        await bank_harness.be_away()
        assert isinstance(bank_harness.bank, DrawingBank)
        assert bank_harness.bank.draw_invoice(bank_harness.request(OTHER)) is not None
        assert drawn.reference

    async def test_money_that_came_is_told_to_the_kopeck(self, bank_harness: BankHarness, drawn: Invoice) -> None:
        await bank_harness.pay(OPERATION, drawn, 100_00)
        state = await bank_harness.bank.invoice_state(drawn.reference)
        assert state.status is InvoiceStatus.PAID
        assert [transfer.amount_kopecks for transfer in state.transfers] == [100_00]

    async def test_two_operations_are_two_invoices(self, bank_harness: BankHarness, drawn: Invoice) -> None:
        assert isinstance(bank_harness.bank, DrawingBank)
        other = bank_harness.bank.draw_invoice(bank_harness.request(OTHER))
        assert other is not None
        assert other.reference != drawn.reference
        assert other.payload != drawn.payload
        await bank_harness.pay(OPERATION, drawn, 100_00)
        assert (await bank_harness.bank.invoice_state(other.reference)).transfers == ()
