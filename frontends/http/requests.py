"""HTTP API of a merchant's request log, without business rules (docs/concepts.md "Your requests")."""

import msgspec
from litestar.types import ASGIApp
from msgspec import UNSET, UnsetType

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

    request_id: str
    method: str
    path: str
    object_id: str | None
    status: int
    code: str | None
    api_key: str
    took_ms: int
    created_at: str
    sandbox: bool | UnsetType = UNSET


class RequestsView(msgspec.Struct, frozen=True, kw_only=True):
    data: list[RequestView]
    pagination: Pagination
    not_kept: int


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
