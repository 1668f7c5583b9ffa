"""Refunds: their states, and the remainder of a payment (docs/refunds.md "How it ends"). Applications and the rules
that refuse them are in orders.py."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

import msgspec

from ..accounts.accounts import Mode
from ..machine import Move, Moves
from ..money import Rub, Usdt
from ..payloads import RefundEvent
from ..payments.payments import Payment, PaymentStatus, PaymentTrigger

WAITS_FOR_MONEY = timedelta(days=14)
"""How long an approved refund waits for money before it is rejected (docs/refunds.md "The money")."""


class RefundStatus(StrEnum):
    """See docs/refunds.md "How it ends"."""

    PENDING = "pending"
    """Accepted; no money has moved."""
    PROCESSING = "processing"
    """At the bank."""
    COMPLETED = "completed"
    REVERSED = "reversed"
    REJECTED = "rejected"
    CANCELLED = "cancelled"
    FAILED = "failed"


class PendingReason(StrEnum):
    """Reason why a refund is pending."""

    AWAITING_APPROVAL = "awaiting_approval"
    INSUFFICIENT_BALANCE = "insufficient_balance"


class RefundTrigger(StrEnum):
    """Cause of a refund's move."""

    SENT = "sent to the bank"
    REJECTED = "an operator or a rule refused"
    CANCELLED = "the merchant cancelled"
    PAID = "the payer has the money"
    REFUSED = "the bank refused"
    CAME_BACK = "the money came back"


_S = RefundStatus
_T = RefundTrigger

REFUND_MOVES: Moves[RefundStatus, RefundTrigger] = Moves(
    (
        Move(_S.PENDING, _S.PROCESSING, _T.SENT),
        Move(_S.PENDING, _S.REJECTED, _T.REJECTED),
        Move(_S.PENDING, _S.CANCELLED, _T.CANCELLED),
        Move(_S.PROCESSING, _S.COMPLETED, _T.PAID),
        Move(_S.PROCESSING, _S.FAILED, _T.REFUSED),
        Move(_S.COMPLETED, _S.REVERSED, _T.CAME_BACK),
    )
)
"""The moves (docs/states.md "Refund"). All final statuses except `cancelled` send an event; `completed` and `reversed`
may move the payment."""

TOLD: Mapping[RefundStatus, RefundEvent] = {
    _S.COMPLETED: "refund.completed",
    _S.REJECTED: "refund.rejected",
    _S.FAILED: "refund.failed",
    _S.REVERSED: "refund.reversed",
}
"""The events of a refund's moves. `cancelled` has none, since the merchant itself cancels."""

_OPEN = frozenset((_S.PENDING, _S.PROCESSING))
_COUNTED = _OPEN | {_S.COMPLETED}
"""Statuses that reduce the remainder: the money is gone, on its way, or promised."""
_TAKEN = frozenset((_S.PROCESSING, _S.COMPLETED))


class Refund(msgspec.Struct, frozen=True, kw_only=True):
    """One refund application of a payment, in the payment's account, mode and shop."""

    id: str
    account_id: str
    mode: Mode
    payment_id: str
    shop_id: str
    status: RefundStatus
    amount: Rub
    created_at: datetime
    pending_reason: PendingReason | None = None
    """Set while pending; null if nothing blocks the refund."""
    external_id: str | None = None
    reason: str | None = None
    """Text of the merchant."""
    failure_reason: str | None = None
    """Why it was rejected or failed."""
    metadata: dict[str, Any] | None = None
    key_id: str | None = None
    """Record of the Idempotency-Key that created it; null for a refund by an operator."""
    applicant: str | None = None
    """The person who applied at the dashboard, and so may not approve it; null: a program or an operator."""
    key_maker: str | None = None
    """The person who made the API key by which a program applied, and who may not approve it either."""
    approved_at: datetime | None = None
    executing_since: datetime | None = None
    """When it became `processing`: its money is taken, and the bank may have the request."""
    completed_at: datetime | None = None
    taken_rub: Rub | None = None
    """Amount taken, even if returned later, from the merchant's pending RUB: for a payment that is not settled yet."""
    taken_usdt: Usdt | None = None
    """Amount taken, even if returned later, from the merchant's available USDT: for a settled payment."""
    rate_market: str | None = None
    """Rate of that amount: the rate of the payment's settlement."""
    contradicted_at: datetime | None = None
    """When the bank contradicted a final status. For a `failed` refund it says that the money was sent after all: the
    merchant got the money back, and the payer has it, too. For a `completed` one it says that the refund failed: only
    the bank has the money. An operator settles this with the bank and the merchant."""
    contradiction_seen: bool = False
    """Whether an operator has settled it."""
    private: bytes | None = None
    """Encrypted: the receipt that the merchant sent, if the payment has receipts."""
    sequence: int = 0
    """Rises by one with every event about it; the webhook header X-Webhook-Sequence."""
    version: int = 0


def moved_to(refund: Refund, trigger: RefundTrigger, **changes: Any) -> Refund:
    """Return the refund after the trigger, with the other changes of the move. Nothing else writes a refund's status;
    the sequence rises if the move has an event.

    Raises: IllegalMove for a trigger that does not move a refund of this status.
    """
    status = REFUND_MOVES.move(refund.status, trigger)
    sequence = refund.sequence + (status in TOLD)
    return msgspec.structs.replace(refund, status=status, sequence=sequence, pending_reason=None, **changes)


def is_open(refund: Refund) -> bool:
    """Return whether the refund has no outcome yet. Its payment is then `refund_pending`
    (docs/payments.md "What you get")."""
    return refund.status in _OPEN


def waits_for_money(refund: Refund) -> bool:
    """Return whether the refund is approved but the merchant's balance did not cover it."""
    return refund.status is _S.PENDING and refund.pending_reason is PendingReason.INSUFFICIENT_BALANCE


def gives_up_at(refund: Refund) -> datetime:
    """Return when a refund that still waits for money is rejected. Before that it is retried whenever money may have
    come; a new approval does not extend the time."""
    return (refund.approved_at or refund.created_at) + WAITS_FOR_MONEY


def is_given_up(refund: Refund, now: datetime) -> bool:
    """Return whether the refund has waited for money long enough."""
    return waits_for_money(refund) and now >= gives_up_at(refund)


def holds_money(refund: Refund) -> bool:
    """Return whether the money it took has not been returned."""
    return refund.status in _TAKEN


def remainder(payment: Payment, refunds: Iterable[Refund]) -> Rub:
    """Return the amount that can still be refunded: the received amount, less `refunds` (all of this payment) that are
    pending, processing or completed (docs/refunds.md "Rules"). A refund does not return the fee."""
    return came_of(payment) - _sum(refund for refund in refunds if refund.status in _COUNTED)


def refunded_by(payment: Payment, refunds: Iterable[Refund]) -> PaymentTrigger | None:
    """Return the trigger that moves a payment, given all its refunds: it is `refunded` while the completed ones reach
    the received amount. None: no move."""
    came = came_of(payment)
    is_full = came > Rub(0) and _sum(refund for refund in refunds if refund.status is _S.COMPLETED) >= came
    if is_full is (payment.status is PaymentStatus.REFUNDED):
        return None
    if is_full:
        return PaymentTrigger.REFUNDED
    return PaymentTrigger.RESTORED if payment.settled_at is None else PaymentTrigger.RESTORED_SETTLED


def came_of(payment: Payment) -> Rub:
    """Return the amount that the payer paid, whatever amount was requested."""
    return payment.actual_amount or Rub(0)


def _sum(refunds: Iterable[Refund]) -> Rub:
    return sum((refund.amount for refund in refunds), Rub(0))
