"""Operations at a bank of whose outcome nobody knows (ARCHITECTURE.md "Three ends").

A payment says so itself. The row beside it is there for whoever asks which ones there are: they are few, and an index
over payments would cost every creation.
"""

from datetime import datetime
from enum import StrEnum

import msgspec

from ..accounts.accounts import Mode
from .payments import Opening, Payment, PaymentStatus


class Operation(StrEnum):
    """What was asked of the bank, by the name that it has in the bank port."""

    CREATE_INVOICE = "create_invoice"
    BIND = "bind"
    CHARGE = "charge"


class UnknownOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """Stands from the unit in which an outcome becomes unknown to the one in which it becomes known; never changed
    between."""

    id: str
    """The payment's."""
    account_id: str
    mode: Mode
    operation: Operation
    created_at: datetime
    """The payment's."""
    version: int = 0


_WITHOUT_OUTCOME = (PaymentStatus.PENDING, PaymentStatus.EXPIRED)
"""One that a subscription's end cancelled, or that failed, is over, whatever the bank has."""


def is_outcome_unknown(payment: Payment) -> bool:
    """The bank never said what became of the payment's operation, and the payment may still go on."""
    return payment.opening is Opening.UNKNOWN and payment.bank_reference is None and payment.status in _WITHOUT_OUTCOME


def unknown_outcome(payment: Payment) -> UnknownOutcome:
    """The row of such a payment."""
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
