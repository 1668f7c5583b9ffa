"""Events and their deliveries (docs/webhooks.md "Events"). An event is written in the unit that made it true; its
delivery is a row of its own. What each carries is in payloads.py.

`gc=False`: they hold no cycle, and many are alive at a time, over which the collector would go again and again.
"""

from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from ..accounts.accounts import Mode

EVENT_KEPT = timedelta(days=30)
"""How long an event is kept at least, from when it happened."""


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
    """Something happened."""

    id: str
    account_id: str
    mode: Mode
    type: str
    """An EventType, or the word of another version: what this one does not know it sends and shows as it is."""
    object_id: str
    sequence: int
    """Rises per object: the order in which things happened, whatever order they arrive in."""
    body: bytes
    """The payload, encrypted by the vault: it may name a person (usecases/sealed.py: open_event_body)."""
    created_at: datetime
    version: int = 0


class OpenEvent(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An event as a webhook carries it."""

    id: str
    type: str
    sequence: int
    body: bytes
    """The payload in clear: the bytes that are signed and sent, the same on every attempt."""


class DeliveryStatus(StrEnum):
    SKIPPED = "skipped"
    """The receiver does not want events of its type."""
    HELD = "held"
    """Address or secret not set yet, or the endpoint is switched off."""
    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"


class Delivery(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The sending of an event to the account's own endpoint; its id is the event's. How it goes on is decided in
    delivery.py, what was answered is in its attempts."""

    id: str
    account_id: str
    mode: Mode
    type: str
    """The event's."""
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

    @property
    def event_id(self) -> str:
        """The event that it delivers."""
        return self.id.partition("/")[0]


class EndpointDelivery(Delivery, frozen=True, kw_only=True, gc=False):
    """The sending of an event to a further endpoint; its id is `delivery_id`."""

    endpoint_id: str


def delivery_id(event_id: str, endpoint_id: str) -> str:
    """The id of the delivery of an event to a further endpoint. It follows the event's, and the ids of webhooks
    (`attempt_id`) of one event, whoever they went to, lie between the event's id with `/` and with `;`."""
    return f"{event_id}/{endpoint_id}"


class Attempt(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One webhook of a delivery and what became of it, written once."""

    id: str
    """The delivery's id, a colon, and a number that puts its webhooks in order: they are found by a range of ids."""
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

    @property
    def endpoint_id(self) -> str | None:
        """The further endpoint that it went to; None: the account's own."""
        return self.id.partition("/")[2].partition(":")[0] or None
