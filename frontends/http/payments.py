"""HTTP API of payments, without business rules (docs/payments.md "Taking one")."""

from typing import Annotated

import msgspec
from litestar.types import ASGIApp
from msgspec import Meta

from ...core.domain import shared_fields as shared
from ...core.domain.accounts.accounts import Caller
from ...core.domain.accounts.key_terms import Right
from ...core.domain.days import iso, iso_or_none
from ...core.domain.payments.orders import PaymentOrder
from ...core.domain.payments.payments import PaymentStatus
from ...core.usecases.exports.rows import PaymentRow, payment_rows
from ...core.usecases.payments.list import PaymentFilter, list_payments
from ...core.usecases.payments.payments import create_payment, get_payment, get_sbp_link
from ...core.usecases.payments.transfers import list_transfers
from ...ports.bundle import Ports
from .edge.answers import answer, made
from .edge.bodies import page_of
from .edge.operation import FORMAT, FOUND_BY, PAGES, UUID, ApiRequest, Operation, Query, Refusals
from .records import PaymentView, payment_view
from .views import (
    Pagination,
    PaymentsView,
    csv_answer,
    file_rows,
    pagination,
    payments_view,
    wants_csv,
)


class SbpLink(msgspec.Struct, frozen=True, kw_only=True):
    """The bank's own link; null for payments by an exchange terminal, and once it can no longer be paid."""

    sbp_link: Annotated[
        str | None,
        Meta(description="The bank's own link; null for exchange terminals, and once it can no longer be paid"),
    ]


class TransferView(msgspec.Struct, frozen=True, kw_only=True):
    """A transfer received for a payment (docs/payments.md "What came")."""

    amount_rub: Annotated[str, Meta(description="Amount received")]
    status: Annotated[str, Meta(description="`credited`, `under_review`, `suspended`, `returning`, `returned`")]
    reason: Annotated[
        str | None, Meta(description="Why the transfer was not applied to the payment, or why it is not yet returned")
    ]
    received_at: Annotated[str, Meta(description="Time of receipt, by the bank's clock if the bank reports it")]
    returned_at: Annotated[str | None, Meta(description="Time of the return")]


class TransfersView(msgspec.Struct, frozen=True, kw_only=True):
    """A page of received transfers, the oldest first."""

    data: Annotated[list[TransferView], shared.DATA]
    pagination: Annotated[Pagination, shared.PAGINATION]


async def create(ports: Ports, caller: Caller, request: ApiRequest[PaymentOrder]) -> ASGIApp:
    payment = await create_payment(ports, caller, request.key, request.read)
    return made(payment_view(ports, payment.resource), replayed=payment.replayed)


async def page(ports: Ports, caller: Caller, request: ApiRequest[None]) -> ASGIApp:
    in_csv, (number, size) = wants_csv(request.query), page_of(request.query)
    asked = request.asked(PaymentFilter)
    if in_csv:
        return csv_answer("payments", PaymentRow, file_rows(await payment_rows(ports, caller, asked)))
    return answer(payments_view(ports, await list_payments(ports, caller, asked, number, size)))


async def one(ports: Ports, caller: Caller, request: ApiRequest[None]) -> ASGIApp:
    return answer(payment_view(ports, await get_payment(ports, caller, request.id)))


async def sbp_link(ports: Ports, caller: Caller, request: ApiRequest[None]) -> ASGIApp:
    return answer(SbpLink(sbp_link=await get_sbp_link(ports, caller, request.id)))


async def transfers(ports: Ports, caller: Caller, request: ApiRequest[None]) -> ASGIApp:
    found = await list_transfers(ports, caller, request.id, *page_of(request.query))
    data = [
        TransferView(
            amount_rub=str(each.amount),
            status=each.status.value,
            reason=each.reason,
            received_at=iso(each.received_at),
            returned_at=iso_or_none(each.returned_at),
        )
        for each in found.records
    ]
    return answer(TransfersView(data=data, pagination=pagination(found)))


_NO_PAYMENT: Refusals = {404: ("PAYMENT_NOT_FOUND",)}

PAYMENTS = (
    Operation(
        "create_payment",
        "post",
        "/api/v1/payments",
        "Payments",
        "Create a payment",
        create,
        body=PaymentOrder,
        answer=PaymentView,
        creates=True,
        refusals={
            400: (
                "INVALID_AMOUNT",
                "AMOUNT_BELOW_MINIMUM",
                "SHOP_NOT_FOUND",
                "METHOD_SELECTION_DISABLED",
                "METHOD_NOT_AVAILABLE",
                "KYC_REQUIRED",
                "KYC_PROCESSING",
                "KYC_FAILED",
                "PAYMENT_ROUTE_UNAVAILABLE",
            ),
            403: ("SHOP_DISABLED",),
            422: ("VALIDATION_ERROR", "PAYMENT_UNAVAILABLE", "SHOP_MARKUP_NOT_SET", "PAYER_DATA_REQUIRED"),
            502: ("PROVIDER_ERROR",),
            503: ("PAYMENT_ROUTE_UNAVAILABLE", "PROVIDER_NOT_CONFIGURED"),
        },
        right=Right.PAYMENTS,
    ),
    Operation(
        "list_payments",
        "get",
        "/api/v1/payments",
        "Payments",
        "List payments, newest first",
        page,
        answer=PaymentsView,
        also_as="text/csv",
        query=(
            *PAGES,
            Query("shop_id", "Only of this shop.", UUID),
            Query("status", "Only in this status; upper or lower case.", {"enum": [*PaymentStatus]}),
            *(Query(name, "Exact match.") for name in ("payment_method", "subscription_id")),
            *FOUND_BY,
            FORMAT,
        ),
        refusals={400: ("SHOP_NOT_FOUND",)},
    ),
    Operation(
        "get_payment",
        "get",
        "/api/v1/payments/{payment_id}",
        "Payments",
        "Get a payment",
        one,
        answer=PaymentView,
        refusals=_NO_PAYMENT,
    ),
    Operation(
        "get_sbp_link",
        "get",
        "/api/v1/payments/{payment_id}/sbp-link",
        "Payments",
        "Get the bank's own link of a payment",
        sbp_link,
        answer=SbpLink,
        refusals={403: ("DIRECT_LINK_NOT_ALLOWED",), **_NO_PAYMENT, 503: ("PROVIDER_UNAVAILABLE",)},
    ),
    Operation(
        "list_payment_transfers",
        "get",
        "/api/v1/payments/{payment_id}/transfers",
        "Payments",
        "List the transfers received for a payment and their outcome",
        transfers,
        answer=TransfersView,
        refusals=_NO_PAYMENT,
        query=PAGES,
    ),
)
