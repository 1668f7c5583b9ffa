"""The effect of a bank's report on a payment: pure functions, so that every case is one row of a test
(docs/payments.md "How it ends")."""

from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from ..machine import IllegalMove
from ..money import Rub
from .payments import (
    LATE_WINDOW,
    PAYMENT_MOVES,
    WAITING,
    FailureReason,
    Payment,
    PaymentStatus,
    PaymentTrigger,
    moved_to,
)


class Arrival(msgspec.Struct, frozen=True, kw_only=True):
    """Money that reached the bank for this payment. `id` is the bank's."""

    id: str
    amount: Rub
    at: datetime
    payer_name: str | None = None
    fee: Rub | None = None
    payer_bank: str | None = None
    sbp_operation_id: str | None = None

    def __repr__(self) -> str:
        return f"Arrival(id={self.id!r}, amount={self.amount})"


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The bank's view. `status` is the payment status that it implies; PENDING means nothing new."""

    status: PaymentStatus
    arrivals: tuple[Arrival, ...] = ()
    failure: FailureReason | None = None


class Unapplied(msgspec.Struct, frozen=True):
    """Money that does not move the payment, and the reason."""

    arrival: Arrival
    reason: str


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """Effect of a report: the trigger that moves the payment (None: no move), the money of that move, and the money
    that goes to suspense.

    Money without a move belongs to a payment whose amount the bank did not report at first: it is under review, or an
    operator entered the amount.
    """

    trigger: PaymentTrigger | None = None
    arrival: Arrival | None = None
    failure: FailureReason | None = None
    unapplied: tuple[Unapplied, ...] = ()


_T = PaymentTrigger

_TOLD: Mapping[PaymentStatus, PaymentTrigger] = {
    PaymentStatus.PROCESSING: _T.STARTED,
    # The bank reports `paid` without an amount: the amount could not be confirmed.
    PaymentStatus.PAID: _T.OTHER_AMOUNT,
    PaymentStatus.AMOUNT_MISMATCH: _T.OTHER_AMOUNT,
    PaymentStatus.FAILED: _T.REFUSED,
    PaymentStatus.CANCELLED: _T.CANCELLED,
    PaymentStatus.EXPIRED: _T.LAPSED,
}
"""Triggers for reports without money. Other statuses report nothing new."""

_CLOSING = (PaymentStatus.PAID, PaymentStatus.FAILED, PaymentStatus.CANCELLED)
"""Reaching one of these statuses starts the payer window's minute."""
_TOOK_MONEY = (PaymentStatus.PAID, PaymentStatus.SETTLED, PaymentStatus.REFUNDED)
"""Moves among these statuses come from settlement or refunds, and do not reopen the window."""


def decide(payment: Payment, report: Report, now: datetime) -> Decision:
    """Decide the effect of a report, which may come late, twice, out of order, or after our own poll.

    The first money counts. All other money goes to suspense, identified by the payment and the bank's transfer id.
    """
    arrivals = sorted(report.arrivals, key=lambda arrival: (arrival.at, arrival.id))
    # The payment already has its money: everything else is a second transfer.
    if payment.transfer_id is not None:
        return Decision(unapplied=_unapplied(arrivals, payment.transfer_id, "second_transfer"))
    # An operator entered the amount before the bank reported the transfer.
    if arrivals and payment.actual_amount is not None and payment.status is not PaymentStatus.AMOUNT_MISMATCH:
        return _told_before(payment, arrivals)
    if arrivals:
        first, rest = arrivals[0], arrivals[1:]
        # Under review, and no transfer known yet: the first one is its money, without a move.
        if payment.status is PaymentStatus.AMOUNT_MISMATCH:
            return Decision(arrival=first, unapplied=_unapplied(rest, None, "second_transfer"))
        barrier = _barrier(payment, first)
        if barrier is not None:
            # Nothing may have noticed the expiry before: it happens now, since the bank reports only `paid` from here
            # on.
            return Decision(
                trigger=_T.LAPSED if _has_lapsed(payment, now) else None, unapplied=_unapplied(arrivals, None, barrier)
            )
        trigger = _T.PAID if first.amount == payment.amount else _T.OTHER_AMOUNT
        return Decision(trigger=trigger, arrival=first, unapplied=_unapplied(rest, None, "second_transfer"))
    return _without_money(payment, report, now)


def _told_before(payment: Payment, arrivals: Sequence[Arrival]) -> Decision:
    """Match a transfer with an amount that an operator entered earlier because the bank could not report it. A transfer
    of the same amount is that money, not a second payment."""
    known = next((arrival for arrival in arrivals if arrival.amount == payment.actual_amount), None)
    unapplied = [arrival for arrival in arrivals if arrival is not known]
    return Decision(arrival=known, unapplied=_unapplied(unapplied, None, f"after_{payment.status.value}"))


def _unapplied(arrivals: Sequence[Arrival], known: str | None, reason: str) -> tuple[Unapplied, ...]:
    return tuple(Unapplied(arrival, reason) for arrival in arrivals if arrival.id != known)


def _barrier(payment: Payment, arrival: Arrival) -> str | None:
    """Return why this money may not move the payment; None if it may."""
    if payment.status in WAITING or payment.status is PaymentStatus.EXPIRED:
        # A payment that lives longer than the late window accepts money during its whole life.
        return None if arrival.at <= max(payment.created_at + LATE_WINDOW, payment.expires_at) else "too_late"
    return f"after_{payment.status.value}"


def _has_lapsed(payment: Payment, now: datetime) -> bool:
    return payment.status in WAITING and now >= payment.expires_at


def _without_money(payment: Payment, report: Report, now: datetime) -> Decision:
    told = _TOLD.get(report.status)
    if told is not None and not PAYMENT_MOVES.allows(payment.status, told):
        told = None
    if told in (None, _T.STARTED) and _has_lapsed(payment, now):
        told = _T.LAPSED
    if told is _T.OTHER_AMOUNT and payment.status is PaymentStatus.EXPIRED and now > payment.created_at + LATE_WINDOW:
        told = None
    failure = report.failure or FailureReason.UNKNOWN
    return Decision(trigger=told, failure=failure if told is _T.REFUSED else None)


def moved(payment: Payment, decision: Decision, now: datetime, *, encrypted_name: bytes | None) -> Payment:
    """Return the payment after the decision's move. Raises: IllegalMove, also for a decision without a move."""
    if decision.trigger is None:
        raise IllegalMove(f"{payment.status} was to stay")
    after = moved_to(noted(payment, decision, encrypted_name=encrypted_name), decision.trigger)
    changes: dict[str, object] = {}
    if after.status is PaymentStatus.PAID and payment.paid_at is None:
        changes["paid_at"] = now if decision.arrival is None else min(decision.arrival.at, now)
    if decision.failure is not None:
        changes["failure_reason"] = decision.failure
    if after.status in _CLOSING and payment.status not in _TOOK_MONEY:
        changes["closed_at"] = now
    return msgspec.structs.replace(after, **changes) if changes else after


def noted(payment: Payment, decision: Decision, *, encrypted_name: bytes | None) -> Payment:
    """Return the payment with the money of the decision, without a move."""
    if decision.arrival is None:
        return payment
    return msgspec.structs.replace(
        payment,
        actual_amount=decision.arrival.amount,
        transfer_id=decision.arrival.id,
        transfer_at=decision.arrival.at,
        provider_fee=decision.arrival.fee,
        payer_bank=decision.arrival.payer_bank,
        sbp_operation_id=decision.arrival.sbp_operation_id,
        payer_name=encrypted_name,
    )
