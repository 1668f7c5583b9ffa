"""HTTP API of a merchant's request log, without business rules (docs/concepts.md "Your requests")."""

from typing import Annotated

import msgspec
from litestar.types import ASGIApp
from msgspec import UNSET, Meta, UnsetType

from ...core.domain import shared_fields as shared
from ...core.domain.accounts.accounts import Caller, Mode
from ...core.domain.accounts.request_log import RequestEntry
from ...core.domain.days import iso
from ...core.usecases.accounts.request_list import RequestFilter, list_requests
from ...core.usecases.common.paging import Page
from ...ports.bundle import Ports
from .edge.answers import answer
from .edge.bodies import page_of
from .edge.operation import MADE, PAGES, ApiRequest, Operation, Query
from .views import Pagination, pagination


class RequestView(msgspec.Struct, frozen=True, kw_only=True):
    """One request (docs/concepts.md "Your requests")."""

    request_id: Annotated[str, Meta(description="Value of the header X-Request-Id in the answer")]
    method: Annotated[str, Meta(description="HTTP method")]
    path: Annotated[str, Meta(description="Path template; query and body are not stored")]
    object_id: Annotated[str | None, Meta(description="Id of the object in the path")]
    status: Annotated[int, Meta(description="HTTP status")]
    code: Annotated[str | None, Meta(description="Error code; null without an error")]
    api_key: Annotated[str, Meta(description="Key used for the request")]
    took_ms: Annotated[int, shared.TOOK_MS]
    created_at: Annotated[str, Meta(description="Time of the answer")]
    sandbox: Annotated[bool | UnsetType, shared.SANDBOX] = UNSET


class RequestsView(msgspec.Struct, frozen=True, kw_only=True):
    data: Annotated[list[RequestView], shared.DATA]
    pagination: Annotated[Pagination, shared.PAGINATION]
    not_kept: Annotated[
        int,
        Meta(
            description="Number of requests in this time range that are not in the list, because too many came to "
            "record"
        ),
    ]


def request_view(entry: RequestEntry, mode: Mode) -> RequestView:
    """Return a request as its merchant sees it."""
    return RequestView(
        request_id=entry.request_id,
        method=entry.method,
        path=entry.path,
        object_id=entry.object_id,
        status=entry.status,
        code=entry.code,
        api_key=entry.key_id,
        took_ms=entry.took_ms,
        created_at=iso(entry.at),
        sandbox=True if mode is Mode.TEST else UNSET,
    )


async def page(ports: Ports, caller: Caller, request: ApiRequest[None]) -> ASGIApp:
    number, size = page_of(request.query)
    found = await list_requests(ports, caller, request.asked(RequestFilter), number, size)
    return answer(
        RequestsView(
            data=[request_view(each, caller.mode) for each in found.records],
            pagination=pagination(Page(found.records, number, size, found.total)),
            not_kept=found.not_kept,
        )
    )


REQUESTS = (
    Operation(
        "list_requests",
        "get",
        "/api/v1/requests",
        "Requests",
        "List your requests of the last 30 days, newest first",
        page,
        answer=RequestsView,
        query=(*PAGES, Query("status", "Only requests answered with this HTTP status.", {"type": "integer"}), *MADE),
    ),
)
