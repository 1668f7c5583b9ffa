"""`cambist bank …`: files of banks that give no list by an API."""

from pathlib import Path

import click

from ...core.domain.days import iso_or_none
from ...core.domain.reconciliation.bank_files import COLUMNS
from ...core.domain.reconciliation.reconciliation import Discrepancy, Reconciliation, ReconciliationStatus
from ...core.usecases.reconciliation.bank_files import ComparedFile, import_bank_file
from ...core.usecases.reconciliation.discrepancies import open_differences
from ...ports.bundle import Ports
from .arguments import assignments
from .groups import group
from .output import Answer, give, table
from .reconciliation import DIFFERENT, NOT_COMPARED, difference_document
from .session import REFUSED, guarded, run_in_app


@group()
def bank() -> None:
    """Compare files of banks that give no list by an API."""


@bank.command("import")
@click.argument("file", metavar="FILE", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--bank", "name", metavar="NAME", required=True, help="Bank of live mode whose file it is.")
@click.option(
    "--map",
    "columns",
    metavar="MEANING=HEAD",
    multiple=True,
    help=f"Column of a CSV file, kept for the bank's next files. Meanings: {', '.join(COLUMNS)}.",
)
@click.option("--lag", metavar="DAYS", type=int, default=0, help="Days after which the bank books. Default: 0.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def import_file(file: Path, name: str, columns: tuple[str, ...], lag: int, *, as_json: bool) -> None:
    """Compare a bank's file with the payments of its days: 1CClientBankExchange, CAMT.053 or CSV.

    Exit 0: all agree; 1: there are differences; 2: the file was not compared.
    """
    mapped, body = assignments(columns) if columns else {}, file.read_bytes()

    async def compare(ports: Ports) -> tuple[ComparedFile, list[Discrepancy]]:
        compared = await import_bank_file(ports, name, body, columns=mapped, lag=lag)
        found = [each for row in compared.days for each in await open_differences(ports, row)]
        return compared, found

    try:
        compared, found = guarded(lambda: run_in_app(compare), as_json=as_json)
    except click.exceptions.Exit as ended:
        raise click.exceptions.Exit(NOT_COMPARED if ended.exit_code == REFUSED else ended.exit_code) from None
    document = {
        "bank": name,
        "form": compared.file.form,
        "first": compared.file.first.isoformat(),
        "last": compared.file.last.isoformat(),
        "operations": len(compared.file.rows) - compared.others,
        "others": compared.others,
        "days": [_day_document(each) for each in compared.days],
        "differences": [difference_document(each) for each in found],
    }
    text = table(
        ("day", "status", "entries", "differences"),
        [(each.day, each.status.value, str(each.entries), str(each.found)) for each in compared.days],
    )
    give(Answer(document=document, text=text), as_json=as_json)
    if not compared.days or any(each.status is ReconciliationStatus.FAILED for each in compared.days):
        raise click.exceptions.Exit(NOT_COMPARED)
    if found:
        raise click.exceptions.Exit(DIFFERENT)


def _day_document(each: Reconciliation) -> dict[str, object]:
    return {
        "day": each.day,
        "status": each.status.value,
        "entries": each.entries,
        "differences": each.found,
        "failure": each.failure,
        "finished_at": iso_or_none(each.finished_at),
    }
