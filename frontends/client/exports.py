"""Files of payments, refunds and movements (docs/concepts.md "Exports")."""

from collections.abc import Mapping
from datetime import datetime
from uuid import UUID

import msgspec

from .model import OpenEnum, Page, Record
from .operations import Face, Group, operation, walk
from .requests import Request, at, create, get


class ExportKind(OpenEnum):
    """List that a file contains."""

    PAYMENTS = "payments"
    REFUNDS = "refunds"
    STATEMENT = "statement"


class ExportFormat(OpenEnum):
    """Format of a file."""

    CSV = "csv"
    XLSX = "xlsx"


class ExportStatus(OpenEnum):
    """Status of an export."""

    PENDING = "pending"
    READY = "ready"
    FAILED = "failed"


class ExportFailure(OpenEnum):
    """Why an export failed."""

    RIGHTS = "rights"
    TOO_MANY = "too_many"
    FILTER = "filter"
    CANCELLED = "cancelled"
    ERROR = "error"


class Export(Record, frozen=True, kw_only=True):
    """A file that the service writes in the background."""

    id: str
    kind: ExportKind
    format: ExportFormat
    filter: dict[str, str]
    status: ExportStatus
    failure: ExportFailure | None
    rows: int
    rows_expected: int | None
    size: int | None
    download_url: str | None
    """Address that needs no key, for 15 minutes."""
    created_at: datetime
    expires_at: datetime | None


class DeletedExport(Record, frozen=True, kw_only=True):
    """A deleted export."""

    id: str
    deleted: bool


class Exports(Group[Face]):
    """`client.exports`."""

    @operation
    def create(
        self,
        *,
        kind: ExportKind | str,
        format: ExportFormat | str,  # noqa: A002 - the API's name
        filter: Mapping[str, str] | None = None,  # noqa: A002 - the API's name
        idempotency_key: str | UUID | None = None,
    ) -> Request[Export]:
        """Order a file of everything that the filter finds now. Ask for it with `get` until it is ready."""
        body = {"kind": kind, "format": format, "filter": None if filter is None else dict(filter)}
        return create("/exports", Export, body, idempotency_key)

    @operation
    def list(self, *, page: int | None = None, per_page: int | None = None) -> Request[Page[Export]]:
        """List exports, newest first."""
        return get("/exports", Page[Export], page=page, per_page=per_page)

    iterate = walk(list)

    @operation
    def get(self, export_id: str) -> Request[Export]:
        """Return an export, with a fresh link of its file."""
        return get(at("exports", export_id), Export)

    @operation
    def file(self, export_id: str) -> Request[bytes]:
        """Return the file of an export that is ready."""
        return Request(method="GET", path=at("exports", export_id, "file"), read=bytes, repeatable=True)

    @operation
    def delete(self, export_id: str) -> Request[DeletedExport]:
        """Delete an export and its file. One that is being written is stopped."""
        return msgspec.structs.replace(get(at("exports", export_id), DeletedExport), method="DELETE")
