"""Operations that the suites of a bank use, and how its invoices stand."""

from datetime import timedelta

from ....ports.bank import (
    Bank,
    Invoice,
    InvoiceState,
    InvoiceStatus,
)
from ..operation_ids import operation_id

OPERATION = operation_id("pay", 1)
OTHER = operation_id("pay", 2)
REFUND = operation_id("ref", 1)
DAY = timedelta(hours=25)
"""Longer than most providers keep their keys."""


async def state_of(bank: Bank, operation: str) -> InvoiceState:
    """Return how the invoice of an operation stands, found by the operation alone."""
    invoice = await bank.find_invoice(operation)
    assert invoice is not None, "an invoice that was made cannot be found by its operation"
    return await bank.invoice_state(invoice.reference)


def last_repeat(bank: Bank) -> timedelta:
    """How long after its first sending an operation is sent again, at the latest; a day and more stand for ever."""
    window = bank.capabilities.repeat_window
    return DAY if window is None else min(window, DAY)


def assert_open(state: InvoiceState, invoice: Invoice) -> None:
    """Nothing came yet; when to ask again is the provider's to say."""
    assert (state.reference, state.status) == (invoice.reference, InvoiceStatus.OPEN)
    assert (state.transfers, state.failure) == ((), None)
