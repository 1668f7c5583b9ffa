"""Money that came to a payment and cannot count (docs/payments.md "Money that cannot count")."""

from datetime import datetime

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
    """Money that came and may move nothing: it waits for an operator, and is neither lost nor silently kept.

    `id` carries the bank's transfer id, so that the same money is booked once however often the bank tells.
    """

    id: str
    account_id: str
    mode: Mode
    payment_id: str
    amount: Rub
    reason: str
    received_at: datetime
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
_REVIEWED = "review:"


def suspense_id(payment: Payment, transfer: str | None) -> str:
    """The id of money in suspense that this transfer brought; None: the bank never told of one, the operator did."""
    return f"{SUSPENSE}{payment.bank}:{f'{_REVIEWED}{payment.id}' if transfer is None else transfer}"


def suspended_transfer(suspense: Suspense, payment: Payment) -> str | None:
    """The bank's id of the transfer that is in suspense; None where it told of none."""
    transfer = suspense.id.removeprefix(f"{SUSPENSE}{payment.bank}:")
    return None if transfer.startswith(_REVIEWED) else transfer
