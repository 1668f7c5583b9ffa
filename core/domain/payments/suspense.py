"""Money that came to a payment but cannot count (docs/payments.md "Money that cannot count")."""

from datetime import datetime
from hashlib import sha256

import msgspec

from ..accounts.accounts import Mode
from ..money import Rub
from .payments import Payment

RETURN_FAILED = "return_failed"
RETURN_REVERSED = "return_reversed"
"""Reasons of money that is still, or again, in suspense: the bank could not return it, or it came back."""
RETURNED_ANEW = "returned_anew"
"""Reason of money with a further return attempt in progress or done."""
RETURN_ENDED = (RETURN_FAILED, RETURN_REVERSED)
"""The last attempt has ended, and an operator may start another one."""


class Suspense(msgspec.Struct, frozen=True, kw_only=True):
    """Money that came in and cannot move its payment. It waits for an operator, so it is never lost or kept unnoticed.

    `id` contains the payment and the bank's transfer, so that each transfer is booked once however often the bank
    reports it. Banks' transfer ids need only be unique within one invoice.
    """

    id: str
    account_id: str
    mode: Mode
    payment_id: str
    amount: Rub
    reason: str
    received_at: datetime
    transfer_id: str | None = None
    """The bank's id of the transfer; None where an operator, and not the bank, reported the money."""
    amount_at_bank: Rub | None = None
    """A different amount that the bank later reported for the same transfer."""
    resolved_at: datetime | None = None
    attempt: int = 1
    """Number of the present return attempt, or of the first one (suspense_returns.py)."""
    sending_since: datetime | None = None
    """Since when the bank may have the present attempt; None: it was never requested."""
    operation: str | None = None
    """The bank's operation id of the present attempt; None: it was never requested."""
    version: int = 0


SUSPENSE = "sus_"
_LONGEST = 64
"""Longest transfer id of a bank that a suspense id contains unchanged, in characters."""


def suspense_id(payment: Payment, transfer: str | None) -> str:
    """Return the id of the suspended money that this transfer brought to the payment.

    None: an operator, not the bank, reported the money. An id that is too long, or not printable ASCII, is replaced by
    its digest, so that operators can type every suspense id.
    """
    if transfer is None:
        return f"{SUSPENSE}{payment.id}"
    if len(transfer) > _LONGEST or not transfer.isascii() or not transfer.isprintable():
        transfer = sha256(transfer.encode()).hexdigest()
    return f"{SUSPENSE}{payment.id}:{transfer}"


def new_suspense(payment: Payment, transfer: str | None, amount: Rub, *, at: datetime, reason: str) -> Suspense:
    """Return the record of the money that this transfer brought. None: as in `suspense_id`."""
    return Suspense(
        id=suspense_id(payment, transfer),
        account_id=payment.account_id,
        mode=payment.mode,
        payment_id=payment.id,
        amount=amount,
        reason=reason,
        received_at=at,
        transfer_id=transfer,
    )
