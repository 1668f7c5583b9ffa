"""Fields of a payment as merchants see it (docs/payments.md "What you get")."""

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Annotated, Any

import msgspec
from litestar.response.streaming import ASGIStreamingResponse
from litestar.types import ASGIApp
from msgspec import UNSET, Meta, UnsetType

from ...core.domain import shared_fields as shared
from ...core.domain.accounts.accounts import TEST
from ...core.domain.days import iso, iso_or_none
from ...core.domain.errors import shape_error
from ...core.domain.payments.payments import FailureReason, Payment, PaymentStatus, shown_metadata, shows_payer_name
from ...core.usecases.common.encrypted import open_payer_name
from ...core.usecases.common.paging import Page, Position
from ...core.usecases.exports.files import csv_text
from ...core.usecases.exports.rows import PaymentRow, RefundRow, Rows, guarded_rows
from ...ports.bundle import Ports
from .edge.operation import FORMATS


class PaymentView(msgspec.Struct, kw_only=True):
    """A payment (docs/payments.md "What you get")."""

    id: Annotated[str, shared.ID]
    status: Annotated[str, shared.STATUS, shared.among(PaymentStatus)]
    amount_rub: Annotated[str, shared.AMOUNT_RUB]
    actual_amount_rub: Annotated[str | None, shared.ACTUAL_AMOUNT_RUB]
    amount_usdt: Annotated[str | None, shared.AMOUNT_USDT]
    external_id: Annotated[str | None, shared.EXTERNAL_ID]
    payment_method: Annotated[str, shared.PAYMENT_METHOD]
    method_id: Annotated[str | UnsetType, shared.METHOD_ID] = UNSET
    payment_url: Annotated[str, Meta(description="Page where the payer pays; pass it on unchanged")]
    expires_at: Annotated[str, shared.EXPIRES_AT]
    refund_pending: Annotated[bool, Meta(description="Whether a refund is under way; the status does not change")]
    metadata: Annotated[dict[str, Any] | None, shared.METADATA]
    payer_name: Annotated[str | UnsetType, shared.PAYER_NAME] = UNSET
    shop_id: Annotated[str, shared.SHOP_ID]
    subscription_id: Annotated[str | UnsetType, shared.SUBSCRIPTION_ID] = UNSET
    period_ref: Annotated[str | UnsetType, shared.PERIOD_REF] = UNSET
    failure_reason: Annotated[Annotated[str, shared.among(FailureReason)] | UnsetType, shared.FAILURE_REASON] = UNSET
    created_at: Annotated[str, shared.CREATED_AT]
    paid_at: Annotated[str | None, Meta(description="Time of payment, by the bank's clock")]
    settled_at: Annotated[str | None, Meta(description="Time of settlement")]
    sandbox: Annotated[bool | UnsetType, shared.SANDBOX] = UNSET


class Pagination(msgspec.Struct, frozen=True, kw_only=True):
    page: Annotated[int, Meta(description="Page number, from 1")]
    per_page: Annotated[int, Meta(description="Elements per page")]
    total: Annotated[int, Meta(description="Total over all pages")]
    total_pages: Annotated[int, Meta(description="Number of pages")]


def pagination(page: Page[Any]) -> Pagination:
    """Return the page number and the number of pages (docs/concepts.md "Lists")."""
    return Pagination(page=page.number, per_page=page.size, total=page.total, total_pages=-(-page.total // page.size))


def wants_csv(query: Mapping[str, str]) -> bool:
    """Return whether `format` asks for a file instead of pages. Raises: Refusal VALIDATION_ERROR."""
    wanted = query.get("format", "json")
    if wanted not in FORMATS:
        raise shape_error("format", f"must be one of: {', '.join(FORMATS)}")
    return wanted == "csv"


def csv_answer(name: str, kind: type[Any], batches: AsyncIterator[Iterable[Any]]) -> ASGIApp:
    """Stream a CSV file of views of one kind, in batches, with their fields as columns."""
    headers = {"Content-Disposition": f'attachment; filename="{name}.csv"'}
    return ASGIStreamingResponse(iterator=_csv(kind, batches), media_type="text/csv", headers=headers)


async def _csv(kind: type[Any], batches: AsyncIterator[Iterable[Any]]) -> AsyncIterator[str]:
    heading = csv_text([kind.__struct_fields__])
    async for batch in batches:
        yield heading + csv_text(msgspec.structs.astuple(view) for view in batch)
        heading = ""
    if heading:
        yield heading


async def file_rows(
    batches: AsyncIterator[tuple[Rows, Position]],
) -> AsyncIterator[Iterable[PaymentRow | RefundRow]]:
    """Yield the rows of a file in batches, with guarded texts."""
    async for rows, _ in batches:
        yield guarded_rows(rows)


class PaymentsView(msgspec.Struct, frozen=True, kw_only=True):
    data: Annotated[list[PaymentView], shared.DATA]
    pagination: Annotated[Pagination, shared.PAGINATION]


def payment_view(ports: Ports, payment: Payment) -> PaymentView:
    """Return the payment object of the API."""
    view = PaymentView(
        id=payment.id,
        status=payment.status.value,
        amount_rub=str(payment.amount),
        actual_amount_rub=None if payment.actual_amount is None else str(payment.actual_amount),
        amount_usdt=None if payment.amount_usdt is None else str(payment.amount_usdt),
        external_id=payment.external_id,
        payment_method=payment.payment_method,
        payment_url=_page_of(ports, payment),
        expires_at=iso(payment.expires_at),
        refund_pending=payment.refund_pending,
        metadata=shown_metadata(payment),
        shop_id=payment.shop_id,
        created_at=iso(payment.created_at),
        paid_at=iso_or_none(payment.paid_at),
        settled_at=iso_or_none(payment.settled_at),
    )
    # Fields that most payments lack are set afterwards: above 15 keyword arguments Python builds a dictionary of them.
    if payment.method_id:
        view.method_id = payment.method_id
    if shows_payer_name(payment) and (payer_name := open_payer_name(ports.vault, payment)):
        view.payer_name = payer_name
    if payment.subscription_id:
        view.subscription_id = payment.subscription_id
    if payment.period_ref:
        view.period_ref = payment.period_ref
    if payment.failure_reason is not None:
        view.failure_reason = payment.failure_reason.value
    if payment.mode is TEST:
        view.sandbox = True
    return view


def _page_of(ports: Ports, payment: Payment) -> str:
    """Return the payer's page of a payment. All payments of a subscription share one page."""
    if payment.subscription_id is not None:
        return ports.urls.subscription_page(payment.subscription_id)
    return ports.urls.payment_page(payment.id)


def payments_view(ports: Ports, page: Page[Payment]) -> PaymentsView:
    """Return a page of payments."""
    return PaymentsView(data=[payment_view(ports, payment) for payment in page.records], pagination=pagination(page))
