"""HTTP API of exports, without business rules (docs/concepts.md "Exports")."""

from collections.abc import AsyncIterator
from typing import Annotated

import msgspec
from litestar.response.streaming import ASGIStreamingResponse
from litestar.types import ASGIApp
from msgspec import Meta

from ...core.domain import shared_fields as shared
from ...core.domain.accounts.accounts import Caller
from ...core.domain.accounts.key_terms import Right
from ...core.domain.days import iso
from ...core.domain.exports.exports import Export, ExportFailure, ExportFormat, ExportKind, ExportStatus
from ...core.domain.exports.orders import ExportOrder
from ...core.usecases.exports.exports import (
    delete_ordered,
    download_link,
    get_export,
    list_ordered,
    open_link,
    open_ordered,
    order_export,
)
from ...ports.bundle import Ports
from .edge.answers import answer, made
from .edge.bodies import page_of
from .edge.operation import PAGES, ApiRequest, Operation, Refusals
from .views import Pagination, pagination

MEDIA_TYPES = {
    ExportFormat.CSV: "text/csv; charset=utf-8",
    ExportFormat.XLSX: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}
_SHOWN = {ExportStatus.COLLECTING: "pending", ExportStatus.PACKING: "pending"}
"""Statuses whose difference is no matter of programs."""


class ExportView(msgspec.Struct, frozen=True, kw_only=True):
    """An export (docs/concepts.md "Exports")."""

    id: Annotated[str, Meta(description="`exp_` and a UUID")]
    kind: Annotated[str, Meta(description="List that the file contains"), shared.among(ExportKind)]
    format: Annotated[str, Meta(description="Format of the file"), shared.among(ExportFormat)]
    filter: Annotated[dict[str, str], Meta(description="Filters of the list by name; `created_to` ends with the order")]
    status: Annotated[
        str,
        Meta(description="`pending` until the file is `ready`, or has `failed`"),
        shared.among(("pending", "ready", "failed")),
    ]
    failure: Annotated[str | None, Meta(description="Why it failed; else null"), shared.among((*ExportFailure, None))]
    rows: Annotated[int, Meta(description="Rows written so far")]
    rows_expected: Annotated[int | None, Meta(description="Rows found at the order; null if no index counts them")]
    size: Annotated[int | None, Meta(description="Bytes of the file; null until it is ready")]
    download_url: Annotated[
        str | None, Meta(description="Address that needs no key, for 15 minutes; null until the file is ready")
    ]
    created_at: Annotated[str, shared.CREATED_AT]
    expires_at: Annotated[
        str | None, Meta(description="When the file is deleted; null until it is ready or has failed")
    ]


class ExportsView(msgspec.Struct, frozen=True, kw_only=True):
    data: Annotated[list[ExportView], shared.DATA]
    pagination: Annotated[Pagination, shared.PAGINATION]


class DeletedExportView(msgspec.Struct, frozen=True, kw_only=True):
    """A deleted export."""

    id: Annotated[str, shared.ID]
    deleted: Annotated[bool, Meta(description="Always true")]


def export_view(ports: Ports, export: Export) -> ExportView:
    """Return an export as its merchant sees it."""
    is_ready = export.status is ExportStatus.READY
    return ExportView(
        id=export.id,
        kind=export.kind.value,
        format=export.format.value,
        filter=export.filter,
        status=_SHOWN.get(export.status, export.status.value),
        failure=None if export.failure is None else export.failure.value,
        rows=export.rows,
        rows_expected=export.total,
        size=export.size if is_ready else None,
        download_url=download_link(ports, export) if is_ready else None,
        created_at=iso(export.created_at),
        expires_at=None if export.is_open else iso(export.expires_at),
    )


async def create(ports: Ports, caller: Caller, request: ApiRequest[ExportOrder]) -> ASGIApp:
    export = await order_export(ports, caller, request.key, request.read)
    return made(export_view(ports, export.resource), replayed=export.replayed)


async def page(ports: Ports, caller: Caller, request: ApiRequest[None]) -> ASGIApp:
    found = await list_ordered(ports, caller, *page_of(request.query))
    return answer(ExportsView(data=[export_view(ports, each) for each in found.records], pagination=pagination(found)))


async def delete(ports: Ports, caller: Caller, request: ApiRequest[None]) -> ASGIApp:
    await delete_ordered(ports, caller, request.id)
    return answer(DeletedExportView(id=request.id, deleted=True))


async def one(ports: Ports, caller: Caller, request: ApiRequest[None]) -> ASGIApp:
    return answer(export_view(ports, await get_export(ports, caller, request.id)))


async def file(ports: Ports, caller: Caller, request: ApiRequest[None]) -> ASGIApp:
    return _file(*await open_ordered(ports, caller, request.id))


async def linked(ports: Ports, _: None, request: ApiRequest[None]) -> ASGIApp:
    return _file(*await open_link(ports, request.id))


def _file(export: Export, parts: AsyncIterator[bytes]) -> ASGIApp:
    headers = {
        "Content-Disposition": f'attachment; filename="{export.file_name}"',
        "Content-Length": str(export.size),
    }
    # The framework adds the charset of texts by itself.
    media_type = MEDIA_TYPES[export.format].partition(";")[0]
    return ASGIStreamingResponse(iterator=parts, media_type=media_type, headers=headers)


_NO_EXPORT: Refusals = {404: ("EXPORT_NOT_FOUND",)}

EXPORTS = (
    Operation(
        "create_export",
        "post",
        "/api/v1/exports",
        "Exports",
        "Order a file of payments, refunds or movements, written in the background",
        create,
        body=ExportOrder,
        answer=ExportView,
        creates=True,
        refusals={
            400: ("SHOP_NOT_FOUND",),
            404: ("NOT_FOUND", "EXPORT_NOT_FOUND"),
            409: ("EXPORTS_BUSY",),
            422: ("EXPORT_TOO_LARGE",),
            503: ("PROVIDER_UNAVAILABLE",),
        },
        right=Right.READ,
    ),
    Operation(
        "list_exports",
        "get",
        "/api/v1/exports",
        "Exports",
        "List exports, newest first",
        page,
        answer=ExportsView,
        query=PAGES,
    ),
    Operation(
        "get_export",
        "get",
        "/api/v1/exports/{export_id}",
        "Exports",
        "Get an export, with the link of its file",
        one,
        answer=ExportView,
        refusals=_NO_EXPORT,
    ),
    Operation(
        "delete_export",
        "delete",
        "/api/v1/exports/{export_id}",
        "Exports",
        "Delete an export and its file, or stop one that is being written",
        delete,
        answer=DeletedExportView,
        refusals=_NO_EXPORT,
        right=Right.READ,
    ),
    Operation(
        "download_export",
        "get",
        "/api/v1/exports/{export_id}/file",
        "Exports",
        "Download the file of an export",
        file,
        also_as="application/octet-stream",
        refusals=_NO_EXPORT,
    ),
    Operation(
        "download_export_by_link",
        "get",
        "/api/v1/export-files/{link_id}",
        "Exports",
        "Download the file of an export by its link, without a key",
        linked,
        also_as="application/octet-stream",
        refusals=_NO_EXPORT,
        keyed=False,
    ),
)
