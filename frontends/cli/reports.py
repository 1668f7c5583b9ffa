"""`cambist report …`: registers of accounts (docs/reports.md "What you get")."""

from pathlib import Path
from typing import Any

import click

from ...core.domain.accounts.accounts import Caller, Mode
from ...core.domain.reports.reports import Report, ReportFormat, ReportKind, ReportOrder
from ...core.usecases.accounts.accounts import find_account
from ...core.usecases.reports.reports import ReportFilter, get_report, list_reports, open_report, order_report
from ...ports.bundle import Ports
from .groups import group
from .output import Answer, fields, table
from .session import answering, run_in_app

_MOST = 100
_TITLES = ("id", "kind", "first_day", "last_day", "rows", "status", "sha256")
_mode = click.option(
    "--mode", type=click.Choice([each.value for each in Mode]), default=Mode.LIVE.value, show_default=True
)


@group()
def report() -> None:
    """List, order and write registers of accounts."""


@report.command("list")
@click.argument("account_id", metavar="ACCOUNT")
@_mode
@click.option("--kind", type=click.Choice([each.value for each in ReportKind]), help="Only of this kind.")
@answering
def listed(account_id: str, mode: str, kind: str | None) -> Answer:
    """List the newest reports of an account; at most 100."""

    async def read(ports: Ports) -> list[Report]:
        caller = await _caller(ports, account_id, mode)
        return (await list_reports(ports, caller, ReportFilter(kind=kind), 1, _MOST)).records

    rows = [_row(each) for each in run_in_app(read)]
    return Answer(document={"data": [dict(zip(_TITLES, row, strict=True)) for row in rows]}, text=table(_TITLES, rows))


@report.command("order")
@click.argument("account_id", metavar="ACCOUNT")
@click.argument("first_day")
@click.argument("last_day")
@_mode
@answering
def order(account_id: str, first_day: str, last_day: str, mode: str) -> Answer:
    """Order a register of a period of Moscow days."""
    days = ReportOrder(first_day=first_day, last_day=last_day)

    async def made(ports: Ports) -> Report:
        caller = await _caller(ports, account_id, mode)
        return (await order_report(ports, caller, ports.ids.uuid(), lambda: days)).resource

    document: dict[str, Any] = dict(zip(_TITLES, _row(run_in_app(made)), strict=True))
    return Answer(document=document, text=fields(document))


@report.command("file")
@click.argument("account_id", metavar="ACCOUNT")
@click.argument("report_id", metavar="REPORT")
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
@_mode
@click.option(
    "--format", "form", type=click.Choice([each.value for each in ReportFormat]), default="csv", show_default=True
)
@answering
def file(account_id: str, report_id: str, path: Path, mode: str, form: str) -> Answer:
    """Write the register of a report to a file."""

    async def write(ports: Ports) -> int:
        caller = await _caller(ports, account_id, mode)
        found = await get_report(ports, caller, report_id)
        parts = await open_report(ports, caller, found, ReportFormat(form), None, None)
        with path.open("wb") as out:
            return sum([out.write(part) async for part in parts])

    document = {"file": str(path), "bytes": run_in_app(write)}
    return Answer(document=document, text=fields(document))


async def _caller(ports: Ports, account_id: str, mode: str) -> Caller:
    async with ports.storage.unit() as unit:
        return Caller(account=await find_account(unit, account_id), mode=Mode(mode), key_id="")


def _row(found: Report) -> tuple[str | int, ...]:
    status = "pending" if found.ready_at is None else "ready"
    return found.id, found.kind.value, found.first_day, found.last_day, found.rows, status, found.digest or ""
