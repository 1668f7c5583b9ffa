"""Events over HTTP. No rule lives here (docs/webhooks.md "Looking, and sending again").

None of these calls makes a resource, so none needs an Idempotency-Key.
"""

from collections.abc import Mapping

import msgspec
from litestar.types import ASGIApp
from msgspec import UNSET, UnsetType

from ...core.domain.accounts.accounts import Caller, Mode
from ...core.domain.days import iso, iso_or_none
from ...core.domain.webhooks.delivery import AT_ONCE
from ...core.domain.webhooks.events import Attempt
from ...core.usecases.paging import Page
from ...core.usecases.webhooks.events import (
    EventQuery,
    EventRange,
    Told,
    ToldWhole,
    get_event,
    list_events,
)
from ...core.usecases.webhooks.resends import resend_event, resend_range
from ...ports.bundle import Ports
from .door.answers import answer
from .door.bodies import page_of
from .door.operation import MOMENT, PAGES, ApiRequest, Operation, Query, Refusals
from .views import Pagination


class EventView(msgspec.Struct, frozen=True, kw_only=True):
    """An event and how its delivery stands."""

    id: str
    type: str
    object_id: str
    sequence: int
    delivery_status: str
    attempt_count: int
    """Probes do not count."""
    next_attempt_at: str | None
    """Null unless it is pending, and while it only waits for its turn or for the receiver to be back."""
    last_attempt_at: str | None
    last_answer: str | None
    """`responded`, `timeout`, `connection`, `tls` or `blocked`."""
    last_status: int | None
    delivered_at: str | None
    created_at: str
    sandbox: bool | UnsetType = UNSET


class AttemptView(msgspec.Struct, frozen=True, kw_only=True):
    """One webhook."""

    number: int
    probe: bool
    sent_at: str
    answer: str
    status: int | None
    note: str
    took_ms: int


class WholeEventView(EventView, frozen=True, kw_only=True):
    """An event with what was sent and every attempt."""

    payload: msgspec.Raw
    attempts: list[AttemptView]


class ResendCount(msgspec.Struct, frozen=True, kw_only=True):
    """How many events are being sent again."""

    events: int


class EventsView(msgspec.Struct, frozen=True, kw_only=True):
    data: list[EventView]
    pagination: Pagination


def event_view(told: Told) -> EventView:
    """The event object of the interface."""
    event, delivery, last = told.event, told.delivery, told.last
    return EventView(
        id=event.id,
        type=event.type,
        object_id=event.object_id,
        sequence=event.sequence,
        delivery_status=delivery.status.value,
        attempt_count=delivery.attempts,
        next_attempt_at=None if delivery.due == AT_ONCE else iso_or_none(delivery.due),
        last_attempt_at=None if last is None else iso(last.sent_at),
        last_answer=None if last is None else last.answer,
        last_status=None if last is None else last.status,
        delivered_at=iso_or_none(delivery.delivered_at),
        created_at=iso(event.created_at),
        sandbox=True if event.mode is Mode.TEST else UNSET,
    )


def whole_event_view(whole: ToldWhole) -> WholeEventView:
    """The event object with its payload and attempts."""
    return WholeEventView(
        **msgspec.structs.asdict(event_view(whole.told)),
        payload=msgspec.Raw(whole.told.event.body),
        attempts=[_attempt_view(attempt) for attempt in whole.attempts],
    )


def _attempt_view(attempt: Attempt) -> AttemptView:
    return AttemptView(
        number=attempt.number,
        probe=attempt.probe,
        sent_at=iso(attempt.sent_at),
        answer=attempt.answer,
        status=attempt.status,
        note=attempt.note,
        took_ms=attempt.took_ms,
    )


def events_view(page: Page[Told]) -> EventsView:
    """A page of events."""
    return EventsView(
        data=[event_view(told) for told in page.records],
        pagination=Pagination(
            page=page.number, per_page=page.size, total=page.total, total_pages=-(-page.total // page.size)
        ),
    )


def _query(values: Mapping[str, str]) -> EventQuery:
    return EventQuery(
        type=values.get("type"),
        object_id=values.get("object_id"),
        delivery_status=values.get("delivery_status"),
        since=values.get("from"),
        until=values.get("to"),
    )


async def page(ports: Ports, caller: Caller, request: ApiRequest[None]) -> ASGIApp:
    query = request.query
    number, size = page_of(query)
    return answer(events_view(await list_events(ports, caller, _query(query), number, size)))


async def one(ports: Ports, caller: Caller, request: ApiRequest[None]) -> ASGIApp:
    return answer(whole_event_view(await get_event(ports, caller, request.id)))


async def resend(ports: Ports, caller: Caller, request: ApiRequest[None]) -> ASGIApp:
    return answer(event_view(await resend_event(ports, caller, request.id)))


async def resend_many(ports: Ports, caller: Caller, request: ApiRequest[EventRange]) -> ASGIApp:
    count = await resend_range(ports, caller.account_id, caller.mode, request.read().query)
    return answer(ResendCount(events=count))


_NO_EVENT: Refusals = {404: ("EVENT_NOT_FOUND",)}

EVENTS = (
    Operation(
        "list_events",
        "get",
        "/api/v1/events",
        "Events",
        "Events, the newest first",
        page,
        answer=EventsView,
        query=(
            *PAGES,
            *(Query(name, "Exactly this.") for name in ("type", "object_id", "delivery_status")),
            Query("from", "From this moment on.", MOMENT),
            Query("to", "Until before this moment.", MOMENT),
        ),
    ),
    Operation(
        "get_event",
        "get",
        "/api/v1/events/{event_id}",
        "Events",
        "An event with its payload and every attempt",
        one,
        answer=WholeEventView,
        refusals=_NO_EVENT,
    ),
    Operation(
        "resend_event",
        "post",
        "/api/v1/events/{event_id}/resend",
        "Events",
        "Send an event again",
        resend,
        answer=EventView,
        refusals=_NO_EVENT,
    ),
    Operation(
        "resend_events",
        "post",
        "/api/v1/events/resend",
        "Events",
        "Send all events of a range again",
        resend_many,
        body=EventRange,
        answer=ResendCount,
    ),
)
