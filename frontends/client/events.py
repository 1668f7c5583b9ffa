"""Events sent to the merchant, and the state of its webhook receiver (docs/webhooks.md "Looking, and sending
again")."""

from datetime import datetime
from typing import Any

import msgspec

from .model import OpenEnum, Page, Record
from .operations import Face, Group, operation, walk
from .requests import Request, at, get, post
from .webhooks import WebhookEvent, read_event


class EventType(OpenEnum):
    """Types of events."""

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


class DeliveryStatus(OpenEnum):
    """State of the delivery of an event to your receiver."""

    SKIPPED = "skipped"
    HELD = "held"
    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"


class EventRecord(Record, frozen=True, kw_only=True):
    """An event and the state of its delivery."""

    id: str
    type: EventType
    object_id: str
    sequence: int
    endpoint_id: str | None
    """Id of the additional endpoint, or None for the account's own."""
    delivery_status: DeliveryStatus
    attempt_count: int
    next_attempt_at: datetime | None
    last_attempt_at: datetime | None
    last_answer: str | None
    last_status: int | None
    delivered_at: datetime | None
    created_at: datetime
    sandbox: bool = False


class DeliveryAttempt(Record, frozen=True, kw_only=True):
    """One webhook request to the receiver."""

    endpoint_id: str | None
    """None for the account's own endpoint."""
    number: int
    probe: bool
    sent_at: datetime
    answer: str
    status: int | None
    note: str
    took_ms: int


class FurtherDelivery(Record, frozen=True, kw_only=True):
    """State of the delivery to an additional endpoint."""

    endpoint_id: str
    delivery_status: DeliveryStatus
    attempt_count: int
    next_attempt_at: datetime | None
    delivered_at: datetime | None


class WholeEvent(EventRecord, frozen=True, kw_only=True):
    """An event with its payload and all delivery attempts."""

    payload: dict[str, Any]
    attempts: list[DeliveryAttempt]
    further_deliveries: list[FurtherDelivery]

    @property
    def event(self) -> WebhookEvent:
        """The payload as a webhook's event, with its types. Raises: msgspec.DecodeError."""
        return read_event(msgspec.json.encode(self.payload))


class BreakerState(Record, frozen=True, kw_only=True):
    state: str
    failures: int
    opened_at: datetime | None
    next_probe_at: datetime | None


class LastFailure(Record, frozen=True, kw_only=True):
    event_id: str
    at: datetime
    answer: str
    status: int | None
    note: str


class Backlog(Record, frozen=True, kw_only=True):
    held: int
    pending: int
    failed: int


class WebhookEndpoint(Record, frozen=True, kw_only=True):
    """The merchant's webhook endpoint and its state."""

    url: str | None
    secret_set: bool
    event_types: list[EventType] | None
    header_names: tuple[str, ...] = ()
    """Names of its static headers; their values are not shown."""
    previous_secret_until: datetime | None
    breaker: BreakerState
    backlog: Backlog
    last_success_at: datetime | None
    last_failure: LastFailure | None
    sandbox: bool = False


class TestLetter(Record, frozen=True, kw_only=True):
    """Result of a test webhook."""

    __test__ = False

    event_id: str
    delivered: bool
    sent_at: datetime
    answer: str
    status: int | None
    note: str
    took_ms: int


class Resent(Record, frozen=True, kw_only=True):
    """Number of events being sent again."""

    events: int


class Events(Group[Face]):
    """`client.events`"""

    @operation
    def get(self, event_id: str) -> Request[WholeEvent]:
        """Return an event with its payload and all delivery attempts."""
        return get(at("events", event_id), WholeEvent)

    @operation
    def list(
        self,
        *,
        type: EventType | str | None = None,  # noqa: A002 - the interface's word
        object_id: str | None = None,
        delivery_status: DeliveryStatus | str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        created_from: datetime | None = None,
        created_to: datetime | None = None,
        page: int | None = None,
        per_page: int | None = None,
    ) -> Request[Page[EventRecord]]:
        """List events, newest first. `created_from` is inclusive, `created_to` exclusive; `since` and `until` are their
        older names."""
        return get(
            "/events",
            Page[EventRecord],
            type=type,
            object_id=object_id,
            delivery_status=delivery_status,
            from_=since,
            to=until,
            created_from=created_from,
            created_to=created_to,
            page=page,
            per_page=per_page,
        )

    iterate = walk(list)

    @operation
    def resend(self, event_id: str, *, endpoint_id: str | None = None) -> Request[EventRecord]:
        """Send an event again, to the account's own endpoint or to the given additional one."""
        return post(at("events", event_id, "resend"), EventRecord, query={"endpoint_id": endpoint_id})

    @operation
    def resend_range(
        self,
        *,
        since: datetime,
        until: datetime,
        type: EventType | str | None = None,  # noqa: A002 - the interface's word
        delivery_status: DeliveryStatus | str | None = None,
        endpoint_id: str | None = None,
    ) -> Request[Resent]:
        """Send all events of a period again, oldest first, to the account's own endpoint or to the given additional
        one."""
        body = {
            "from": since,
            "to": until,
            "type": type,
            "delivery_status": delivery_status,
            "endpoint_id": endpoint_id,
        }
        return post("/events/resend", Resent, body)

    @operation
    def endpoint(self) -> Request[WebhookEndpoint]:
        """Return the account's webhook endpoint and its state."""
        return get("/webhook-endpoint", WebhookEndpoint)

    @operation
    def test_endpoint(self) -> Request[TestLetter]:
        """Post a test webhook to the endpoint now."""
        return post("/webhook-endpoint/test", TestLetter)
