"""HTTP API of refunds, without business rules (docs/refunds.md "Refunds"; docs/sandbox.md "The calls")."""

from typing import Annotated, Any

import msgspec
from litestar.types import ASGIApp
from msgspec import UNSET, Meta, UnsetType

from ...core.domain import shared_fields as shared
from ...core.domain.accounts.accounts import Caller, Mode
from ...core.domain.accounts.key_terms import Right
from ...core.domain.days import iso, iso_or_none
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
from .views import Pagination, csv_answer, file_rows, pagination, wants_csv


class RefundView(msgspec.Struct, frozen=True, kw_only=True):
    """The refund object (docs/refunds.md "Refunds"). `id` and `refund_id` are the same."""

    id: Annotated[str, shared.ID]
    refund_id: Annotated[str, Meta(description="Id of the refund")]
    payment_id: Annotated[str, shared.PAYMENT_ID]
    amount_rub: Annotated[str, shared.AMOUNT_RUB]
    amount_usdt: Annotated[
        str | None, Meta(description="USDT taken from the available balance, if the payment was settled; else null")
    ]
    rate_market: Annotated[
        str | None, Meta(description="Rate of the payment's settlement, used for `amount_usdt`; else null")
    ]
    status: Annotated[str, shared.STATUS]
    pending_reason: Annotated[
        str | None, Meta(description="Why a pending refund waits: `awaiting_approval`, `insufficient_balance`")
    ]
    external_id: Annotated[str | None, shared.EXTERNAL_ID]
    reason: Annotated[str | None, Meta(description="Your reason")]
    failure_reason: Annotated[str | None, shared.FAILURE_REASON]
    metadata: Annotated[dict[str, Any] | None, shared.METADATA]
    shop_id: Annotated[str, shared.SHOP_ID]
    created_at: Annotated[str, shared.CREATED_AT]
    completed_at: Annotated[str | None, shared.COMPLETED_AT]
    sandbox: Annotated[bool | UnsetType, shared.SANDBOX] = UNSET


class RefundsView(msgspec.Struct, frozen=True, kw_only=True):
    data: Annotated[list[RefundView], shared.DATA]
    pagination: Annotated[Pagination, shared.PAGINATION]


def refund_view(refund: Refund) -> RefundView:
    """Return the refund object of the API."""
    return RefundView(
        id=refund.id,
        refund_id=refund.id,
        payment_id=refund.payment_id,
        amount_rub=str(refund.amount),
        amount_usdt=None if refund.taken_usdt is None else str(refund.taken_usdt),
        rate_market=refund.rate_market,
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
