"""HTTP API of reports, without business rules (docs/reports.md "What you get")."""

from typing import Annotated

import msgspec
from litestar.response.streaming import ASGIStreamingResponse
from litestar.types import ASGIApp
from msgspec import Meta

from ...core.domain import shared_fields as shared
from ...core.domain.accounts.accounts import Caller
from ...core.domain.accounts.key_terms import Right
from ...core.domain.days import iso, iso_or_none
from ...core.domain.errors import read_choice
from ...core.domain.money import Rub, Usdt
from ...core.domain.reports.reports import Report, ReportFormat, ReportKind, ReportOrder, Sums
from ...core.usecases.reports.documents import DocumentKind, report_document
from ...core.usecases.reports.proofs import list_heads, prove_report
from ...core.usecases.reports.reports import (
    ReportFilter,
    balance_at,
    get_report,
    list_reports,
    open_report,
    order_report,
)
from ...ports.bundle import Ports
from .edge.answers import answer, made
from .edge.bodies import page_of
from .edge.operation import MOMENT, PAGES, UUID, ApiRequest, Operation, Query, Refusals
from .views import Pagination, pagination

MEDIA_TYPES = {
    ReportFormat.CSV: "text/csv",
    ReportFormat.ACCOUNTING: "text/csv",
    ReportFormat.XLSX: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}
ENDINGS = {ReportFormat.CSV: ".csv", ReportFormat.ACCOUNTING: "_accounting.csv", ReportFormat.XLSX: ".xlsx"}


class BalancePartsView(msgspec.Struct, frozen=True, kw_only=True):
    """Parts of a balance."""

    available_usdt: Annotated[str, Meta(description="USDT available for payout")]
    reserved_usdt: Annotated[str, Meta(description="USDT reserved for payouts under way")]
    pending_rub: Annotated[str, Meta(description="Accepted RUB that wait for settlement")]


class ReportTotalView(msgspec.Struct, frozen=True, kw_only=True):
    """Sums of all rows of one kind."""

    kind: Annotated[str, Meta(description="Kind of movement")]
    count: Annotated[int, Meta(description="Number of rows")]
    amount_rub: Annotated[str, Meta(description="Amounts of the operations")]
    fee_usdt: Annotated[str, Meta(description="Fee of the service")]
    fee_rub: Annotated[str, Meta(description="The fee in RUB: each amount less its credit at the market rate")]
    pending_rub: Annotated[str, Meta(description="Change of `pending_rub`")]
    available_usdt: Annotated[str, Meta(description="Change of `available_usdt`")]
    reserved_usdt: Annotated[str, Meta(description="Change of `reserved_usdt`")]


class ReportView(msgspec.Struct, frozen=True, kw_only=True):
    """A report (docs/reports.md "What you get")."""

    id: Annotated[str, Meta(description="`rep_` and a UUID")]
    kind: Annotated[str, Meta(description="`day`, `month`, or an ordered `period`"), shared.among(ReportKind)]
    first_day: Annotated[str, Meta(description="First Moscow day")]
    last_day: Annotated[str, Meta(description="Last Moscow day, inclusive")]
    status: Annotated[str, Meta(description="`pending` until it is written"), shared.among(("pending", "ready"))]
    rows: Annotated[int, Meta(description="Number of its rows")]
    first_movement: Annotated[int | None, Meta(description="Number of its first movement; null without rows")]
    last_movement: Annotated[int | None, Meta(description="Number of its last movement; null without rows")]
    opening: Annotated[BalancePartsView, Meta(description="Balance before it")]
    closing: Annotated[BalancePartsView, Meta(description="Balance after it")]
    totals: Annotated[list[ReportTotalView], Meta(description="Sums by kind; of the rows written so far")]
    sha256: Annotated[str | None, Meta(description="Digest of the CSV file; null until it is ready")]
    size: Annotated[int | None, Meta(description="Bytes of the CSV file; null until it is ready")]
    created_at: Annotated[str, shared.CREATED_AT]
    ready_at: Annotated[str | None, Meta(description="When it was written; null until then")]
    expires_at: Annotated[str | None, Meta(description="When an ordered period is deleted; null: never")]


class ReportsView(msgspec.Struct, frozen=True, kw_only=True):
    data: Annotated[list[ReportView], shared.DATA]
    pagination: Annotated[Pagination, shared.PAGINATION]


