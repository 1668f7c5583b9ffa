"""Operation ids and helpers that the bank suites share."""

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
"""Longer than most providers remember idempotency keys."""


async def state_of(bank: Bank, operation: str) -> InvoiceState:
    """Return the state of an operation's invoice, found by the operation id alone."""
    invoice = await bank.find_invoice(operation)
    assert invoice is not None, "an invoice that was made cannot be found by its operation"
    return await bank.invoice_state(invoice.reference)


def last_repeat(bank: Bank) -> timedelta:
    """Return how long after the first attempt an operation may still be repeated, capped at 25 hours."""
    window = bank.capabilities.repeat_window
    return DAY if window is None else min(window, DAY)


def assert_open(state: InvoiceState, invoice: Invoice) -> None:
    """Assert that the invoice is open and unpaid. `check_after` is not compared: the provider decides it."""
    assert (state.reference, state.status) == (invoice.reference, InvoiceStatus.OPEN)
    assert (state.transfers, state.failure) == ((), None)
