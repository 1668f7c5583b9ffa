"""HTTP API of events, without business rules (docs/webhooks.md "Looking, and sending again").

None of these calls creates a resource, so none needs an Idempotency-Key.
"""

from typing import Annotated

import msgspec
from litestar.types import ASGIApp
from msgspec import UNSET, Meta, UnsetType

from ...core.domain import shared_fields as shared
from ...core.domain.accounts.accounts import Caller, Mode
from ...core.domain.accounts.key_terms import Right
from ...core.domain.days import iso, iso_or_none
from ...core.domain.webhooks.delivery import AT_ONCE
from ...core.domain.webhooks.events import Attempt, Delivery, DeliveryStatus, EndpointDelivery, EventType
from ...core.usecases.common.paging import Page
from ...core.usecases.webhooks.events import (
    EndpointEventFilter,
    EventQuery,
    EventRange,
    Told,
    ToldWhole,
    get_event,
    list_endpoint_events,
    list_events,
)
from ...core.usecases.webhooks.resends import resend_event, resend_range
from ...ports.bundle import Ports
from .edge.answers import answer
from .edge.bodies import page_of
from .edge.operation import MADE, MOMENT, PAGES, ApiRequest, Operation, Query, Refusals
from .views import Pagination


class EventView(msgspec.Struct, frozen=True, kw_only=True):
    """An event and the state of its delivery."""

    id: Annotated[str, shared.ID]
    type: Annotated[str, Meta(description="Type of the event"), shared.among(EventType)]
    object_id: Annotated[str, Meta(description="Id of the payment, refund, subscription or other object of the event")]
    sequence: Annotated[
        int, Meta(description="Increases for each object: an event with a lower number than you have seen is older")
    ]
    endpoint_id: Annotated[str | None, shared.ENDPOINT_ID]
    delivery_status: Annotated[str, Meta(description="State of the delivery"), shared.among(DeliveryStatus)]
    attempt_count: Annotated[int, Meta(description="Number of attempts so far")]
    """Number of attempts, without probes."""
    next_attempt_at: Annotated[str | None, Meta(description="Time of the next attempt")]
    """Null unless the delivery is pending; also null while it only waits in the queue or for the receiver to recover.
    """
    last_attempt_at: Annotated[str | None, Meta(description="Time of the last attempt")]
    last_answer: Annotated[str | None, Meta(description="Result of the last attempt")]
    """`responded`, `timeout`, `connection`, `tls` or `blocked`."""
    last_status: Annotated[int | None, Meta(description="HTTP status of the last attempt")]
    delivered_at: Annotated[str | None, Meta(description="Time of the first 2xx answer")]
    created_at: Annotated[str, shared.CREATED_AT]
    sandbox: Annotated[bool | UnsetType, shared.SANDBOX] = UNSET


