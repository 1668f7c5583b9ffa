"""Money received for a payment, and its state, as merchants see it (docs/payments.md "What came")."""

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum

import msgspec

from ..ledger import EntryKind, JournalEntry
from ..money import Rub
from .payments import Payment, PaymentStatus
from .suspense import RETURN_ENDED, Suspense


class TransferStatus(StrEnum):
    """State of a transfer."""

    CREDITED = "credited"
    """It counts as the payment's money."""
    UNDER_REVIEW = "under_review"
    """Its amount differs from the requested one: an operator decides."""
    SUSPENDED = "suspended"
    """It cannot move the payment, and waits for an operator."""
    RETURNING = "returning"
    """The bank was asked to return it to the payer."""
    RETURNED = "returned"


class ShownTransfer(msgspec.Struct, frozen=True, kw_only=True):
    """One transfer of a payer."""

    amount: Rub
    status: TransferStatus
    received_at: datetime
    reason: str | None = None
    """Why it cannot move the payment, or why it has not been returned."""
    returned_at: datetime | None = None


ARRIVALS = (EntryKind.RECEIPT, EntryKind.REVIEW)
"""Journal entries for the payment's own money; all other money is in suspense."""


def transfers_of(
    payment: Payment, entries: Iterable[JournalEntry], unapplied: Iterable[Suspense]
) -> list[ShownTransfer]:
    """Return all transfers to a payment in the order of their arrival. `entries` are its entries of the kinds ARRIVALS;
    `unapplied` is its money in suspense, including returned money."""
    shown = [each for entry in entries if (each := _own(payment, entry)) is not None]
    shown += map(_unapplied, unapplied)
    return sorted(shown, key=lambda each: each.received_at)


def _own(payment: Payment, entry: JournalEntry) -> ShownTransfer | None:
    """Return the payment's own transfer. None: an operator returned it after review, so it is in `unapplied`."""
    status = TransferStatus.CREDITED
    if entry.kind is EntryKind.REVIEW:
        if payment.status is PaymentStatus.FAILED:
            return None
        if payment.status is PaymentStatus.AMOUNT_MISMATCH:
            status = TransferStatus.UNDER_REVIEW
    amount = Rub(sum(posting.amount for posting in entry.postings if posting.amount > 0))
    came_at = payment.paid_at if entry.kind is EntryKind.RECEIPT else payment.transfer_at
    return ShownTransfer(amount=amount, status=status, received_at=came_at or entry.at)


def _unapplied(suspense: Suspense) -> ShownTransfer:
    status = TransferStatus.SUSPENDED
    if suspense.resolved_at is not None:
        status = TransferStatus.RETURNED
    elif suspense.sending_since is not None and suspense.reason not in RETURN_ENDED:
        status = TransferStatus.RETURNING
    return ShownTransfer(
        amount=suspense.amount,
        status=status,
        received_at=suspense.received_at,
        reason=suspense.reason,
        returned_at=suspense.resolved_at,
    )
