"""Operation ids and helpers that the bank suites share."""

from datetime import timedelta
from typing import TypeVar

import msgspec
import pytest

from ....ports.bank import (
    Bank,
    Invoice,
    InvoiceState,
    InvoiceStatus,
)
from ..bank_harness import Asked, BankHarness
from ..expectations import must_play
from ..hidden import unplayed
from ..operation_ids import operation_id

T = TypeVar("T")

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


async def paid(harness: BankHarness, operation: str = OPERATION, kopecks: int = 100_00) -> Invoice:
    """Return an invoice that a payer has paid."""
    invoice = await harness.bank.create_invoice(harness.request(operation, kopecks))
    await harness.pay(operation, invoice, kopecks)
    return invoice


async def paid_again(harness: BankHarness, invoice: Invoice, operation: str = OPERATION, kopecks: int = 100_00) -> None:
    """Let a payer pay the invoice a second time. Skips if no payer can."""
    if not harness.pays_twice:
        pytest.skip("payers cannot pay an invoice twice at this provider (`pays_twice`)")
    with must_play("`pay` must let a payer pay an invoice a second time, or the harness set `pays_twice = False`"):
        await harness.pay(operation, invoice, kopecks)


async def asked_of(harness: BankHarness, operation: str) -> Asked:
    """Return what the provider's records say about the operation."""
    with must_play("`asked` must find the provider's record: is the operation id cut, or another one sent?"):
        return await harness.asked(operation)


def last_repeat(bank: Bank) -> timedelta:
    """Return how long after the first attempt an operation may still be repeated, capped at 25 hours."""
    window = bank.capabilities.repeat_window
    return DAY if window is None else min(window, DAY)


def assert_open(state: InvoiceState, invoice: Invoice) -> None:
    """Assert that the invoice is open and unpaid. `check_after` is not compared: the provider decides it."""
    assert state.reference == invoice.reference, "a state must have the reference that was asked for"
    assert state.status is InvoiceStatus.OPEN, "an invoice that nobody paid must be OPEN"
    assert (state.transfers, state.failure) == ((), None), "an open invoice has neither transfers nor a failure"


def kept(value: T | msgspec.UnsetType, field: str) -> T:
    """Return what the provider's records say. Skips if they do not keep this."""
    if isinstance(value, msgspec.UnsetType):
        unplayed(f"`{field}` in the provider's records", f"asked().{field}")
    return value


def assert_amount(asked: Asked, kopecks: int) -> None:
    """Assert that the provider was asked for this amount."""
    assert asked.amount_kopecks == kopecks, (
        f"the request is of {kopecks} kopecks, and the provider was asked for {asked.amount_kopecks}: are kopecks and "
        "roubles mixed up, or is 490.05 written as 490.5?"
    )


def assert_purpose(asked: Asked, purpose: str) -> None:
    """Assert that the provider got the purpose, perhaps within a longer text."""
    sent = kept(asked.purpose, "purpose")
    assert purpose in (sent or ""), f"the provider must get the purpose {purpose!r}, and got {sent!r}"
