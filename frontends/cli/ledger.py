"""`cambist ledger …`: is every balance what the journal says, and the journal what was written?"""

from typing import Any

import click

from ...core.usecases.ledger.check import LedgerReport, verify_ledger
from .output import Answer, fields, give, table
from .session import REFUSED, guarded, in_house


@click.group()
def ledger() -> None:
    """The double-entry ledger."""


@ledger.command("verify")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def verify(*, as_json: bool) -> None:
    """Prove the books: recompute every balance from the journal, check that each entry sums to zero, and check the
    hash chain over all entries.

    Exit 0 when all holds. Exit 1 when something differs: the first bad entry is named by its place in the chain, and
    every balance that is not the sum of its entries with both sums, in kopecks or 0.00000001 USDT. It changes nothing
    and may run beside a working service. `unsealed` counts new entries, which the chain takes up every hour and after
    each settlement. Progress goes to standard error.
    """
    report = guarded(
        lambda: in_house(lambda ports: verify_ledger(ports, progress=_progress)),
        as_json=as_json,
    )
    give(Answer(document=_document(report), text=_text(report)), as_json=as_json)
    if not report.holds:
        raise click.exceptions.Exit(REFUSED)


def _progress(entries: int) -> None:
    if entries % 100_000 == 0:
        click.echo(f"{entries} entries checked", err=True)


def _document(report: LedgerReport) -> dict[str, Any]:
    bad = report.first_bad_entry
    return {
        "holds": report.holds,
        "entries": report.entries,
        "unsealed": report.unsealed,
        "first_bad_entry": None if bad is None else {"number": bad.number, "id": bad.id, "reason": bad.reason},
        "bad_balances": [
            {"id": balance.id, "kept": balance.kept, "counted": balance.counted} for balance in report.bad_balances
        ],
    }


def _text(report: LedgerReport) -> str:
    document = _document(report)
    bad = report.first_bad_entry
    lines = [
        fields(
            {
                "holds": report.holds,
                "entries": report.entries,
                "unsealed": report.unsealed,
                "first bad entry": None if bad is None else f"{bad.id or 'number'} {bad.number or ''} {bad.reason}",
            }
        )
    ]
    if report.bad_balances:
        titles = ("id", "kept", "counted")
        lines += ["", table(titles, [[row[title] for title in titles] for row in document["bad_balances"]])]
    return "\n".join(lines)
