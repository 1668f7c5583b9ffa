"""Refunds: their states, and what is left of a payment for them (docs/refunds.md "How it ends"). Applications, and the
rules of refusing one, are in orders.py."""

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
"""How long after its approval a refund waits for money before it is rejected (docs/refunds.md "The money")."""


class RefundStatus(StrEnum):
    """See docs/refunds.md "How it ends"."""

    PENDING = "pending"
    """Accepted; no money was touched."""
    PROCESSING = "processing"
    """At the bank."""
    COMPLETED = "completed"
    REVERSED = "reversed"
    REJECTED = "rejected"
    CANCELLED = "cancelled"
    FAILED = "failed"


class PendingReason(StrEnum):
    """What a pending refund waits for."""

    AWAITING_APPROVAL = "awaiting_approval"
    INSUFFICIENT_BALANCE = "insufficient_balance"


class RefundTrigger(StrEnum):
    """What moves a refund."""

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
"""The moves (docs/states.md "Refund"). The ends but for `cancelled` send an event; `completed` and `reversed` may move
the payment."""

TOLD: Mapping[RefundStatus, RefundEvent] = {
    _S.COMPLETED: "refund.completed",
    _S.REJECTED: "refund.rejected",
    _S.FAILED: "refund.failed",
    _S.REVERSED: "refund.reversed",
}
"""The events of a refund's moves. A merchant who cancels knows it: `cancelled` has none."""

_OPEN = frozenset((_S.PENDING, _S.PROCESSING))
_COUNTED = _OPEN | {_S.COMPLETED}
"""What takes from the remainder: money that is gone, on its way, or promised."""
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
    """While pending; null when nothing is in its way."""
    external_id: str | None = None
    reason: str | None = None
    """The merchant's words."""
    failure_reason: str | None = None
    """Why it was rejected or failed."""
    metadata: dict[str, Any] | None = None
    key_id: str | None = None
    """The record of the Idempotency-Key that made it; null where none did (an operator's)."""
    approved_at: datetime | None = None
    executing_since: datetime | None = None
    """When it became `processing`: its money is taken, the bank may have been asked."""
    completed_at: datetime | None = None
    taken_rub: Rub | None = None
    """What it took, or had taken, from the merchant's pending RUB: of a payment not settled yet."""
    taken_usdt: Usdt | None = None
    """What it took, or had taken, from the merchant's available USDT: of a settled one."""
    rate_market: str | None = None
    """The rate that it took them at: that of the payment's settlement."""
    contradicted_at: datetime | None = None
    """When the bank said that it had sent the money after all, of a refund that it had failed: `failed` is final, the
    merchant has the money again, and the payer has it, too. Or that it had failed, of one that is completed: nobody but
    the bank has the money. An operator settles that with bank and merchant."""
    contradiction_seen: bool = False
    """An operator has settled it."""
    sequence: int = 0
    """Rises by one with every event about it; the webhook header X-Webhook-Sequence."""
    version: int = 0


def moved_to(refund: Refund, trigger: RefundTrigger, **changes: Any) -> Refund:
    """The refund after its trigger, with what else the move changes. Nobody else writes a refund's status; its sequence
    rises where the move has an event.

    Raises: IllegalMove for a trigger that does not move a refund of this status.
    """
    status = REFUND_MOVES.move(refund.status, trigger)
    sequence = refund.sequence + (status in TOLD)
    return msgspec.structs.replace(refund, status=status, sequence=sequence, pending_reason=None, **changes)


def is_open(refund: Refund) -> bool:
    """It has no outcome yet. A payment with such a refund is `refund_pending` (docs/payments.md "What you get")."""
    return refund.status in _OPEN


def waits_for_money(refund: Refund) -> bool:
    """It is approved, and the merchant's money did not cover it."""
    return refund.status is _S.PENDING and refund.pending_reason is PendingReason.INSUFFICIENT_BALANCE


def gives_up_at(refund: Refund) -> datetime:
    """From when on a refund that still waits for money is rejected. It is tried again before whenever there may be
    some, and a new approval gives it no more time."""
    return (refund.approved_at or refund.created_at) + WAITS_FOR_MONEY


def is_given_up(refund: Refund, now: datetime) -> bool:
    """Whether one that waits for money has waited long enough."""
    return waits_for_money(refund) and now >= gives_up_at(refund)


def holds_money(refund: Refund) -> bool:
    """What it took is not given back."""
    return refund.status in _TAKEN


def remainder(payment: Payment, refunds: Iterable[Refund]) -> Rub:
    """What may still be refunded: what came, less `refunds` (all of this payment) that are pending, processing or
    completed (docs/refunds.md "Rules"). The fee is no part of it: a refund does not return it."""
    return came_of(payment) - _sum(refund for refund in refunds if refund.status in _COUNTED)


def refunded_by(payment: Payment, refunds: Iterable[Refund]) -> PaymentTrigger | None:
    """What moves a payment of which these are all refunds: it is `refunded` while the completed ones reach what came.
    None: it stays."""
    came = came_of(payment)
    is_full = came > Rub(0) and _sum(refund for refund in refunds if refund.status is _S.COMPLETED) >= came
    if is_full is (payment.status is PaymentStatus.REFUNDED):
        return None
    if is_full:
        return PaymentTrigger.REFUNDED
    return PaymentTrigger.RESTORED if payment.settled_at is None else PaymentTrigger.RESTORED_SETTLED


def came_of(payment: Payment) -> Rub:
    """What the payer paid, whatever was asked."""
    return payment.actual_amount or Rub(0)


def _sum(refunds: Iterable[Refund]) -> Rub:
    return sum((refund.amount for refund in refunds), Rub(0))
