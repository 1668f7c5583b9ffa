"""HTTP API of receipts, without business rules (docs/receipts.md "State")."""

from typing import Annotated

import msgspec
from litestar.types import ASGIApp
from msgspec import UNSET, Meta, UnsetType

from ...core.domain import shared_fields as shared
from ...core.domain.accounts.accounts import Caller, Mode
from ...core.domain.accounts.key_terms import Right
from ...core.domain.days import iso, iso_or_none
from ...core.domain.receipts.receipts import FiscalReceipt, ReceiptKind, ReceiptStatus
from ...core.domain.receipts.second import SecondReceiptOrder
from ...core.usecases.receipts.receipts import ReceiptFilter, get_receipt, list_receipts, retry_receipt
from ...core.usecases.receipts.second import create_second_receipt
from ...ports.bundle import Ports
from .edge.answers import answer, made
from .edge.bodies import page_of
from .edge.operation import MADE, PAGES, UUID, ApiRequest, Operation, Query, Refusals
from .views import Pagination, pagination


class FiscalView(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers by which a written receipt is found, as far as the bank or the cash register tells them."""

    storage_number: Annotated[str | None, Meta(description="Number of the fiscal storage (FN)")]
    document_number: Annotated[str | None, Meta(description="Number of the fiscal document (FD)")]
    fiscal_sign: Annotated[str | None, Meta(description="Fiscal sign of the document (FP)")]
    register_number: Annotated[str | None, Meta(description="Registration number of the cash register")]
    url: Annotated[str | None, Meta(description="Page of the receipt")]
    registered_at: Annotated[str | None, Meta(description="Time on the receipt")]


class ReceiptView(msgspec.Struct, frozen=True, kw_only=True):
    """The receipt object (docs/receipts.md "State")."""

    id: Annotated[str, shared.ID]
    payment_id: Annotated[str, shared.PAYMENT_ID]
    refund_id: Annotated[str | None, Meta(description="Id of the refund; null for other receipts")]
    kind: Annotated[str, Meta(description="What the receipt is for"), shared.among(ReceiptKind)]
    status: Annotated[str, shared.STATUS, shared.among(ReceiptStatus)]
    failure_reason: Annotated[str | None, shared.FAILURE_REASON]
    amount_rub: Annotated[str, shared.AMOUNT_RUB]
    attempt: Annotated[int, Meta(description="1, and one more after each retry")]
    due_at: Annotated[
        str | None, Meta(description="End of the shift by which it must be written; null: its bank tells no states")
    ]
    fiscal: Annotated[FiscalView | None, Meta(description="Fiscal numbers; null until it is written")]
    shop_id: Annotated[str, shared.SHOP_ID]
    created_at: Annotated[str, shared.CREATED_AT]
    updated_at: Annotated[str, Meta(description="Time of the last change of status")]
    sandbox: Annotated[bool | UnsetType, shared.SANDBOX] = UNSET


class ReceiptsView(msgspec.Struct, frozen=True, kw_only=True):
    data: Annotated[list[ReceiptView], shared.DATA]
    pagination: Annotated[Pagination, shared.PAGINATION]


def receipt_view(receipt: FiscalReceipt) -> ReceiptView:
    """Return the receipt object of the API."""
    fiscal = None
    if receipt.status is ReceiptStatus.SUCCEEDED:
        fiscal = FiscalView(
            storage_number=receipt.storage_number,
            document_number=receipt.document_number,
            fiscal_sign=receipt.fiscal_sign,
            register_number=receipt.register_number,
            url=receipt.url,
            registered_at=iso_or_none(receipt.registered_at),
        )
    return ReceiptView(
        id=receipt.id,
        payment_id=receipt.payment_id,
        refund_id=receipt.refund_id,
        kind=receipt.kind.value,
        status=receipt.status.value,
        failure_reason=receipt.failure_reason,
        amount_rub=str(receipt.amount),
        attempt=receipt.attempt,
        due_at=iso_or_none(receipt.due_at),
        fiscal=fiscal,
        shop_id=receipt.shop_id,
        created_at=iso(receipt.created_at),
        updated_at=iso(receipt.changed_at),
        sandbox=True if receipt.mode is Mode.TEST else UNSET,
    )


async def create(ports: Ports, caller: Caller, request: ApiRequest[SecondReceiptOrder]) -> ASGIApp:
    receipt = await create_second_receipt(ports, caller, request.key, request.read)
    return made(receipt_view(receipt.resource), replayed=receipt.replayed)


async def page(ports: Ports, caller: Caller, request: ApiRequest[None]) -> ASGIApp:
    found = await list_receipts(ports, caller, request.asked(ReceiptFilter), *page_of(request.query))
    return answer(ReceiptsView(data=[receipt_view(each) for each in found.records], pagination=pagination(found)))


async def one(ports: Ports, caller: Caller, request: ApiRequest[None]) -> ASGIApp:
    return answer(receipt_view(await get_receipt(ports, caller, request.id)))


async def retry(ports: Ports, caller: Caller, request: ApiRequest[None]) -> ASGIApp:
    return answer(receipt_view(await retry_receipt(ports, caller, request.id)))


_NO_RECEIPT: Refusals = {404: ("RECEIPT_NOT_FOUND",)}

RECEIPTS = (
    Operation(
        "create_receipt",
        "post",
        "/api/v1/receipts",
        "Receipts",
        "Write the second receipt of a prepaid payment, at delivery",
        create,
        body=SecondReceiptOrder,
        answer=ReceiptView,
        creates=True,
        refusals={404: ("PAYMENT_NOT_FOUND",), 409: ("INVALID_STATUS", "INVALID_STATE")},
        right=Right.PAYMENTS,
    ),
    Operation(
        "list_receipts",
        "get",
        "/api/v1/receipts",
        "Receipts",
        "List receipts, newest first",
        page,
        answer=ReceiptsView,
        query=(
            *PAGES,
            Query("payment_id", "Only of this payment and its refunds."),
            Query("status", "Only in this status; upper or lower case.", {"enum": [*ReceiptStatus]}),
            Query("shop_id", "Only of this shop.", UUID),
            *MADE,
        ),
        refusals={400: ("SHOP_NOT_FOUND",)},
    ),
    Operation(
        "get_receipt",
        "get",
        "/api/v1/receipts/{receipt_id}",
        "Receipts",
        "Get a receipt",
        one,
        answer=ReceiptView,
        refusals=_NO_RECEIPT,
    ),
    Operation(
        "retry_receipt",
        "post",
        "/api/v1/receipts/{receipt_id}/retry",
        "Receipts",
        "Try a failed receipt again, or ask for a pending one now",
        retry,
        answer=ReceiptView,
        refusals={**_NO_RECEIPT, 409: ("INVALID_STATE",)},
        right=Right.PAYMENTS,
    ),
)