class ReportProofView(msgspec.Struct, frozen=True, kw_only=True):
    """Proof of a day's register (docs/reports.md "Proof"). Hashes, keys and signatures are in hex."""

    account: Annotated[str, Meta(description="Id of the account")]
    mode: Annotated[str, Meta(description="`live` or `test`")]
    day: Annotated[str, Meta(description="The Moscow day")]
    number: Annotated[int, Meta(description="Number of the last movement up to the end of the day; 0: none")]
    before: Annotated[str, Meta(description="Link of the chain before the first row")]
    link: Annotated[str, Meta(description="Link of the chain after the last row")]
    salt: Annotated[str, Meta(description="Salt of the leaf; nobody else gets it")]
    index: Annotated[int, Meta(description="Position of the leaf in the tree")]
    path: Annotated[list[str], Meta(description="Siblings from the leaf up to the root")]
    head: Annotated[str, Meta(description="The signed head of the day")]
    signature: Annotated[str, Meta(description="Ed25519 signature of the head")]
    key: Annotated[str, Meta(description="Public key of the signature")]


class ReportHeadView(msgspec.Struct, frozen=True, kw_only=True):
    """Published head of a day: the same for everybody."""

    day: Annotated[str, Meta(description="The Moscow day")]
    head: Annotated[str, Meta(description="Lines: origin, number of leaves, root, day, SHA-256 of the head before")]
    signature: Annotated[str, Meta(description="Ed25519 signature of the head")]
    key: Annotated[str, Meta(description="Public key of the signature")]


class ReportHeadsView(msgspec.Struct, frozen=True, kw_only=True):
    data: Annotated[list[ReportHeadView], shared.DATA]
    pagination: Annotated[Pagination, shared.PAGINATION]


class PastBalanceView(msgspec.Struct, frozen=True, kw_only=True):
    """Balance as of a moment (docs/reports.md "Balance as of a moment")."""

    available_usdt: Annotated[str, Meta(description="USDT available for payout")]
    reserved_usdt: Annotated[str, Meta(description="USDT reserved for payouts under way")]
    pending_rub: Annotated[str, Meta(description="Accepted RUB that wait for settlement")]
    movement_number: Annotated[int, Meta(description="Number of the last movement before that moment; 0: none")]
    movement_id: Annotated[str | None, Meta(description="Id of that movement's journal entry")]


def _balance(sums: Sums) -> BalancePartsView:
    return BalancePartsView(
        available_usdt=str(Usdt(sums.available)),
        reserved_usdt=str(Usdt(sums.reserved)),
        pending_rub=str(Rub(sums.pending)),
    )


def total_view(kind: str, sums: Sums) -> ReportTotalView:
    """Return the sums of a kind."""
    return ReportTotalView(
        kind=kind,
        count=sums.count,
        amount_rub=str(Rub(sums.rub)),
        fee_usdt=str(Usdt(sums.fee_usdt)),
        fee_rub=str(Rub(sums.fee_rub)),
        pending_rub=str(Rub(sums.pending)),
        available_usdt=str(Usdt(sums.available)),
        reserved_usdt=str(Usdt(sums.reserved)),
    )


def report_view(report: Report) -> ReportView:
    """Return a report as its merchant sees it."""
    is_ready = report.ready_at is not None
    return ReportView(
        id=report.id,
        kind=report.kind.value,
        first_day=report.first_day,
        last_day=report.last_day,
        status="ready" if is_ready else "pending",
        rows=report.rows,
        first_movement=report.low if report.rows else None,
        last_movement=report.high - 1 if report.rows else None,
        opening=_balance(report.opening),
        closing=_balance(report.closing),
        totals=[total_view(*each) for each in report.totals.items()],
        sha256=report.digest,
        size=report.size if is_ready else None,
        created_at=iso(report.created_at),
        ready_at=iso_or_none(report.ready_at),
        expires_at=iso_or_none(report.expires_at),
    )


async def create(ports: Ports, caller: Caller, request: ApiRequest[ReportOrder]) -> ASGIApp:
    found = await order_report(ports, caller, request.key, request.read)
    return made(report_view(found.resource), replayed=found.replayed)


async def page(ports: Ports, caller: Caller, request: ApiRequest[None]) -> ASGIApp:
    found = await list_reports(ports, caller, request.asked(ReportFilter), *page_of(request.query))
    return answer(ReportsView(data=[report_view(each) for each in found.records], pagination=pagination(found)))


async def one(ports: Ports, caller: Caller, request: ApiRequest[None]) -> ASGIApp:
    return answer(report_view(await get_report(ports, caller, request.id)))


async def file(ports: Ports, caller: Caller, request: ApiRequest[None]) -> ASGIApp:
    report = await get_report(ports, caller, request.id)
    form = read_choice("format", request.query.get("format") or "csv", ReportFormat)
    parts = await open_report(ports, caller, report, form, request.query.get("columns"), request.query.get("shop_id"))
    name = f"{report.file_name}{ENDINGS[form]}"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return ASGIStreamingResponse(iterator=parts, media_type=MEDIA_TYPES[form], headers=headers)


