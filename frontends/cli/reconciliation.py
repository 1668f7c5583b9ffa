"""`cambist reconcile`: compares a day with the banks' own lists; `cambist difference …`: the differences found."""

from collections.abc import Sequence
from typing import Any

import click
import msgspec

from ...core.domain.days import iso, iso_or_none
from ...core.domain.money import Rub
from ...core.domain.reconciliation.reconciliation import (
    Discrepancy,
    ReconciliationStatus,
    last_comparable,
    read_day,
)
from ...core.usecases.reconciliation import discrepancies as found_ones
from ...core.usecases.reconciliation import reconciliation as usecases
from ...core.usecases.reconciliation.reconciliation import Compared
from ...ports.bundle import Ports
from .groups import group
from .output import Answer, fields, give, table
from .session import REFUSED, answering, guarded, reasoned, run_in_app

DIFFERENT = 1
NOT_COMPARED = 2

_PAUSES = (1.0, 5.0, 15.0)
"""Seconds until a bank without an answer is queried again. A longer outage is left to the nightly run or the
operator."""
_SHOWN = 100
"""Largest number of differences in the text for people; the JSON document has all."""


class _Told(msgspec.Struct, frozen=True):
    """Result of a comparison with all banks."""

    day: str
    compared: Sequence[Compared]
    differences: Sequence[Discrepancy]

    @property
    def is_compared(self) -> bool:
        """Whether every bank that provides a list provided all of it, and there is such a bank."""
        results = [each.result for each in self.compared if each.result is not None]
        return bool(results) and all(each.status is not ReconciliationStatus.FAILED for each in results)

    @property
    def status(self) -> str:
        if not self.is_compared:
            return "failed"
        return "different" if any(each.result and each.result.found for each in self.compared) else "agreed"


@click.command()
@click.option("--day", metavar="YYYY-MM-DD", help="Day in Moscow. Default: the last day that can be compared.")
@click.option("--bank", metavar="NAME", help="Only with this bank. Default: with each bank of live mode.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def reconcile(day: str | None, bank: str | None, *, as_json: bool) -> None:
    """Compare a day with the banks' own lists, and show the differences.

    The service does this automatically every night. No money is moved: a difference is stored and shown in the console
    until a later comparison no longer finds it or an operator settles it. An interrupted comparison continues where it
    stopped.

    Exit 0: all agree; 1: there are differences; 2: a bank could not be compared, or none provides a list.
    """
    try:
        told = guarded(lambda: run_in_app(lambda ports: _compared(ports, day, bank)), as_json=as_json)
    except click.exceptions.Exit as ended:
        raise click.exceptions.Exit(NOT_COMPARED if ended.exit_code == REFUSED else ended.exit_code) from None
    give(Answer(document=_document(told), text=_text(told)), as_json=as_json)
    if told.status != "agreed":
        raise click.exceptions.Exit(DIFFERENT if told.status == "different" else NOT_COMPARED)


async def _compared(ports: Ports, day: str | None, bank: str | None) -> _Told:
    asked = last_comparable(ports.clock.now()) if day is None else read_day(day)
    compared = await usecases.reconcile(ports, asked, bank)
    for pause in _PAUSES:
        if not any(each.has_failed for each in compared):
            break
        await ports.clock.sleep(pause)
        compared = await usecases.reconcile(ports, asked, bank, but=compared)
    differences = [
        each
        for one in compared
        if one.result is not None
        for each in await found_ones.open_differences(ports, one.result)
    ]
    return _Told(asked.isoformat(), compared, differences)


def _document(told: _Told) -> dict[str, Any]:
    return {
        "day": told.day,
        "status": told.status,
        "banks": [_bank_document(each) for each in told.compared],
        "differences": [difference_document(each) for each in told.differences],
    }


def _bank_document(each: Compared) -> dict[str, Any]:
    row = each.result
    if row is None:
        return {"bank": each.bank, "owner": None, "status": "no_list"}
    return {
        "bank": each.bank,
        "owner": row.owner or None,
        "status": row.status.value,
        "entries": row.entries,
        "differences": row.found,
        "failure": row.failure,
        "started_at": iso(row.started_at),
        "finished_at": iso_or_none(row.finished_at),
    }


def difference_document(row: Discrepancy) -> dict[str, Any]:
    """Return a difference as the command line shows it."""
    return {
        "difference_id": row.id,
        "difference": row.difference.value,
        "subject": row.subject.value,
        "bank": row.bank,
        "owner": row.owner or None,
        "day": row.day,
        "at": iso(row.moment),
        "operation": row.operation,
        "bank_id": row.entry,
        "object_id": row.object_id,
        "account_id": row.account_id,
        "our_amount_rub": _rub(row.our_kopecks),
        "their_amount_rub": _rub(row.their_kopecks),
        "our_fee_rub": _rub(row.our_fee),
        "their_fee_rub": _rub(row.their_fee),
        "our_state": None if row.our_standing is None else row.our_standing.value,
        "their_state": None if row.their_standing is None else row.their_standing.value,
        "found_at": iso(row.found_at),
        "closed_at": iso_or_none(row.closed_at),
        "settled": row.settled,
    }


def _rub(kopecks: int | None) -> str | None:
    return None if kopecks is None else str(Rub(kopecks))


def _text(told: _Told) -> str:
    lines = [f"{told.day}, Moscow"]
    for each in told.compared:
        row = each.result
        if row is None:
            lines.append(f"{each.bank}: gives no list; compare its registry by hand")
            continue
        whose = f"{each.bank}, {row.owner}" if row.owner else each.bank
        if row.status is ReconciliationStatus.FAILED:
            lines.append(f"{whose}: could not be compared: {row.failure}")
        else:
            lines.append(f"{whose}: {row.status}, {row.entries} entries, {row.found} differences")
    if not told.compared:
        lines.append("there is no bank of live mode")
    if told.differences:
        lines += ["", _differences_text(told.differences)]
    return "\n".join(lines)


def _differences_text(rows: Sequence[Discrepancy]) -> str:
    documents = [difference_document(each) for each in rows[:_SHOWN]]
    titles = ("difference", "subject", "our_amount_rub", "their_amount_rub", "our_state", "their_state")
    more = ("at", "object_id", "bank_id")
    text = table((*titles, *more), [[each[title] for title in (*titles, *more)] for each in documents])
    return text if len(rows) <= _SHOWN else f"{text}\nand {len(rows) - _SHOWN} more: --json has all"


@group()
def difference() -> None:
    """List and settle differences from the banks' lists."""


@difference.command("list")
@answering
def list_all() -> Answer:
    """List the open differences, oldest first; at most 1000."""
    rows = run_in_app(found_ones.list_differences)
    documents = [difference_document(each) for each in rows]
    titles = ("difference_id", "day", "our_amount_rub", "their_amount_rub", "our_state", "their_state")
    text = table(titles, [[each[title] for title in titles] for each in documents])
    return Answer(document={"data": documents}, text=text)


@difference.command("settle")
@click.argument("difference_id", metavar="ID")
@answering
@reasoned
def settle(difference_id: str) -> Answer:
    """Close a difference that was settled with bank and merchant. It stays closed if it is found again unchanged; no
    money is moved."""
    document = difference_document(run_in_app(lambda ports: found_ones.settle_difference(ports, difference_id)))
    return Answer(document=document, text=fields(document))
