"""Ledger entries of a payment's money before its settlement: received, under review, in suspense."""

from ....ports.bundle import Ports
from ....ports.storage import Unit
from ...domain.ledger import BalanceType, EntryKind
from ...domain.payments.payments import Payment, PaymentMove, PaymentStatus
from ...domain.payments.suspense import Suspense
from ...domain.payments.tallies import took_money
from ..ledger.ledger import book


async def book_move(ports: Ports, unit: Unit, move: PaymentMove) -> None:
    """Book the money that a payment's move brought. Call it in the unit that saves the move; settlement and refunds
    book their own moves.

    Money that came with the move is at the bank. Money under review was booked when it came; if the bank never reported
    it and only the operator did, it is booked when the review ends. A receipt therefore always has the requested
    amount.
    """
    before, after = move.before, move.after
    if after.transfer_id != before.transfer_id and after.status is PaymentStatus.AMOUNT_MISMATCH:
        _book(ports, unit, after, EntryKind.REVIEW, BalanceType.BANK, BalanceType.REVIEW)
    elif took_money(before.status, after.status):
        if before.status is not PaymentStatus.AMOUNT_MISMATCH:
            _book(ports, unit, after, EntryKind.RECEIPT, BalanceType.BANK, BalanceType.PENDING)
            return
        if before.transfer_id is None:
            _book(ports, unit, after, EntryKind.REVIEW, BalanceType.BANK, BalanceType.REVIEW)
        _book(ports, unit, after, EntryKind.REVIEW_ACCEPTED, BalanceType.REVIEW, BalanceType.PENDING)


def book_noted(ports: Ports, unit: Unit, payment: Payment) -> None:
    """Book money that came for a payment under review. Call it in the unit that saves it on the payment."""
    _book(ports, unit, payment, EntryKind.REVIEW, BalanceType.BANK, BalanceType.REVIEW)


def book_suspense(ports: Ports, unit: Unit, suspense: Suspense, source: BalanceType = BalanceType.BANK) -> None:
    """Book money that cannot move its payment; `source` is REVIEW if the money was under review before."""
    amount = suspense.amount.kopecks
    book(ports, unit, EntryKind.SUSPENSE, suspense, {source: -amount, BalanceType.SUSPENSE: amount})


def _book(
    ports: Ports, unit: Unit, payment: Payment, kind: EntryKind, source: BalanceType, target: BalanceType
) -> None:
    if payment.actual_amount is None:
        # The bank could not say how much came; a later report or the operator's decision books it.
        return
    amount = payment.actual_amount.kopecks
    if not amount:
        # A symbolic binding is confirmed without a debit.
        return
    book(ports, unit, kind, payment, {source: -amount, target: amount})