async def document(ports: Ports, caller: Caller, request: ApiRequest[None]) -> ASGIApp:
    report = await get_report(ports, caller, request.id)
    kind = read_choice("kind", request.query.get("kind") or "act", DocumentKind)
    made_pdf = await ports.documents.pdf(report_document(ports, caller, report, kind, "ru"))
    headers = {"Content-Disposition": f'attachment; filename="{kind}_{report.file_name}.pdf"'}
    return ASGIStreamingResponse(iterator=[made_pdf], media_type="application/pdf", headers=headers)


async def proof(ports: Ports, caller: Caller, request: ApiRequest[None]) -> ASGIApp:
    found = await prove_report(ports, caller, request.id)
    return answer(ReportProofView(**msgspec.structs.asdict(found)))


async def heads(ports: Ports, _: None, request: ApiRequest[None]) -> ASGIApp:
    found = await list_heads(ports, *page_of(request.query))
    views = [
        ReportHeadView(day=each.id, head=each.text, signature=each.signature, key=each.key) for each in found.records
    ]
    return answer(ReportHeadsView(data=views, pagination=pagination(found)))


async def past_balance(ports: Ports, caller: Caller, request: ApiRequest[None]) -> ASGIApp:
    last = await balance_at(ports, caller, request.query.get("at"))
    return answer(
        PastBalanceView(
            available_usdt=str(Usdt(0) if last is None else last.available_after),
            reserved_usdt=str(Usdt(0) if last is None else last.reserved_after),
            pending_rub=str(Rub(0) if last is None else last.pending_after),
            movement_number=0 if last is None else last.number,
            movement_id=None if last is None else last.entry_id,
        )
    )


_NO_REPORT: Refusals = {404: ("REPORT_NOT_FOUND",)}

REPORTS = (
    Operation(
        "create_report",
        "post",
        "/api/v1/reports",
        "Reports",
        "Order a register of a period, written in the background",
        create,
        body=ReportOrder,
        answer=ReportView,
        creates=True,
        refusals={
            404: ("REPORT_NOT_FOUND",),
            409: ("EXPORTS_BUSY",),
            422: ("EXPORT_TOO_LARGE",),
            503: ("PROVIDER_UNAVAILABLE",),
        },
        right=Right.READ,
    ),
    Operation(
        "list_reports",
        "get",
        "/api/v1/reports",
        "Reports",
        "List reports of days, months and ordered periods, newest first",
        page,
        answer=ReportsView,
        query=(*PAGES, Query("kind", "Only reports of this kind.", {"enum": [*ReportKind]})),
    ),
    Operation(
        "get_report",
        "get",
        "/api/v1/reports/{report_id}",
        "Reports",
        "Get a report with its totals and digest",
        one,
        answer=ReportView,
        refusals=_NO_REPORT,
    ),
    Operation(
        "download_report",
        "get",
        "/api/v1/reports/{report_id}/file",
        "Reports",
        "Download the register of a report",
        file,
        also_as="application/octet-stream",
        query=(
            Query("format", "Format of the file.", {"enum": [*ReportFormat], "default": "csv"}),
            Query("columns", "Names of columns, separated by commas; all where absent."),
            Query("shop_id", "Only rows of this shop.", UUID),
        ),
        refusals={**_NO_REPORT, 409: ("REPORT_NOT_READY",), 422: ("EXPORT_TOO_LARGE",)},
    ),
    Operation(
        "download_report_document",
        "get",
        "/api/v1/reports/{report_id}/document",
        "Reports",
        "Download the act or the agent's report of a report, as PDF in Russian",
        document,
        also_as="application/octet-stream",
        query=(Query("kind", "The document.", {"enum": [*DocumentKind], "default": "act"}),),
        refusals={**_NO_REPORT, 409: ("REPORT_NOT_READY",)},
    ),
    Operation(
        "get_report_proof",
        "get",
        "/api/v1/reports/{report_id}/proof",
        "Reports",
        "Get the proof of a day's register",
        proof,
        answer=ReportProofView,
        refusals={**_NO_REPORT, 409: ("REPORT_NOT_READY",)},
    ),
    Operation(
        "list_report_heads",
        "get",
        "/api/v1/report-heads",
        "Reports",
        "List the published heads of days, newest first, without a key",
        heads,
        answer=ReportHeadsView,
        query=PAGES,
        keyed=False,
    ),
    Operation(
        "get_balance_at",
        "get",
        "/api/v1/balance/at",
        "Reports",
        "Get the balance as of a moment",
        past_balance,
        answer=PastBalanceView,
        query=(Query("at", "The moment: movements before it count; all where it is absent.", MOMENT),),
        refusals={503: ("PROVIDER_UNAVAILABLE",)},
    ),
)
