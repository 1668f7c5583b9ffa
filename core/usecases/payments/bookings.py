"""What the ledger says of a payment's money before its settlement: received, under review, in suspense."""

from ....ports.bundle import Ports
from ....ports.storage import Unit
from ...domain.ledger import EntryKind, Purse
from ...domain.payments.payments import Payment, PaymentMove, PaymentStatus
from ...domain.payments.suspense import Suspense
from ...domain.payments.tallies import took_money
from ..ledger.ledger import book


async def book_move(ports: Ports, unit: Unit, move: PaymentMove) -> None:
    """Book the money that a payment's move brought. Call it in the unit that saves the move; settlement and refunds
    book what they move by themselves.

    Money that came with the move is at the bank. Money of a review that ends was booked when it came; where the bank
    never told of it and only the operator did, it comes then. So a receipt is always what was asked for.
    """
    before, after = move.before, move.after
    if after.transfer_id != before.transfer_id and after.status is PaymentStatus.AMOUNT_MISMATCH:
        _book(ports, unit, after, EntryKind.REVIEW, Purse.BANK, Purse.REVIEW)
    elif took_money(before.status, after.status):
        if before.status is not PaymentStatus.AMOUNT_MISMATCH:
            _book(ports, unit, after, EntryKind.RECEIPT, Purse.BANK, Purse.PENDING)
            return
        if before.transfer_id is None:
            _book(ports, unit, after, EntryKind.REVIEW, Purse.BANK, Purse.REVIEW)
        _book(ports, unit, after, EntryKind.REVIEW_ACCEPTED, Purse.REVIEW, Purse.PENDING)


def book_noted(ports: Ports, unit: Unit, payment: Payment) -> None:
    """Book money that came for a payment under review; to be called in the unit that notes it."""
    _book(ports, unit, payment, EntryKind.REVIEW, Purse.BANK, Purse.REVIEW)


def book_suspense(ports: Ports, unit: Unit, suspense: Suspense, source: Purse = Purse.BANK) -> None:
    """Book money that may move nothing; `source` is REVIEW where it was under review before."""
    amount = suspense.amount.kopecks
    book(ports, unit, EntryKind.SUSPENSE, suspense, {source: -amount, Purse.SUSPENSE: amount})


def _book(ports: Ports, unit: Unit, payment: Payment, kind: EntryKind, source: Purse, target: Purse) -> None:
    if payment.actual_amount is None:
        # The bank could not say how much came: it is booked when somebody can.
        return
    amount = payment.actual_amount.kopecks
    if not amount:
        # A symbolic binding: confirmed, and nothing debited.
        return
    book(ports, unit, kind, payment, {source: -amount, target: amount})
