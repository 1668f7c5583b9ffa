"""Events and their deliveries (docs/webhooks.md "Events"). An event is written in the unit that makes it true; its
delivery is a separate row. Their payloads are in payloads.py.

`gc=False`: they contain no cycles, and many are alive at a time, which would slow down every collection.
"""

from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from ..accounts.accounts import Mode

EVENT_KEPT = timedelta(days=30)
"""Minimum retention of an event, from when it happened."""


class EventType(StrEnum):
    """The twelve events (docs/webhooks.md "Events")."""

    PAYMENT_STATUS_CHANGED = "payment.status_changed"
    DELIVERY_PROOF_REMINDER = "payment.delivery_proof_reminder"
    WITHDRAWAL_STATUS_CHANGED = "withdrawal.status_changed"
    EXCHANGE_STATUS_CHANGED = "exchange.status_changed"
    SUBSCRIPTION_STATUS_CHANGED = "subscription.status_changed"
    CHARGE_EXHAUSTED = "subscription.charge_exhausted"
    REFUND_COMPLETED = "refund.completed"
    REFUND_REJECTED = "refund.rejected"
    REFUND_FAILED = "refund.failed"
    REFUND_REVERSED = "refund.reversed"
    KYC_STATUS_CHANGED = "kyc.status_changed"
    GATEWAY_STATUS_CHANGED = "gateway.status_changed"


class Event(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A stored event."""

    id: str
    account_id: str
    mode: Mode
    type: str
    """An EventType, or a type from another version: unknown types are sent and shown unchanged."""
    object_id: str
    sequence: int
    """Rises per object: the order of the events, however they arrive."""
    body: bytes
    """The payload, encrypted by the vault because it may contain personal data (usecases/common/encrypted.py:
    open_event_body)."""
    created_at: datetime
    retry_of: str | None = None
    """Of a payment that was tried again: the one before it, for the header X-Webhook-Retry-Of."""
    receipt_id: str | None = None
    """The payment's receipt, for the header X-Webhook-Receipt-Status; it may not exist yet."""
    version: int = 0


class OpenEvent(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An event in the form that a webhook sends."""

    id: str
    type: str
    sequence: int
    body: bytes
    """The decrypted payload: the bytes that are signed and sent, the same on every attempt."""
    receipt_status: str | None = None
    retry_of: str | None = None


class DeliveryStatus(StrEnum):
    SKIPPED = "skipped"
    """The receiver does not want events of its type."""
    HELD = "held"
    """Address or secret are not set yet, or the endpoint is switched off."""
    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"


class FirstAnswer(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The good answer to the first webhook of a delivery, with the fields of an Attempt."""

    answer: str
    status: int | None
    note: str
    took_ms: int


class Delivery(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The delivery of an event to the account's own endpoint; its id is the event's. delivery.py decides how it
    continues. Its attempts contain the answers, except for a good answer to its first webhook, which is its own."""

    id: str
    account_id: str
    mode: Mode
    type: str
    """Type of the event."""
    status: DeliveryStatus
    created_at: datetime
    """Creation time of the event."""
    due: datetime | None = None
    """Time of the next attempt, if the breaker is closed; null unless pending."""
    give_up_at: datetime | None = None
    """A delivery that is still pending then becomes failed."""
    attempts: int = 0
    """Total number of attempts; probes do not count."""
    probes: int = 0
    backoff_start: int = 0
    """Number of attempts before the present schedule: a resend starts a new one, and the numbering continues."""
    first_attempt_at: datetime | None = None
    """First attempt of the present schedule; the slow one counts from it."""
    delivered_at: datetime | None = None
    """When it last succeeded. A resend does not change it."""
    first_sent_at: datetime | None = None
    """When its first webhook was sent, if that one succeeded. Most deliveries need no Attempt so."""
    first_answer: FirstAnswer | None = None
    version: int = 0

    @property
    def event_id(self) -> str:
        """Id of the delivered event."""
        return self.id.partition("/")[0]


class EndpointDelivery(Delivery, frozen=True, kw_only=True, gc=False):
    """The delivery of an event to a further endpoint; its id is `delivery_id`."""

    endpoint_id: str


def delivery_id(event_id: str, endpoint_id: str) -> str:
    """Return the id of the delivery of an event to a further endpoint. It begins with the event's id; the ids of all
    webhooks (`attempt_id`) of one event, to any endpoint, lie between the event's id with `/` and with `;`."""
    return f"{event_id}/{endpoint_id}"


class Attempt(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One webhook of a delivery and its result, written once."""

    id: str
    """The delivery's id, a colon, and a number that orders its webhooks: a range of ids finds them."""
    event_id: str
    number: int
    """Value of X-Webhook-Attempt. A probe has the number of the attempt that follows it."""
    probe: bool
    """Sent through an open breaker to test whether the receiver is back; does not count as an attempt."""
    sent_at: datetime
    answer: str
    """Outcome, as in ports/notifier.py: Answer."""
    status: int | None
    note: str
    took_ms: int
    version: int = 0

    @property
    def endpoint_id(self) -> str | None:
        """Id of the further endpoint that received it; None: the account's own."""
        return self.id.partition("/")[2].partition(":")[0] or None
