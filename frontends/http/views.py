"""Lists of the API: pages of payments, and CSV files."""

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Annotated, Any

import msgspec
from litestar.response.streaming import ASGIStreamingResponse
from litestar.types import ASGIApp
from msgspec import Meta

from ...core.domain import shared_fields as shared
from ...core.domain.errors import shape_error
from ...core.domain.payments.payments import Payment
from ...core.usecases.common.paging import Page, Position
from ...core.usecases.exports.files import csv_text
from ...core.usecases.exports.rows import FileRow, Rows, guarded_rows
from ...ports.bundle import Ports
from .edge.operation import FORMATS
from .records import PaymentView, payment_view


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
) -> AsyncIterator[Iterable[FileRow]]:
    """Yield the rows of a file in batches, with guarded texts."""
    async for rows, _ in batches:
        yield guarded_rows(rows)


class PaymentsView(msgspec.Struct, frozen=True, kw_only=True):
    data: Annotated[list[PaymentView], shared.DATA]
    pagination: Annotated[Pagination, shared.PAGINATION]


def payments_view(ports: Ports, page: Page[Payment]) -> PaymentsView:
    """Return a page of payments."""
    return PaymentsView(data=[payment_view(ports, payment) for payment in page.records], pagination=pagination(page))
