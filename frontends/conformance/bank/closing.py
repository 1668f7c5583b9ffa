"""Contract of banks that can cancel invoices (ports/bank.py: CancellingBank)."""

import pytest

from ....ports.bank import (
    CancellingBank,
    InvoiceStatus,
)
from ....ports.faults import OutcomeUnknown, Refused
from ..bank_harness import BankHarness
from ..expectations import must_answer, must_raise
from .kit import OPERATION


class TestClosing:
    """Cancelling closes an open invoice and never loses money."""

    @pytest.fixture
    def closing(self, bank_harness: BankHarness) -> CancellingBank:
        """Return the bank. Skips if it cannot cancel invoices."""
        if not bank_harness.bank.capabilities.cancels_invoices:
            pytest.skip("the bank closes no invoices (`capabilities.cancels_invoices`)")
        assert isinstance(bank_harness.bank, CancellingBank), "a bank with cancels_invoices must be a CancellingBank"
        return bank_harness.bank

    async def test_a_closed_invoice_is_open_no_more(self, bank_harness: BankHarness, closing: CancellingBank) -> None:
        invoice = await closing.create_invoice(bank_harness.request(OPERATION))
        with must_answer("an open invoice can be closed, and closing it again changes nothing"):
            await closing.cancel_invoice(invoice.reference)
            await closing.cancel_invoice(invoice.reference)
        state = await closing.invoice_state(invoice.reference)
        over = (InvoiceStatus.CANCELLED, InvoiceStatus.EXPIRED)
        assert state.status in over, f"an invoice that was closed must be over, and it is {state.status}"
        assert state.transfers == (), "an invoice that nobody paid must have no transfer"

    async def test_paid_invoice_stays_paid(self, bank_harness: BankHarness, closing: CancellingBank) -> None:
        invoice = await closing.create_invoice(bank_harness.request(OPERATION))
        await bank_harness.pay(OPERATION, invoice, 100_00)
        with must_raise("an invoice that is paid cannot be closed", Refused):
            await closing.cancel_invoice(invoice.reference)
        state = await closing.invoice_state(invoice.reference)
        assert state.status is InvoiceStatus.PAID, "an invoice that was paid must stay PAID"

    async def test_unknown_invoice_is_refused(self, closing: CancellingBank) -> None:
        with must_raise("an invoice that does not exist cannot be closed", Refused):
            await closing.cancel_invoice("no-such-reference")

    @pytest.mark.parametrize("done", [True, False])
    async def test_a_lost_answer_is_told_by_its_state(
        self, bank_harness: BankHarness, closing: CancellingBank, done: bool
    ) -> None:
        invoice = await closing.create_invoice(bank_harness.request(OPERATION))
        await bank_harness.lose_next_answer(done=done)
        with must_raise("a writing call whose answer is lost has an unknown outcome", OutcomeUnknown):
            await closing.cancel_invoice(invoice.reference)
        is_open = (await closing.invoice_state(invoice.reference)).status is InvoiceStatus.OPEN
        assert is_open is not done, "after a lost answer the state must show whether the invoice was closed"
