"""HTTP API of refunds, without business rules (docs/refunds.md "Refunds"; docs/sandbox.md "The calls")."""

from typing import Annotated

import msgspec
from litestar.types import ASGIApp

from ...core.domain import shared_fields as shared
from ...core.domain.accounts.accounts import Caller
from ...core.domain.accounts.key_terms import Right
from ...core.domain.refunds.orders import RefundOrder
from ...core.domain.refunds.refunds import Refund, RefundStatus
from ...core.usecases.common.paging import Page
from ...core.usecases.exports.rows import RefundRow, refund_rows
from ...core.usecases.refunds.list import RefundFilter, list_refunds
from ...core.usecases.refunds.refunds import cancel_refund, create_refund, get_refund, require_refunds
from ...core.usecases.sandbox.refunds import RefundSimulation, simulate_refund
from ...ports.bundle import Ports
from .edge.answers import answer, made
from .edge.bodies import page_of
from .edge.operation import FORMAT, FOUND_BY, PAGES, UUID, ApiRequest, Operation, Query, Refusals
from .records import RefundView, refund_view
from .views import Pagination, csv_answer, file_rows, pagination, wants_csv


class RefundsView(msgspec.Struct, frozen=True, kw_only=True):
    data: Annotated[list[RefundView], shared.DATA]
    pagination: Annotated[Pagination, shared.PAGINATION]


def refunds_view(page: Page[Refund]) -> RefundsView:
    """Return a page of refunds."""
    return RefundsView(data=[refund_view(refund) for refund in page.records], pagination=pagination(page))


async def create(ports: Ports, caller: Caller, request: ApiRequest[RefundOrder]) -> ASGIApp:
    refund = await create_refund(ports, caller, request.key, request.read)
    return made(refund_view(refund.resource), replayed=refund.replayed)


async def page(ports: Ports, caller: Caller, request: ApiRequest[None]) -> ASGIApp:
    require_refunds(caller)
    asked = request.asked(RefundFilter)
    if wants_csv(request.query):
        page_of(request.query)
        return csv_answer("refunds", RefundRow, file_rows(await refund_rows(ports, caller, asked)))
    return answer(refunds_view(await list_refunds(ports, caller, asked, lambda: page_of(request.query))))


async def one(ports: Ports, caller: Caller, request: ApiRequest[None]) -> ASGIApp:
    return answer(refund_view(await get_refund(ports, caller, request.id)))


async def cancel(ports: Ports, caller: Caller, request: ApiRequest[None]) -> ASGIApp:
    return answer(refund_view(await cancel_refund(ports, caller, request.id)))


async def simulate(ports: Ports, caller: Caller, request: ApiRequest[RefundSimulation]) -> ASGIApp:
    return answer(refund_view(await simulate_refund(ports, caller, request.id, request.read)))


_OFF = "NOT_FOUND"
"""Refusal code while refunds are disabled for the account."""
_NO_REFUND: Refusals = {404: ("REFUND_NOT_FOUND", _OFF)}

REFUNDS = (
    Operation(
        "create_refund",
        "post",
        "/api/v1/refunds",
        "Refunds",
        "Request a refund of the whole remainder or of a part",
        create,
        body=RefundOrder,
        answer=RefundView,
        creates=True,
        refusals={
            400: ("INVALID_AMOUNT", "OVER_REMAINING", "PARTIAL_BEFORE_SETTLEMENT"),
            404: ("PAYMENT_NOT_FOUND", _OFF),
            409: ("INVALID_STATUS", "LIMIT_PER_PAYMENT"),
        },
        right=Right.REFUNDS,
    ),
    Operation(
        "list_refunds",
        "get",
        "/api/v1/refunds",
        "Refunds",
        "List refunds, newest first",
        page,
        answer=RefundsView,
        also_as="text/csv",
        query=(
            *PAGES,
            Query("payment_id", "Only of this payment."),
            Query("status", "Only in this status; upper or lower case.", {"enum": [*RefundStatus]}),
            Query("shop_id", "Only of this shop.", UUID),
            *FOUND_BY,
            FORMAT,
        ),
        refusals={400: ("SHOP_NOT_FOUND",), 404: (_OFF,)},
    ),
    Operation(
        "get_refund",
        "get",
        "/api/v1/refunds/{refund_id}",
        "Refunds",
        "Get a refund",
        one,
        answer=RefundView,
        refusals=_NO_REFUND,
    ),
    Operation(
        "cancel_refund",
        "post",
        "/api/v1/refunds/{refund_id}/cancel",
        "Refunds",
        "Cancel a refund while it is pending",
        cancel,
        answer=RefundView,
        refusals={**_NO_REFUND, 409: ("INVALID_STATE",), 503: ("PROVIDER_UNAVAILABLE",)},
        right=Right.REFUNDS,
    ),
    Operation(
        "simulate_refund",
        "post",
        "/api/v1/sandbox/refunds/{refund_id}/simulate",
        "Sandbox",
        "Simulate the outcome of a refund, in place of the operator and the bank",
        simulate,
        body=RefundSimulation,
        answer=RefundView,
        refusals={**_NO_REFUND, 409: ("INVALID_STATE",), 503: ("PROVIDER_UNAVAILABLE",)},
    ),
)
