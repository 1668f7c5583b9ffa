"""HTTP API of further webhook endpoints, without business rules (docs/webhooks.md "Further endpoints")."""

from typing import Annotated

import msgspec
from litestar.types import ASGIApp
from msgspec import UNSET, Meta, UnsetType

from ...core.domain import shared_fields as shared
from ...core.domain.accounts.accounts import Caller, Mode
from ...core.domain.accounts.key_terms import Right
from ...core.domain.days import iso, iso_or_none
from ...core.domain.webhooks.endpoints import EndpointOrder, EndpointPatch
from ...core.domain.webhooks.events import DeliveryStatus, EventType
from ...core.usecases.common.paging import MomentFilter
from ...core.usecases.webhooks.endpoints import (
    FurtherReport,
    change_endpoint,
    create_endpoint,
    delete_endpoint,
    get_endpoint,
    list_endpoints,
    rotate_secret,
    try_endpoint,
)
from ...ports.bundle import Ports
from .edge.answers import answer, made
from .edge.bodies import page_of
from .edge.operation import MADE, PAGES, ApiRequest, Operation, Refusals
from .endpoint_views import BreakerView, FailureView, TestView, breaker_view, failure_view, report_view
from .views import Pagination, pagination


class FurtherBacklogView(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of waiting and failed events of a further endpoint. Held events wait until it is switched on."""

    held: Annotated[int, Meta(description="Number of events waiting until the endpoint is switched on")]
    pending: Annotated[int, Meta(description="Number of events waiting for their next attempt")]
    failed: Annotated[int, Meta(description="Number of events given up; you can resend them")]


class FurtherEndpointView(msgspec.Struct, frozen=True, kw_only=True):
    """A further webhook endpoint and its state."""

    id: Annotated[str, shared.ID]
    url: Annotated[str, Meta(description="Address to which webhooks are sent")]
    event_types: Annotated[
        list[Annotated[str, shared.among(EventType)]] | None,
        Meta(description="Types of events sent to the endpoint; null: all"),
    ]
    description: Annotated[str | None, Meta(description="Your own note")]
    enabled: Annotated[bool, Meta(description="False: the endpoint is switched off and events wait as `held`")]
    header_names: Annotated[list[str], Meta(description="Names of your own headers; the values are not shown")]
    previous_secret_until: Annotated[str | None, Meta(description="Time until which the previous secret signs as well")]
    breaker: Annotated[BreakerView, Meta(description="State of the pause after too many failures in a row")]
    backlog: Annotated[FurtherBacklogView, Meta(description="Numbers of waiting and failed events")]
    last_success_at: Annotated[str | None, Meta(description="Time of the last 2xx answer")]
    last_failure: Annotated[FailureView | None, Meta(description="The last webhook without a 2xx answer")]
    created_at: Annotated[str, shared.CREATED_AT]
    sandbox: Annotated[bool | UnsetType, shared.SANDBOX] = UNSET


class NewEndpointView(FurtherEndpointView, frozen=True, kw_only=True):
    """The same with its secret, which is shown only once."""

    enabled: Annotated[bool, Meta(description="Always true")]
    secret: Annotated[
        str | None,
        Meta(description="Secret that signs the events for this endpoint; shown only once, null on a repeat"),
    ]


class EndpointsView(msgspec.Struct, frozen=True, kw_only=True):
    data: Annotated[list[FurtherEndpointView], shared.DATA]
    pagination: Annotated[Pagination, shared.PAGINATION]


class DeletedEndpointView(msgspec.Struct, frozen=True, kw_only=True):
    """A deleted endpoint."""

    id: Annotated[str, shared.ID]
    deleted: Annotated[bool, Meta(description="Always true")]


def further_view(report: FurtherReport) -> FurtherEndpointView:
    """Return the endpoint object of the API."""
    endpoint, breaker = report.endpoint, report.breaker
    return FurtherEndpointView(
        id=endpoint.id,
        url=endpoint.url,
        event_types=None if endpoint.event_types is None else list(endpoint.event_types),
        description=endpoint.description,
        enabled=endpoint.enabled,
        header_names=list(endpoint.header_names or ()),
        previous_secret_until=iso_or_none(endpoint.previous_secret_until),
        breaker=breaker_view(breaker),
        backlog=FurtherBacklogView(
            held=report.backlog[DeliveryStatus.HELD],
            pending=report.backlog[DeliveryStatus.PENDING],
            failed=report.backlog[DeliveryStatus.FAILED],
        ),
        last_success_at=iso_or_none(breaker.last_success_at),
        last_failure=failure_view(breaker),
        created_at=iso(endpoint.created_at),
        sandbox=True if endpoint.mode is Mode.TEST else UNSET,
    )


async def _with_secret(ports: Ports, caller: Caller, endpoint_id: str, secret: str | None) -> NewEndpointView:
    view = further_view(await get_endpoint(ports, caller, endpoint_id))
    return NewEndpointView(**msgspec.structs.asdict(view), secret=secret)


async def create(ports: Ports, caller: Caller, request: ApiRequest[EndpointOrder]) -> ASGIApp:
    created = await create_endpoint(ports, caller, request.key, request.read)
    new = created.resource
    view = await _with_secret(ports, caller, new.endpoint.id, new.secret)
    return made(view, replayed=created.replayed)


async def page(ports: Ports, caller: Caller, request: ApiRequest[None]) -> ASGIApp:
    found = await list_endpoints(ports, caller, request.asked(MomentFilter), *page_of(request.query))
    return answer(
        EndpointsView(
            data=[further_view(each) for each in found.records],
            pagination=pagination(found),
        )
    )


async def one(ports: Ports, caller: Caller, request: ApiRequest[None]) -> ASGIApp:
    return answer(further_view(await get_endpoint(ports, caller, request.id)))


async def change(ports: Ports, caller: Caller, request: ApiRequest[EndpointPatch]) -> ASGIApp:
    await change_endpoint(ports, caller, request.id, request.read)
    return answer(further_view(await get_endpoint(ports, caller, request.id)))


async def rotate(ports: Ports, caller: Caller, request: ApiRequest[None]) -> ASGIApp:
    new = await rotate_secret(ports, caller, request.id)
    return answer(await _with_secret(ports, caller, new.endpoint.id, new.secret))


async def test(ports: Ports, caller: Caller, request: ApiRequest[None]) -> ASGIApp:
    return answer(report_view(await try_endpoint(ports, caller, request.id)))


async def delete(ports: Ports, caller: Caller, request: ApiRequest[None]) -> ASGIApp:
    await delete_endpoint(ports, caller, request.id)
    return answer(DeletedEndpointView(id=request.id, deleted=True))


_NO_ENDPOINT: Refusals = {404: ("WEBHOOK_ENDPOINT_NOT_FOUND",)}
_ONE = "/api/v1/webhook-endpoints/{endpoint_id}"

WEBHOOK_ENDPOINTS = (
    Operation(
        "create_webhook_endpoint",
        "post",
        "/api/v1/webhook-endpoints",
        "Events",
        "Create a further webhook endpoint; its secret is shown only once",
        create,
        body=EndpointOrder,
        answer=NewEndpointView,
        creates=True,
        refusals={404: _NO_ENDPOINT[404], 409: ("WEBHOOK_ENDPOINT_LIMIT",)},
        right=Right.WEBHOOKS,
    ),
    Operation(
        "list_webhook_endpoints",
        "get",
        "/api/v1/webhook-endpoints",
        "Events",
        "List further webhook endpoints, newest first",
        page,
        answer=EndpointsView,
        query=(*PAGES, *MADE),
    ),
    Operation(
        "get_further_webhook_endpoint",
        "get",
        _ONE,
        "Events",
        "Get a further webhook endpoint and its state",
        one,
        answer=FurtherEndpointView,
        refusals=_NO_ENDPOINT,
    ),
    Operation(
        "update_webhook_endpoint",
        "patch",
        _ONE,
        "Events",
        "Update a further webhook endpoint, or switch it off and on",
        change,
        body=EndpointPatch,
        answer=FurtherEndpointView,
        refusals={**_NO_ENDPOINT, 409: ("INVALID_STATE",)},
        right=Right.WEBHOOKS,
    ),
    Operation(
        "delete_webhook_endpoint",
        "delete",
        _ONE,
        "Events",
        "Delete a further webhook endpoint",
        delete,
        answer=DeletedEndpointView,
        refusals={**_NO_ENDPOINT, 409: ("INVALID_STATE",)},
        right=Right.WEBHOOKS,
    ),
    Operation(
        "rotate_webhook_endpoint_secret",
        "post",
        f"{_ONE}/rotate-secret",
        "Events",
        "Replace the secret of a further webhook endpoint; the new one is shown only once",
        rotate,
        answer=NewEndpointView,
        refusals=_NO_ENDPOINT,
        right=Right.WEBHOOKS,
    ),
    Operation(
        "test_further_webhook_endpoint",
        "post",
        f"{_ONE}/test",
        "Events",
        "Send a test event to a further webhook endpoint now",
        test,
        answer=TestView,
        refusals=_NO_ENDPOINT,
        right=Right.WEBHOOKS,
    ),
)
