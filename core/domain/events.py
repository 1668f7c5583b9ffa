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
    """The sending of an event; its id is the event's."""

    id: str
    account_id: str
    mode: Mode
    status: DeliveryStatus
    created_at: datetime
    attempts: int = 0
    last_attempt_at: datetime | None = None
    last_status: int | None = None
    last_answer: str | None = None
    last_note: str | None = None
    delivered_at: datetime | None = None
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
