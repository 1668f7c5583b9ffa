"""The timeline of one payment as its merchant's people read it (docs/dashboard.md "Payments").

It is made of the payment's own moments and of the records about it. Events are kept for some weeks only, so they add
what nothing else records: steps without a moment of their own, and webhooks.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from enum import StrEnum

import msgspec

from ..money import Rub, Usdt
from ..payments.payments import Payment, PaymentStatus
from ..payments.transfers import ShownTransfer, TransferStatus
from ..refunds.refunds import Refund, RefundStatus
from ..webhooks.events import DeliveryStatus, EventType
from .payment_notes import SentLink


class StepKind(StrEnum):
    """What happened. The order breaks ties of one moment."""

    CREATED = "created"
    LINK_SENT = "link_sent"
    STARTED = "started"
    """The bank started on it."""
    OTHER_AMOUNT = "other_amount"
    UNAPPLIED = "unapplied"
    """Money came that the payment cannot use."""
    MONEY_RETURNED = "money_returned"
    """That money went back."""
    PAID = "paid"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    SETTLED = "settled"
    REFUND_APPLIED = "refund_applied"
    REFUND_APPROVED = "refund_approved"
    REFUND_COMPLETED = "refund_completed"
    REFUND_REJECTED = "refund_rejected"
    REFUND_FAILED = "refund_failed"
    REFUND_REVERSED = "refund_reversed"
    WEBHOOK_DELIVERED = "webhook_delivered"
    WEBHOOK_FAILED = "webhook_failed"
    """Your receiver did not accept it, and no further attempt is planned."""


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the timeline."""

    at: datetime
    kind: StepKind
    amount: Rub | None = None
    credit: Usdt | None = None
    reason: str | None = None
    """Code of a failure."""
    refund_id: str | None = None
    event_id: str | None = None
    status: str | None = None
    """Status that a webhook reported."""
    person: str | None = None
    """Id of the person who did it."""
    to: str | None = None
    """Masked address."""


class SeenEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event about the payment or one of its refunds, with the state of its webhook."""

    id: str
    type: str
    object_id: str
    at: datetime
    status: str | None
    """The status in its body; None: unreadable."""
    delivery: DeliveryStatus
    delivered_at: datetime | None
    last_at: datetime | None
    """Time of the last attempt."""


_CLOSED = {
    PaymentStatus.FAILED: StepKind.FAILED,
    PaymentStatus.CANCELLED: StepKind.CANCELLED,
    PaymentStatus.EXPIRED: StepKind.EXPIRED,
}
_STATUSES = {
    PaymentStatus.PROCESSING.value: StepKind.STARTED,
    PaymentStatus.FAILED.value: StepKind.FAILED,
    PaymentStatus.CANCELLED.value: StepKind.CANCELLED,
    PaymentStatus.EXPIRED.value: StepKind.EXPIRED,
}
"""Statuses whose step comes from the event."""
_REFUND_ENDS = {
    EventType.REFUND_REJECTED.value: StepKind.REFUND_REJECTED,
    EventType.REFUND_FAILED.value: StepKind.REFUND_FAILED,
    EventType.REFUND_REVERSED.value: StepKind.REFUND_REVERSED,
}
_ORDER = {kind: number for number, kind in enumerate(StepKind)}


def timeline(
    payment: Payment,
    transfers: Iterable[ShownTransfer],
    refunds: Sequence[Refund],
    events: Sequence[SeenEvent],
    sent: Iterable[SentLink],
) -> list[Step]:
    """Return the steps of a payment, oldest first."""
    steps = [
        *_of_payment(payment, events),
        *(step for each in transfers for step in _of_transfer(each)),
        *(step for each in refunds for step in _of_refund(each)),
        *_of_events(refunds, events),
        *(Step(at=each.at, kind=StepKind.LINK_SENT, person=each.author, to=each.to) for each in sent),
    ]
    return sorted(steps, key=lambda step: (step.at, _ORDER[step.kind]))


def _of_payment(payment: Payment, events: Sequence[SeenEvent]) -> list[Step]:
    steps = [Step(at=payment.created_at, kind=StepKind.CREATED, amount=payment.amount)]
    reported = {each.status for each in events if each.object_id == payment.id}
    closed = _CLOSED.get(payment.status)
    if closed is not None and payment.status.value not in reported:
        at = payment.expires_at if closed is StepKind.EXPIRED else payment.closed_at
        if at is not None:
            reason = None if payment.failure_reason is None else payment.failure_reason.value
            steps.append(Step(at=at, kind=closed, reason=reason))
    if payment.paid_at is not None:
        steps.append(Step(at=payment.paid_at, kind=StepKind.PAID, amount=payment.actual_amount or payment.amount))
    if payment.settled_at is not None:
        steps.append(Step(at=payment.settled_at, kind=StepKind.SETTLED, credit=payment.amount_usdt))
    for each in events:
        kind = _STATUSES.get(each.status or "") if each.object_id == payment.id else None
        if kind is not None:
            has_reason = kind in (StepKind.FAILED, StepKind.CANCELLED) and payment.failure_reason is not None
            reason = payment.failure_reason.value if has_reason and payment.failure_reason is not None else None
            steps.append(Step(at=each.at, kind=kind, reason=reason))
    return steps


def _of_transfer(transfer: ShownTransfer) -> list[Step]:
    if transfer.status is TransferStatus.CREDITED:
        return []  # the payment's own `paid`
    is_review = transfer.status is TransferStatus.UNDER_REVIEW
    kind = StepKind.OTHER_AMOUNT if is_review else StepKind.UNAPPLIED
    steps = [Step(at=transfer.received_at, kind=kind, amount=transfer.amount)]
    if transfer.returned_at is not None:
        steps.append(Step(at=transfer.returned_at, kind=StepKind.MONEY_RETURNED, amount=transfer.amount))
    return steps


def _of_refund(refund: Refund) -> list[Step]:
    amount, refund_id = refund.amount, refund.id
    kind = StepKind.REFUND_APPLIED
    steps = [Step(at=refund.created_at, kind=kind, amount=amount, refund_id=refund_id, person=refund.applicant)]
    if refund.approved_at is not None:
        steps.append(Step(at=refund.approved_at, kind=StepKind.REFUND_APPROVED, amount=amount, refund_id=refund_id))
    if refund.completed_at is not None and refund.status in (RefundStatus.COMPLETED, RefundStatus.REVERSED):
        steps.append(Step(at=refund.completed_at, kind=StepKind.REFUND_COMPLETED, amount=amount, refund_id=refund_id))
    return steps


def _of_events(refunds: Sequence[Refund], events: Sequence[SeenEvent]) -> list[Step]:
    amounts = {each.id: each.amount for each in refunds}
    steps = []
    for each in events:
        ends = _REFUND_ENDS.get(each.type)
        if ends is not None:
            amount = amounts.get(each.object_id)
            steps.append(Step(at=each.at, kind=ends, amount=amount, refund_id=each.object_id))
        if each.delivered_at is not None:
            kind, at = StepKind.WEBHOOK_DELIVERED, each.delivered_at
        elif each.delivery is DeliveryStatus.FAILED:
            kind, at = StepKind.WEBHOOK_FAILED, each.last_at or each.at
        else:
            continue
        steps.append(Step(at=at, kind=kind, event_id=each.id, status=each.status or each.type))
    return steps
