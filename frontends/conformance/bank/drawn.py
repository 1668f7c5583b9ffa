"""Contract of banks whose invoices we can create without a request (ports/bank.py: DrawingBank)."""

import pytest

from ....ports.bank import (
    DrawingBank,
    Invoice,
    InvoiceStatus,
)
from ..bank_harness import BankHarness
from ..expectations import must_answer
from .kit import OPERATION, OTHER, assert_open


class TestDrawn:
    """An invoice created locally behaves like one created by the provider."""

    @pytest.fixture
    def drawn(self, bank_harness: BankHarness) -> Invoice:
        """Return the invoice of OPERATION. Skips if the bank cannot draw invoices."""
        if not bank_harness.bank.capabilities.draws_invoices:
            pytest.skip("the bank must be asked for invoices (`capabilities.draws_invoices`)")
        assert isinstance(bank_harness.bank, DrawingBank), "a bank with draws_invoices must be a DrawingBank"
        invoice = bank_harness.bank.draw_invoice(bank_harness.request(OPERATION))
        assert invoice is not None, "a bank with draws_invoices must draw an invoice of 100 RUB"
        assert invoice.reference, "a drawn invoice must have a reference"
        assert invoice.payload, "a drawn invoice must have the payload of its QR"
        return invoice

    async def test_it_is_open(self, bank_harness: BankHarness, drawn: Invoice) -> None:
        state = await bank_harness.bank.invoice_state(drawn.reference)
        assert_open(state, drawn)

    async def test_it_asks_nobody(self, bank_harness: BankHarness, drawn: Invoice) -> None:
        await bank_harness.be_away()
        assert drawn.reference, "a drawn invoice must have a reference"
        with must_answer("drawing an invoice makes no request to the provider"):
            assert self._other(bank_harness) is not None, "a bank that is away must draw invoices all the same"

    async def test_money_that_came_is_told_to_the_kopeck(self, bank_harness: BankHarness, drawn: Invoice) -> None:
        await bank_harness.pay(OPERATION, drawn, 100_00)
        state = await bank_harness.bank.invoice_state(drawn.reference)
        assert state.status is InvoiceStatus.PAID, "a drawn invoice that was paid must be PAID"
        came = [transfer.amount_kopecks for transfer in state.transfers]
        assert came == [100_00], "one payment must be one transfer of its exact amount"

    async def test_two_operations_are_two_invoices(self, bank_harness: BankHarness, drawn: Invoice) -> None:
        other = self._other(bank_harness)
        assert other is not None, "a bank with draws_invoices must draw an invoice of 100 RUB"
        assert other.reference != drawn.reference, "two operations must be two invoices: is the operation id cut?"
        assert other.payload != drawn.payload, "two invoices must have two QR codes"
        await bank_harness.pay(OPERATION, drawn, 100_00)
        state = await bank_harness.bank.invoice_state(other.reference)
        assert state.transfers == (), "money of one invoice must be no other's"

    def _other(self, harness: BankHarness) -> Invoice | None:
        assert isinstance(harness.bank, DrawingBank), "a bank with draws_invoices must be a DrawingBank"
        return harness.bank.draw_invoice(harness.request(OTHER))
