"""Events and the merchant's receiver over HTTP. No rule lives here (docs/webhooks.md "Looking, and sending again").

None of these calls makes a resource, so none needs an Idempotency-Key.
"""

from collections.abc import Mapping

import msgspec
from litestar import Response, get, post
from litestar.params import FromPath
from msgspec import UNSET, UnsetType

from ...core.domain.accounts.accounts import Mode
from ...core.domain.days import iso, iso_or_none
from ...core.domain.webhooks.breaker import Breaker
from ...core.domain.webhooks.delivery import AT_ONCE
from ...core.domain.webhooks.events import Attempt
from ...core.usecases.paging import Page
from ...core.usecases.webhooks.endpoint import EndpointState, TestReport, endpoint_state, send_test
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
from .door.access import ApiRequest
from .door.answers import answer
from .door.bodies import body_reader, page_of
from .door.routing import Router
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


class EventsView(msgspec.Struct, frozen=True, kw_only=True):
    data: list[EventView]
    pagination: Pagination


class BreakerView(msgspec.Struct, frozen=True, kw_only=True):
    """Open: the receiver failed too often in a row; events wait, and one is sent at `next_probe_at`."""

    state: str
    failures: int
    opened_at: str | None
    next_probe_at: str | None


class FailureView(msgspec.Struct, frozen=True, kw_only=True):
    """The last webhook that was not answered well."""

    event_id: str
    at: str
    answer: str
    status: int | None
    note: str


class BacklogView(msgspec.Struct, frozen=True, kw_only=True):
    held: int
    pending: int
    failed: int


class EndpointView(msgspec.Struct, frozen=True, kw_only=True):
    url: str | None
    secret_set: bool
    previous_secret_until: str | None
    breaker: BreakerView
    backlog: BacklogView
    last_success_at: str | None
    last_failure: FailureView | None
    sandbox: bool | UnsetType = UNSET


class TestView(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a test webhook."""

    __test__ = False

    event_id: str
    delivered: bool
    sent_at: str
    answer: str
    status: int | None
    note: str
    took_ms: int


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


def endpoint_view(state: EndpointState) -> EndpointView:
    """How the receiver does."""
    account, breaker = state.account, state.breaker
    return EndpointView(
        url=account.settings.webhook_url,
        secret_set=account.webhook_secret is not None,
        previous_secret_until=iso_or_none(account.previous_secret_until),
        breaker=BreakerView(
            state="open" if breaker.is_open else "closed",
            failures=breaker.failures,
            opened_at=iso_or_none(breaker.opened_at),
            next_probe_at=iso_or_none(breaker.next_probe_at),
        ),
        backlog=BacklogView(**{status.value: count for status, count in state.backlog.items()}),
        last_success_at=iso_or_none(breaker.last_success_at),
        last_failure=_failure_view(breaker),
        sandbox=True if breaker.mode is Mode.TEST else UNSET,
    )


def _failure_view(breaker: Breaker) -> FailureView | None:
    if breaker.last_failure_at is None:
        return None
    return FailureView(
        event_id=breaker.last_failed_event or "",
        at=iso(breaker.last_failure_at),
        answer=breaker.last_answer or "",
        status=breaker.last_status,
        note=breaker.last_note or "",
    )


def report_view(report: TestReport) -> TestView:
    """The result of a test webhook."""
    return TestView(
        event_id=report.event_id,
        delivered=report.delivered,
        sent_at=iso(report.sent_at),
        answer=report.result.answer.value,
        status=report.result.status,
        note=report.result.note,
        took_ms=report.result.took_ms,
    )


def _query(values: Mapping[str, str]) -> EventQuery:
    return EventQuery(
        type=values.get("type"),
        object_id=values.get("object_id"),
        delivery_status=values.get("delivery_status"),
        since=values.get("from"),
        until=values.get("to"),
    )


def events_router(ports: Ports) -> Router:
    """GET /events, GET /events/{id}, POST /events/{id}/resend, POST /events/resend."""

    @get("/")
    async def page(request: ApiRequest) -> Response[bytes]:
        number, size = page_of(request.query_params)
        return answer(events_view(await list_events(ports, request.auth, _query(request.query_params), number, size)))

    @get("/{event_id:str}")
    async def one(request: ApiRequest, event_id: FromPath[str]) -> Response[bytes]:
        return answer(whole_event_view(await get_event(ports, request.auth, event_id)))

    @post("/{event_id:str}/resend", status_code=200)
    async def resend(request: ApiRequest, event_id: FromPath[str]) -> Response[bytes]:
        return answer(event_view(await resend_event(ports, request.auth, event_id)))

    @post("/resend", status_code=200)
    async def resend_many(request: ApiRequest) -> Response[bytes]:
        wanted = (await body_reader(request, EventRange))()
        caller = request.auth
        return answer({"events": await resend_range(ports, caller.account_id, caller.mode, wanted.query)})

    return Router("/events", route_handlers=[page, one, resend, resend_many])


def webhook_endpoint_router(ports: Ports) -> Router:
    """GET /webhook-endpoint, POST /webhook-endpoint/test."""

    @get("/")
    async def state(request: ApiRequest) -> Response[bytes]:
        return answer(endpoint_view(await endpoint_state(ports, request.auth)))

    @post("/test", status_code=200)
    async def test(request: ApiRequest) -> Response[bytes]:
        return answer(report_view(await send_test(ports, request.auth)))

    return Router("/webhook-endpoint", route_handlers=[state, test])