class AttemptView(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt to send a webhook."""

    endpoint_id: Annotated[str | None, shared.ENDPOINT_ID]
    number: Annotated[int, Meta(description="Number, from 1")]
    probe: Annotated[bool, Meta(description="Whether it is an attempt of the open breaker, which is not counted")]
    sent_at: Annotated[str, shared.SENT_AT]
    answer: Annotated[str, shared.ANSWER]
    status: Annotated[int | None, shared.STATUS]
    note: Annotated[str, shared.NOTE]
    took_ms: Annotated[int, shared.TOOK_MS]


class FurtherDeliveryView(msgspec.Struct, frozen=True, kw_only=True):
    """State of the delivery to a further endpoint."""

    endpoint_id: Annotated[str, shared.ENDPOINT_ID]
    delivery_status: Annotated[str, Meta(description="State of the delivery"), shared.among(DeliveryStatus)]
    attempt_count: Annotated[int, Meta(description="Number of attempts so far")]
    next_attempt_at: Annotated[str | None, Meta(description="Time of the next attempt")]
    delivered_at: Annotated[str | None, Meta(description="Time of the first 2xx answer")]


class WholeEventView(EventView, frozen=True, kw_only=True):
    """An event with its payload and every attempt."""

    payload: Annotated[msgspec.Raw, Meta(description="Body of the webhook")]
    attempts: Annotated[list[AttemptView], Meta(description="Every attempt, the oldest first")]
    further_deliveries: Annotated[
        list[FurtherDeliveryView], Meta(description="State of the deliveries to further endpoints")
    ]


class ResendCount(msgspec.Struct, frozen=True, kw_only=True):
    """Number of events that are sent again."""

    events: Annotated[int, Meta(description="Number of events that are sent again")]


class EventsView(msgspec.Struct, frozen=True, kw_only=True):
    data: Annotated[list[EventView], shared.DATA]
    pagination: Annotated[Pagination, shared.PAGINATION]


def event_view(told: Told) -> EventView:
    """Return the event object of the API."""
    event, delivery, last = told.event, told.delivery, told.last
    return EventView(
        id=event.id,
        type=event.type,
        object_id=event.object_id,
        sequence=event.sequence,
        endpoint_id=delivery.endpoint_id if isinstance(delivery, EndpointDelivery) else None,
        delivery_status=delivery.status.value,
        attempt_count=delivery.attempts,
        next_attempt_at=_next_attempt(delivery),
        last_attempt_at=None if last is None else iso(last.sent_at),
        last_answer=None if last is None else last.answer,
        last_status=None if last is None else last.status,
        delivered_at=iso_or_none(delivery.delivered_at),
        created_at=iso(event.created_at),
        sandbox=True if event.mode is Mode.TEST else UNSET,
    )


def whole_event_view(whole: ToldWhole) -> WholeEventView:
    """Return the event object with its payload and attempts."""
    return WholeEventView(
        **msgspec.structs.asdict(event_view(whole.told)),
        payload=msgspec.Raw(whole.payload),
        attempts=[_attempt_view(attempt) for attempt in whole.attempts],
        further_deliveries=[_further_view(delivery) for delivery in whole.further],
    )


def _further_view(delivery: EndpointDelivery) -> FurtherDeliveryView:
    return FurtherDeliveryView(
        endpoint_id=delivery.endpoint_id,
        delivery_status=delivery.status.value,
        attempt_count=delivery.attempts,
        next_attempt_at=_next_attempt(delivery),
        delivered_at=iso_or_none(delivery.delivered_at),
    )


def _next_attempt(delivery: Delivery) -> str | None:
    return None if delivery.due == AT_ONCE else iso_or_none(delivery.due)


def _attempt_view(attempt: Attempt) -> AttemptView:
    return AttemptView(
        endpoint_id=attempt.endpoint_id,
        number=attempt.number,
        probe=attempt.probe,
        sent_at=iso(attempt.sent_at),
        answer=attempt.answer,
        status=attempt.status,
        note=attempt.note,
        took_ms=attempt.took_ms,
    )


def events_view(page: Page[Told]) -> EventsView:
    """Return a page of events."""
    return EventsView(
        data=[event_view(told) for told in page.records],
        pagination=Pagination(
            page=page.number, per_page=page.size, total=page.total, total_pages=-(-page.total // page.size)
        ),
    )


async def page(ports: Ports, caller: Caller, request: ApiRequest[None]) -> ASGIApp:
    number, size = page_of(request.query)
    return answer(events_view(await list_events(ports, caller, request.asked(EventQuery), number, size)))


async def one(ports: Ports, caller: Caller, request: ApiRequest[None]) -> ASGIApp:
    return answer(whole_event_view(await get_event(ports, caller, request.id)))


async def resend(ports: Ports, caller: Caller, request: ApiRequest[None]) -> ASGIApp:
    return answer(event_view(await resend_event(ports, caller, request.id, request.query.get("endpoint_id"))))


async def resend_many(ports: Ports, caller: Caller, request: ApiRequest[EventRange]) -> ASGIApp:
    asked = request.read()
    count = await resend_range(ports, caller.account_id, caller.mode, asked.query, asked.endpoint_id)
    return answer(ResendCount(events=count))


async def of_endpoint(ports: Ports, caller: Caller, request: ApiRequest[None]) -> ASGIApp:
    asked = request.asked(EndpointEventFilter)
    found = await list_endpoint_events(ports, caller, request.id, asked, lambda: page_of(request.query))
    return answer(events_view(found))


_NO_EVENT: Refusals = {404: ("EVENT_NOT_FOUND",)}

_NO_ENDPOINT: Refusals = {404: ("WEBHOOK_ENDPOINT_NOT_FOUND",)}

_DELIVERY_STATUS = Query("delivery_status", "Only in this status.", {"enum": [*DeliveryStatus]})

EVENTS = (
    Operation(
        "list_events",
        "get",
        "/api/v1/events",
        "Events",
        "List events, newest first",
        page,
        answer=EventsView,
        query=(
            *PAGES,
            Query("type", "Only events of this type.", {"enum": [*EventType]}),
            Query("object_id", "Exact match."),
            _DELIVERY_STATUS,
            *MADE,
            Query("from", "An older name of created_from.", MOMENT),
            Query("to", "An older name of created_to.", MOMENT),
        ),
    ),
    Operation(
        "get_event",
        "get",
        "/api/v1/events/{event_id}",
        "Events",
        "Get an event with its payload and every attempt",
        one,
        answer=WholeEventView,
        refusals=_NO_EVENT,
    ),
    Operation(
        "resend_event",
        "post",
        "/api/v1/events/{event_id}/resend",
        "Events",
        "Resend an event",
        resend,
        answer=EventView,
        query=(Query("endpoint_id", "Resend to this further endpoint instead of the account's own."),),
        refusals={404: ("EVENT_NOT_FOUND", "WEBHOOK_ENDPOINT_NOT_FOUND")},
        right=Right.WEBHOOKS,
    ),
    Operation(
        "resend_events",
        "post",
        "/api/v1/events/resend",
        "Events",
        "Resend all events of a range",
        resend_many,
        body=EventRange,
        answer=ResendCount,
        refusals=_NO_ENDPOINT,
        right=Right.WEBHOOKS,
    ),
    Operation(
        "list_webhook_endpoint_events",
        "get",
        "/api/v1/webhook-endpoints/{endpoint_id}/events",
        "Events",
        "List the events of a further endpoint, newest first",
        of_endpoint,
        answer=EventsView,
        query=(*PAGES, _DELIVERY_STATUS, *MADE),
        refusals=_NO_ENDPOINT,
    ),
)
