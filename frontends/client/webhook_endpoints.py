"""Additional webhook endpoints, each with its own secret (docs/webhooks.md "Further endpoints")."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

import msgspec

from .events import BreakerState, DeliveryStatus, EventRecord, EventType, LastFailure, TestLetter
from .model import Page, Record
from .operations import Face, Group, operation, walk
from .requests import Request, at, create, get, post


class FurtherBacklog(Record, frozen=True, kw_only=True):
    held: int = 0
    """Events held until the endpoint is enabled."""
    pending: int
    failed: int


class FurtherEndpoint(Record, frozen=True, kw_only=True):
    """An additional webhook endpoint and its state."""

    id: str
    url: str
    event_types: list[EventType] | None
    """None means all types."""
    description: str | None
    enabled: bool = True
    """While False, events are stored as `held`."""
    header_names: tuple[str, ...] = ()
    """Names of its static headers; their values are not shown."""
    previous_secret_until: datetime | None
    breaker: BreakerState
    backlog: FurtherBacklog
    last_success_at: datetime | None
    last_failure: LastFailure | None
    created_at: datetime
    sandbox: bool = False


class NewEndpoint(FurtherEndpoint, frozen=True, kw_only=True):
    """An endpoint with its secret, which is shown only this once. Store it."""

    secret: str | None
    """None if an earlier call with the same key created the endpoint; `rotate_secret` returns a new one."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(id={self.id!r}, url={self.url!r}, secret=***)"


class DeletedEndpoint(Record, frozen=True, kw_only=True):
    id: str
    deleted: bool


class WebhookEndpoints(Group[Face]):
    """`client.webhook_endpoints`"""

    @operation
    def create(
        self,
        *,
        url: str,
        event_types: Sequence[EventType | str] | None = None,
        description: str | None = None,
        headers: Mapping[str, str] | None = None,
        idempotency_key: str | UUID | None = None,
    ) -> Request[NewEndpoint]:
        """Create an additional endpoint. Without types it receives every event. `headers` are sent with every
        webhook."""
        body = {"url": url, "event_types": event_types, "description": description, "headers": headers}
        return create("/webhook-endpoints", NewEndpoint, body, idempotency_key)

    @operation
    def get(self, endpoint_id: str) -> Request[FurtherEndpoint]:
        """Return an additional endpoint and its state."""
        return get(at("webhook-endpoints", endpoint_id), FurtherEndpoint)

    @operation
    def list(
        self,
        *,
        created_from: datetime | None = None,
        created_to: datetime | None = None,
        page: int | None = None,
        per_page: int | None = None,
    ) -> Request[Page[FurtherEndpoint]]:
        """List additional endpoints, newest first."""
        return get(
            "/webhook-endpoints",
            Page[FurtherEndpoint],
            created_from=created_from,
            created_to=created_to,
            page=page,
            per_page=per_page,
        )

    iterate = walk(list)

    @operation
    def update(
        self,
        endpoint_id: str,
        *,
        url: str | None = None,
        event_types: Sequence[EventType | str] | None = None,
        description: str | None = None,
        enabled: bool | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Request[FurtherEndpoint]:
        """Change the given fields. `["*"]` means all types, and an empty description removes it. `enabled=False`
        switches the endpoint off: events are `held` and sent after `enabled=True`. `headers` replaces all static
        headers, and an empty mapping removes them."""
        body = {
            "url": url,
            "event_types": event_types,
            "description": description,
            "enabled": enabled,
            "headers": headers,
        }
        asked = post(at("webhook-endpoints", endpoint_id), FurtherEndpoint, body, repeatable=True)
        return msgspec.structs.replace(asked, method="PATCH")

    @operation
    def delete(self, endpoint_id: str) -> Request[DeletedEndpoint]:
        """Delete an endpoint. Events that were not delivered are dropped."""
        return msgspec.structs.replace(get(at("webhook-endpoints", endpoint_id), DeletedEndpoint), method="DELETE")

    @operation
    def rotate_secret(self, endpoint_id: str) -> Request[NewEndpoint]:
        """Create a new secret. The old one also signs for 24 hours."""
        return post(at("webhook-endpoints", endpoint_id, "rotate-secret"), NewEndpoint)

    @operation
    def test(self, endpoint_id: str) -> Request[TestLetter]:
        """Post a test webhook to the endpoint now."""
        return post(at("webhook-endpoints", endpoint_id, "test"), TestLetter)

    @operation
    def events(
        self,
        endpoint_id: str,
        *,
        delivery_status: DeliveryStatus | str | None = None,
        created_from: datetime | None = None,
        created_to: datetime | None = None,
        page: int | None = None,
        per_page: int | None = None,
    ) -> Request[Page[EventRecord]]:
        """List the endpoint's events, newest first."""
        where = at("webhook-endpoints", endpoint_id, "events")
        return get(
            where,
            Page[EventRecord],
            delivery_status=delivery_status,
            created_from=created_from,
            created_to=created_to,
            page=page,
            per_page=per_page,
        )
