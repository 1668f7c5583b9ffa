"""Bank operations with an unknown outcome (ARCHITECTURE.md "Three outcomes").

The payment itself records the state. The extra row exists to list such payments: they are few, and an index over
payments would make every creation slower.
"""

from datetime import datetime
from enum import StrEnum

import msgspec

from ..accounts.accounts import Mode
from .payments import Opening, Payment, PaymentStatus


class Operation(StrEnum):
    """Operation at the bank, by its name in the bank port."""

    CREATE_INVOICE = "create_invoice"
    BIND = "bind"
    CHARGE = "charge"


class UnknownOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """Exists from the unit in which an outcome becomes unknown to the unit in which it becomes known; never changed in
    between."""

    id: str
    """The payment's id."""
    account_id: str
    mode: Mode
    operation: Operation
    created_at: datetime
    """Creation time of the payment."""
    version: int = 0


_WITHOUT_OUTCOME = (PaymentStatus.PENDING, PaymentStatus.EXPIRED)
"""Statuses in which an outcome can still be unknown. A payment that failed, or that the end of its subscription
cancelled, is over, whatever the bank did."""


def is_outcome_unknown(payment: Payment) -> bool:
    """Return whether the bank never answered about the payment's operation and the payment may still proceed."""
    return payment.opening is Opening.UNKNOWN and payment.bank_reference is None and payment.status in _WITHOUT_OUTCOME


def unknown_outcome(payment: Payment) -> UnknownOutcome:
    """Return the row of such a payment."""
    operation = Operation.CREATE_INVOICE
    if payment.subscription_id is not None:
        operation = Operation.CHARGE if payment.is_charge else Operation.BIND
    return UnknownOutcome(
        id=payment.id,
        account_id=payment.account_id,
        mode=payment.mode,
        operation=operation,
        created_at=payment.created_at,
    )
