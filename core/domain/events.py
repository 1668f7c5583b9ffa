"""Events and what they carry (SPEC "Events"). An event is written in the unit that made it true; its delivery is a
row of its own. Omitted is omitted (UNSET), null is null (None)."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from .accounts import Mode
from .proofs import RejectionReason


class EventType(StrEnum):
    PAYMENT_STATUS_CHANGED = "payment.status_changed"
    DELIVERY_PROOF_REMINDER = "payment.delivery_proof_reminder"


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """Something happened. `body` is the very bytes that are signed and sent, the same on every attempt."""

    id: str
    account_id: str
    mode: Mode
    type: EventType
    object_id: str
    sequence: int
    """Rises per object: the order in which things happened, whatever order they arrive in."""
    body: bytes
    created_at: datetime
    version: int = 0


class DeliveryStatus(StrEnum):
    HELD = "held"
    """Address or secret not set yet."""
    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """The sending of an event; its id is the event's. How it goes on is decided in delivery.py, what was answered is in
    its attempts."""

    id: str
    account_id: str
    mode: Mode
    type: EventType
    status: DeliveryStatus
    created_at: datetime
    """The event's."""
    due: datetime | None = None
    """When it is to be tried next; null unless pending. A closed breaker is presumed."""
    give_up_at: datetime | None = None
    """A delivery still pending then is failed."""
    attempts: int = 0
    """How many were made in all; probes do not count."""
    probes: int = 0
    ladder_start: int = 0
    """How many attempts were made before the present ladder: a resend begins a new one, and goes on numbering."""
    first_attempt_at: datetime | None = None
    """Of the present ladder; the slow one counts from it."""
    delivered_at: datetime | None = None
    """When it was last answered well. A resend leaves it."""
    version: int = 0


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One letter of a delivery and what became of it, written once."""

    id: str
    """The event's id, a colon, and a number that puts its letters in order: they are found by a range of ids."""
    event_id: str
    number: int
    """What X-Webhook-Attempt said. A probe says the number of the attempt that it goes before."""
    probe: bool
    """Sent through an open breaker to see whether the receiver is back; counts as no attempt."""
    sent_at: datetime
    answer: str
    """The notifier's word for how it ended."""
    status: int | None
    note: str
    took_ms: int
    version: int = 0


class PaymentPayload(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """SPEC "Payment payload"."""

    event: Literal["payment.status_changed"] = "payment.status_changed"
    payment_id: str
    external_id: str | None
    status: str
    previous_status: str | None
    amount_rub: str
    actual_amount_rub: str | None
    amount_usdt: str | None
    payment_method: str
    refund_pending: bool
    timestamp: str
    metadata: dict[str, Any] | None
    payer_name: str | UnsetType = UNSET
    subscription_id: str | UnsetType = UNSET
    period_ref: str | UnsetType = UNSET
    failure_reason: str | UnsetType = UNSET
    sandbox: bool | UnsetType = UNSET
    shop_id: str | None | UnsetType = UNSET
    shop_name: str | None | UnsetType = UNSET


class ProofReminderPayload(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """SPEC "Delivery proof reminder payload"."""

    event: Literal["payment.delivery_proof_reminder"] = "payment.delivery_proof_reminder"
    payment_id: str
    external_id: str | None
    paid_at: str
    reminder: Annotated[int, msgspec.Meta(ge=1, le=3)]
    status: Literal["waiting", "rejected"]
    timestamp: str
    reason: RejectionReason | UnsetType = UNSET
    """With `rejected` only."""
    shop_id: str | None | UnsetType = UNSET
    shop_name: str | None | UnsetType = UNSET
