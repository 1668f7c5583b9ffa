"""What became of the money that came for a payment, as its merchant reads it (docs/payments.md "What came")."""

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum

import msgspec

from ..ledger import EntryKind, JournalEntry
from ..money import Rub
from .payments import Payment, PaymentStatus
from .suspense import RETURN_ENDED, Suspense


class TransferStatus(StrEnum):
    """What became of a transfer."""

    CREDITED = "credited"
    """It is the payment's money."""
    UNDER_REVIEW = "under_review"
    """Its amount is not what was asked: an operator decides."""
    SUSPENDED = "suspended"
    """It may not move the payment, and waits for an operator."""
    RETURNING = "returning"
    """The bank was told to send it back to the payer."""
    RETURNED = "returned"


class ShownTransfer(msgspec.Struct, frozen=True, kw_only=True):
    """One transfer of a payer."""

    amount: Rub
    status: TransferStatus
    received_at: datetime
    reason: str | None = None
    """Why it may not move the payment, or why it is still here."""
    returned_at: datetime | None = None


ARRIVALS = (EntryKind.RECEIPT, EntryKind.REVIEW)
"""Entries of a payment by which its own money came; all other money is suspense."""


def transfers_of(payment: Payment, entries: Iterable[JournalEntry], strays: Iterable[Suspense]) -> list[ShownTransfer]:
    """All that came for a payment, in the order in which it came. `entries`: those of ARRIVALS; `strays`: its money in
    suspense, also what was sent back."""
    shown = [each for entry in entries if (each := _own(payment, entry)) is not None]
    shown += map(_stray, strays)
    return sorted(shown, key=lambda each: each.received_at)


def _own(payment: Payment, entry: JournalEntry) -> ShownTransfer | None:
    """None: an operator sent it back after its review, so it is suspense."""
    status = TransferStatus.CREDITED
    if entry.kind is EntryKind.REVIEW:
        if payment.status is PaymentStatus.FAILED:
            return None
        if payment.status is PaymentStatus.AMOUNT_MISMATCH:
            status = TransferStatus.UNDER_REVIEW
    amount = Rub(sum(posting.amount for posting in entry.postings if posting.amount > 0))
    came_at = payment.paid_at if entry.kind is EntryKind.RECEIPT else payment.transfer_at
    return ShownTransfer(amount=amount, status=status, received_at=came_at or entry.at)


def _stray(suspense: Suspense) -> ShownTransfer:
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
