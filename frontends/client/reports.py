"""Registers of days, months and periods (docs/reports.md "What you get")."""

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from uuid import UUID

from .model import OpenEnum, Page, Record
from .operations import Face, Group, operation, walk
from .requests import Request, at, create, get


class ReportKind(OpenEnum):
    """Period of a report."""

    DAY = "day"
    MONTH = "month"
    PERIOD = "period"


class ReportFormat(OpenEnum):
    """Format of a register."""

    CSV = "csv"
    ACCOUNTING = "accounting"
    XLSX = "xlsx"


class ReportDocument(OpenEnum):
    """Document of a report."""

    ACT = "act"
    AGENT_REPORT = "agent_report"


class ReportStatus(OpenEnum):
    """Status of a report."""

    PENDING = "pending"
    READY = "ready"


class BalanceParts(Record, frozen=True, kw_only=True):
    """Parts of a balance."""

    available_usdt: Decimal
    reserved_usdt: Decimal
    pending_rub: Decimal


class ReportTotal(Record, frozen=True, kw_only=True):
    """Sums of all rows of one kind."""

    kind: str
    count: int
    amount_rub: Decimal
    fee_usdt: Decimal
    fee_rub: Decimal
    pending_rub: Decimal
    available_usdt: Decimal
    reserved_usdt: Decimal


class Report(Record, frozen=True, kw_only=True):
    """A register, which never changes once it is ready."""

    id: str
    kind: ReportKind
    first_day: str
    last_day: str
    status: ReportStatus
    rows: int
    first_movement: int | None
    last_movement: int | None
    opening: BalanceParts
    closing: BalanceParts
    totals: list[ReportTotal]
    sha256: str | None
    """Digest of the CSV file."""
    size: int | None
    created_at: datetime
    ready_at: datetime | None
    expires_at: datetime | None


class PastBalance(Record, frozen=True, kw_only=True):
    """The balance as of a moment."""

    available_usdt: Decimal
    reserved_usdt: Decimal
    pending_rub: Decimal
    movement_number: int
    movement_id: str | None


class ReportProof(Record, frozen=True, kw_only=True):
    """Proof of a day's register; hashes, key and signature are in hex."""

    account: str
    mode: str
    day: str
    number: int
    before: str
    link: str
    salt: str
    index: int
    path: list[str]
    head: str
    signature: str
    key: str


class ReportHead(Record, frozen=True, kw_only=True):
    """Published head of a day."""

    day: str
    head: str
    signature: str
    key: str


class Reports(Group[Face]):
    """`client.reports`."""

    @operation
    def create(
        self, *, first_day: date | str, last_day: date | str, idempotency_key: str | UUID | None = None
    ) -> Request[Report]:
        """Order a register of these Moscow days. Ask for it with `get` until it is ready."""
        body = {"first_day": str(first_day), "last_day": str(last_day)}
        return create("/reports", Report, body, idempotency_key)

    @operation
    def list(
        self, *, kind: ReportKind | str | None = None, page: int | None = None, per_page: int | None = None
    ) -> Request[Page[Report]]:
        """List reports, newest first."""
        return get("/reports", Page[Report], kind=kind, page=page, per_page=per_page)

    iterate = walk(list)

    @operation
    def get(self, report_id: str) -> Request[Report]:
        """Return a report with its totals and digest."""
        return get(at("reports", report_id), Report)

    @operation
    def file(
        self,
        report_id: str,
        *,
        format: ReportFormat | str | None = None,  # noqa: A002 - the API's name
        columns: Sequence[str] | None = None,
        shop_id: str | None = None,
    ) -> Request[bytes]:
        """Return the register of a report that is ready."""
        names = None if columns is None else ",".join(columns)
        asked = {"format": None if format is None else str(format), "columns": names, "shop_id": shop_id}
        return Request(
            method="GET",
            path=at("reports", report_id, "file"),
            read=bytes,
            repeatable=True,
            query={name: value for name, value in asked.items() if value is not None},
        )

    @operation
    def document(self, report_id: str, *, kind: ReportDocument | str | None = None) -> Request[bytes]:
        """Return the act or the agent's report of a report that is ready, as PDF in Russian."""
        query = {} if kind is None else {"kind": str(kind)}
        return Request(
            method="GET", path=at("reports", report_id, "document"), read=bytes, repeatable=True, query=query
        )

    @operation
    def proof(self, report_id: str) -> Request[ReportProof]:
        """Return the proof of a day's register."""
        return get(at("reports", report_id, "proof"), ReportProof)

    @operation
    def heads(self, *, page: int | None = None, per_page: int | None = None) -> Request[Page[ReportHead]]:
        """List the published heads of days, newest first."""
        return get("/report-heads", Page[ReportHead], page=page, per_page=per_page)

    @operation
    def balance_at(self, *, at: datetime | str | None = None) -> Request[PastBalance]:
        """Return the balance as of a moment; the present one if `at` is absent."""
        return get("/balance/at", PastBalance, at=at)
