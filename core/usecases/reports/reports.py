"""Reports of a merchant: order, list, read, and download in any format (docs/reports.md "What you get")."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import Unit
from ...domain.accounts.accounts import Caller
from ...domain.accounts.idempotency import IdempotencyKey
from ...domain.days import iso, moscow_day, moscow_start, read_moment
from ...domain.errors import Refusal, read_choice, shape_error
from ...domain.exports.exports import ExportChunk, file_chunk_id
from ...domain.ids import canonical_uuid, is_prefixed
from ...domain.movements import Movement
from ...domain.reports.reports import (
    ORDERED_KEPT,
    ORDERED_MOST,
    REPORT,
    ROWS_MOST,
    Report,
    ReportFormat,
    ReportKind,
    ReportOrder,
    report_id,
)
from ..common.idempotency import Lock, Made, once, yield_to_maker
from ..common.paging import Page
from ..common.units import retrying
from ..exports.exports import decrypt_chunk
from ..ledger.movements import MovementFilter, bring_up, span_of
from .formats import Columns, write_format
from .writing import RACES, add_report


class ReportFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Query values of GET /reports as received; None when absent."""

    kind: str | None = None


async def order_report(ports: Ports, caller: Caller, key: str | None, read: Callable[[], ReportOrder]) -> Made[Report]:
    """Order a register of a period of Moscow days. Today counts up to this moment.

    Raises: Refusal as `once`; VALIDATION_ERROR; EXPORT_TOO_LARGE; EXPORTS_BUSY; PROVIDER_UNAVAILABLE while movements
    are being listed.
    """

    async def make(lock: Lock) -> Report:
        first, last = read().read(ports.clock.now())
        await bring_up(ports, caller)

        async def work(unit: Unit) -> Report:
            await yield_to_maker(unit, lock)
            owner = {"account_id": caller.account_id, "mode": caller.mode}
            ordered = await unit[Report].total(**owner, kind=ReportKind.PERIOD)
            if ordered >= ORDERED_MOST:
                raise Refusal("EXPORTS_BUSY", f"You have {ORDERED_MOST} ordered reports: wait until old ones expire")
            days = MovementFilter(created_from=iso(moscow_start(first)), created_to=iso(moscow_day(last)[1]))
            span = await span_of(unit, caller, days)
            if span.high - span.low > ROWS_MOST:
                raise Refusal("EXPORT_TOO_LARGE", f"A report has at most {ROWS_MOST} rows: take fewer days")
            new_id = report_id(caller.account_id, caller.mode, lock.record_id)
            added = await add_report(ports, span, ReportKind.PERIOD, (first, last), new_id, ORDERED_KEPT)
            unit[IdempotencyKey].add(lock(new_id))
            return added

        return await retrying(ports.storage, work, again_on=RACES)

    async def recall(found_id: str) -> Report:
        return await get_report(ports, caller, found_id)

    return await once(ports, caller, key, "report", make=make, recall=recall, id_rule="reports_id")


async def get_report(ports: Ports, caller: Caller, wanted: str) -> Report:
    """Return a report of the account and mode. Raises: Refusal REPORT_NOT_FOUND."""
    found = await ports.storage.get(Report, wanted) if is_prefixed(REPORT, wanted) else None
    is_own = found is not None and (found.account_id, found.mode) == (caller.account_id, caller.mode)
    if found is None or not is_own or (found.expires_at is not None and found.expires_at <= ports.clock.real()):
        raise Refusal("REPORT_NOT_FOUND", "No report of this id")
    return found


async def list_reports(ports: Ports, caller: Caller, asked: ReportFilter, number: int, size: int) -> Page[Report]:
    """Return a page of reports, newest first. Raises: Refusal VALIDATION_ERROR."""
    criteria: dict[str, Any] = {"account_id": caller.account_id, "mode": caller.mode}
    if asked.kind is not None:
        criteria["kind"] = read_choice("kind", asked.kind, ReportKind)
    async with ports.storage.unit() as unit:
        total = await unit[Report].total(**criteria)
        order = "-created_at" if asked.kind is None else "-first_day"
        found = await unit[Report].page(number, size, order=order, readable=True, **criteria)
    return Page(found, number, size, total)


async def open_report(
    ports: Ports, caller: Caller, report: Report, form: ReportFormat, columns: str | None, shop_id: str | None
) -> AsyncIterator[bytes]:
    """Return the file of a report in a format, with these columns and the rows of this shop. A person who is limited to
    shops gets the rows of these shops.

    Raises: Refusal REPORT_NOT_READY, VALIDATION_ERROR; EXPORT_TOO_LARGE for a workbook.
    """
    if report.ready_at is None:
        raise Refusal("REPORT_NOT_READY", "The report is being written; try again soon")
    if form is ReportFormat.XLSX and report.rows > ROWS_MOST:
        raise Refusal("EXPORT_TOO_LARGE", f"A workbook has at most {ROWS_MOST} rows: take CSV")
    shops = caller.shops
    if shop_id is not None:
        if canonical_uuid(shop_id) is None:
            raise shape_error("shop_id", "must be a UUID")
        shops = (shop_id,) if shops is None or shop_id in shops else ()
    return write_format(ports, form, report, Columns.read(columns), shops, _text(ports, report))


async def _text(ports: Ports, report: Report) -> AsyncIterator[bytes]:
    for number in range(report.chunks):
        chunk = await ports.storage.get(ExportChunk, file_chunk_id(report.id, number))
        if chunk is None:
            return  # deleted meanwhile: the download breaks off
        yield decrypt_chunk(ports.vault, chunk)


async def balance_at(ports: Ports, caller: Caller, at: str | None) -> Movement | None:
    """Return the last movement before a moment, with the balance after it; None: nothing had moved. Without a moment,
    return the last one of all.

    Raises: Refusal VALIDATION_ERROR; PROVIDER_UNAVAILABLE while movements are being listed.
    """
    until = None if at is None else iso(read_moment("at", at))
    await bring_up(ports, caller)
    async with ports.storage.unit() as unit:
        _, last = await (await span_of(unit, caller, MovementFilter(created_to=until))).edges()
    return last
