"""Money that came to a payment and cannot count (docs/payments.md "Money that cannot count")."""

from datetime import datetime
from hashlib import sha256

import msgspec

from ..accounts.accounts import Mode
from ..money import Rub
from .payments import Payment

RETURN_FAILED = "return_failed"
RETURN_REVERSED = "return_reversed"
"""Reasons of money that is in suspense still, or again: the bank could not send it, or it came back."""
RETURNED_ANEW = "returned_anew"
"""Reason of money of which a further attempt is under way, or went."""
RETURN_ENDED = (RETURN_FAILED, RETURN_REVERSED)
"""Its present attempt is over, and an operator may begin another."""


class Suspense(msgspec.Struct, frozen=True, kw_only=True):
    """Money that came and cannot move its payment. It waits for an operator, and is neither lost nor silently kept.

    `id` names the payment and the bank's transfer, so that each transfer is booked once however often the bank reports
    it. Banks need only number transfers within one invoice.
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
    """Amount that the bank reports for the same transfer since, where it differs from the booked one."""
    resolved_at: datetime | None = None
    attempt: int = 1
    """Which attempt to send it back is the present one, or would be the first (suspense_returns.py)."""
    sending_since: datetime | None = None
    """Since when the bank may have the present attempt; None: it was never asked for it."""
    operation: str | None = None
    """Under which the bank was asked for the present attempt; None: it was not, or by an earlier version, whose ids
    follow from `id` (suspense_returns.py: present_operation)."""
    version: int = 0


SUSPENSE = "sus_"
_LONGEST = 64
"""Characters of a bank's transfer id that stand in a suspense id as they are."""


def suspense_id(payment: Payment, transfer: str | None) -> str:
    """Return the id of the money that this transfer of the payment brought to suspense.

    None: the bank reported no transfer, an operator did. An id that is too long, or not printable ASCII, is replaced
    by its digest, so that operators can type every suspense id.
    """
    if transfer is None:
        return f"{SUSPENSE}{payment.id}"
    if len(transfer) > _LONGEST or not transfer.isascii() or not transfer.isprintable():
        transfer = sha256(transfer.encode()).hexdigest()
    return f"{SUSPENSE}{payment.id}:{transfer}"


def new_suspense(payment: Payment, transfer: str | None, amount: Rub, *, at: datetime, reason: str) -> Suspense:
    """Return the record of money that this transfer of the payment brought. None: as in `suspense_id`."""
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
