"""Refunds over HTTP. No rule lives here (docs/refunds.md "Refunds"; docs/sandbox.md "The calls")."""

from typing import Any

import msgspec
from litestar import Response, get, post
from litestar.params import FromPath
from msgspec import UNSET, UnsetType

from ...core.domain.accounts.accounts import Mode
from ...core.domain.days import iso, iso_or_none
from ...core.domain.refunds.refunds import Refund, RefundOrder
from ...core.usecases.paging import Page
from ...core.usecases.refunds.list import RefundFilter, list_refunds
from ...core.usecases.refunds.refunds import cancel_refund, create_refund, get_refund
from ...core.usecases.sandbox.refunds import RefundSimulation, simulate_refund
from ...ports.bundle import Ports
from .door.access import ApiRequest, require_test_mode
from .door.answers import answer, created
from .door.bodies import body_reader, page_of
from .door.routing import Router
from .views import Pagination, pagination


class RefundView(msgspec.Struct, frozen=True, kw_only=True):
    """The refund object (docs/refunds.md "Refunds"). `id` and `refund_id` are the same."""

    id: str
    refund_id: str
    payment_id: str
    amount_rub: str
    status: str
    pending_reason: str | None
    external_id: str | None
    reason: str | None
    failure_reason: str | None
    metadata: dict[str, Any] | None
    shop_id: str
    created_at: str
    completed_at: str | None
    sandbox: bool | UnsetType = UNSET


class RefundsView(msgspec.Struct, frozen=True, kw_only=True):
    data: list[RefundView]
    pagination: Pagination


def refund_view(refund: Refund) -> RefundView:
    """The refund object of the interface."""
    return RefundView(
        id=refund.id,
        refund_id=refund.id,
        payment_id=refund.payment_id,
        amount_rub=str(refund.amount),
        status=refund.status.value,
        pending_reason=None if refund.pending_reason is None else refund.pending_reason.value,
        external_id=refund.external_id,
        reason=refund.reason,
        failure_reason=refund.failure_reason,
        metadata=refund.metadata,
        shop_id=refund.shop_id,
        created_at=iso(refund.created_at),
        completed_at=iso_or_none(refund.completed_at),
        sandbox=True if refund.mode is Mode.TEST else UNSET,
    )


def refunds_view(page: Page[Refund]) -> RefundsView:
    """A page of refunds."""
    return RefundsView(data=[refund_view(refund) for refund in page.records], pagination=pagination(page))


def refunds_router(ports: Ports) -> Router:
    """POST /refunds, GET /refunds, GET /refunds/{id}, POST /refunds/{id}/cancel."""

    @post("/")
    async def create(request: ApiRequest) -> Response[bytes]:
        made = await create_refund(
            ports, request.auth, request.headers.get("idempotency-key"), await body_reader(request, RefundOrder)
        )
        return created(refund_view(made.resource), replayed=made.replayed)

    @get("/")
    async def page(request: ApiRequest) -> Response[bytes]:
        query = request.query_params
        asked = RefundFilter(**{name: query.get(name) for name in RefundFilter.__struct_fields__})
        return answer(refunds_view(await list_refunds(ports, request.auth, asked, lambda: page_of(query))))

    @get("/{refund_id:str}")
    async def one(request: ApiRequest, refund_id: FromPath[str]) -> Response[bytes]:
        return answer(refund_view(await get_refund(ports, request.auth, refund_id)))

    @post("/{refund_id:str}/cancel", status_code=200)
    async def cancel(request: ApiRequest, refund_id: FromPath[str]) -> Response[bytes]:
        return answer(refund_view(await cancel_refund(ports, request.auth, refund_id)))

    return Router("/refunds", route_handlers=[create, page, one, cancel])


def sandbox_refunds_router(ports: Ports) -> Router:
    """POST /sandbox/refunds/{id}/simulate, for test keys only (docs/sandbox.md "The calls")."""

    @post("/{refund_id:str}/simulate", status_code=200)
    async def simulate(request: ApiRequest, refund_id: FromPath[str]) -> Response[bytes]:
        simulated = await simulate_refund(ports, request.auth, refund_id, await body_reader(request, RefundSimulation))
        return answer(refund_view(simulated))

    return Router("/sandbox/refunds", route_handlers=[simulate], guards=[require_test_mode])
