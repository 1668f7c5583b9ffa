"""What the bank reports about a payment, and what follows from it: decided purely, so that every case is one row of a
test (docs/payments.md "How it ends")."""

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
    """The bank's view. `status` is the payment status it speaks for; PENDING says nothing new."""

    status: PaymentStatus
    arrivals: tuple[Arrival, ...] = ()
    failure: FailureReason | None = None


class Stray(msgspec.Struct, frozen=True):
    """Money that may move nothing, and why."""

    arrival: Arrival
    reason: str


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What to do: what moves the payment (None: it stays), with which money, and what goes to suspense.

    Money without a move belongs to a payment whose amount the bank could not say at first: it is under review, or an
    operator said the amount.
    """

    trigger: PaymentTrigger | None = None
    arrival: Arrival | None = None
    failure: FailureReason | None = None
    strays: tuple[Stray, ...] = ()


_T = PaymentTrigger

_TOLD: Mapping[PaymentStatus, PaymentTrigger] = {
    PaymentStatus.PROCESSING: _T.STARTED,
    # The bank says paid and cannot say how much: the amount could not be confirmed.
    PaymentStatus.PAID: _T.OTHER_AMOUNT,
    PaymentStatus.AMOUNT_MISMATCH: _T.OTHER_AMOUNT,
    PaymentStatus.FAILED: _T.REFUSED,
    PaymentStatus.CANCELLED: _T.CANCELLED,
    PaymentStatus.EXPIRED: _T.LAPSED,
}
"""What a bank's word moves a payment by, where no money came with it; of all others it says nothing new."""

_CLOSING = (PaymentStatus.PAID, PaymentStatus.FAILED, PaymentStatus.CANCELLED)
"""Coming to rest here starts the payer window's minute."""
_TOOK_MONEY = (PaymentStatus.PAID, PaymentStatus.SETTLED, PaymentStatus.REFUNDED)
"""A move between these is settlement or a refund's business, and opens no window again."""


def decide(payment: Payment, report: Report, now: datetime) -> Decision:
    """What follows from a report that may come late, twice, out of order, or after we asked ourselves.

    The first money that came decides. Any other goes to suspense, identified by the payment and the bank's transfer id.
    """
    arrivals = sorted(report.arrivals, key=lambda arrival: (arrival.at, arrival.id))
    if payment.transfer_id is not None:
        return Decision(strays=_strays(arrivals, payment.transfer_id, "second_transfer"))
    if arrivals and payment.actual_amount is not None and payment.status is not PaymentStatus.AMOUNT_MISMATCH:
        return _told_before(payment, arrivals)
    if arrivals:
        first, rest = arrivals[0], arrivals[1:]
        if payment.status is PaymentStatus.AMOUNT_MISMATCH:
            return Decision(arrival=first, strays=_strays(rest, None, "second_transfer"))
        barrier = _barrier(payment, first)
        if barrier is not None:
            # Where nobody looked until then it expires now: its bank only says `paid` from here on.
            return Decision(
                trigger=_T.LAPSED if _has_lapsed(payment, now) else None, strays=_strays(arrivals, None, barrier)
            )
        trigger = _T.PAID if first.amount == payment.amount else _T.OTHER_AMOUNT
        return Decision(trigger=trigger, arrival=first, strays=_strays(rest, None, "second_transfer"))
    return _without_money(payment, report, now)


def _told_before(payment: Payment, arrivals: Sequence[Arrival]) -> Decision:
    """An operator said how much had come while the bank could not; now the bank tells of the transfer. It is known by
    its amount, and is no second one."""
    known = next((arrival for arrival in arrivals if arrival.amount == payment.actual_amount), None)
    strays = [arrival for arrival in arrivals if arrival is not known]
    return Decision(arrival=known, strays=_strays(strays, None, f"after_{payment.status.value}"))


def _strays(arrivals: Sequence[Arrival], known: str | None, reason: str) -> tuple[Stray, ...]:
    return tuple(Stray(arrival, reason) for arrival in arrivals if arrival.id != known)


def _barrier(payment: Payment, arrival: Arrival) -> str | None:
    """Why this money may not move the payment; None when it may."""
    if payment.status in WAITING or payment.status is PaymentStatus.EXPIRED:
        # One that lives longer than the late window is on time as long as it lives.
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


def moved(payment: Payment, decision: Decision, now: datetime, *, sealed_name: bytes | None) -> Payment:
    """The payment after the decision's move. Raises: IllegalMove, also for a decision to stay."""
    if decision.trigger is None:
        raise IllegalMove(f"{payment.status} was to stay")
    after = moved_to(noted(payment, decision, sealed_name=sealed_name), decision.trigger)
    changes: dict[str, object] = {}
    if after.status is PaymentStatus.PAID and payment.paid_at is None:
        changes["paid_at"] = now if decision.arrival is None else min(decision.arrival.at, now)
    if decision.failure is not None:
        changes["failure_reason"] = decision.failure
    if after.status in _CLOSING and payment.status not in _TOOK_MONEY:
        changes["closed_at"] = now
    return msgspec.structs.replace(after, **changes) if changes else after


def noted(payment: Payment, decision: Decision, *, sealed_name: bytes | None) -> Payment:
    """The payment with the money that the decision names, unmoved."""
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
        payer_name=sealed_name,
    )
