"""`cambist ledger …`: checks of the balances and the journal."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ...core.domain.chains import Head, heads_in
from ...core.usecases.common.chains import present_head
from ...core.usecases.ledger.chain_check import BadEntry
from ...core.usecases.ledger.check import LedgerReport
from ...core.usecases.operators.retagging import retag
from .groups import group
from .output import Answer, fields, give, shown, table
from .session import REFUSED, answering, guarded, reasoned, run_in_app

_LONGEST = 64 * 1024 * 1024
"""Largest size of a file with heads, in bytes: a log of many years."""
_MANIFEST = "backup.json"


@group()
def ledger() -> None:
    """Check the double-entry ledger and the hash chains of the ledger and the audit log."""


class _Heads(click.ParamType[list[Head]]):
    """Parameter type of a head: its text, or a file that contains heads."""

    name = "head"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[Head]:
        """Return the heads in the text or in the file that it names. For a backup folder, read its manifest."""
        found = heads_in(str(value))
        if found:
            return found
        path = Path(value)
        try:
            path = path / _MANIFEST if path.is_dir() else path
            with path.open("rb") as file:
                found = heads_in(file.read(_LONGEST).decode("utf-8", "replace"))
        except (OSError, ValueError) as fault:
            self.fail(f"it is no head, and no file that can be read: {getattr(fault, 'strerror', fault)}", param, ctx)
        if not found:
            self.fail(f"there is no head in {path}", param, ctx)
        return found


@ledger.command("verify")
@click.option(
    "--from",
    "heads",
    metavar="HEAD",
    type=_Heads(),
    default=None,
    help="An earlier head, or a file with heads: a backup's folder or backup.json, a log.",
)
@click.option(
    "--since",
    "path",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    default=None,
    help="Read only what changed since the last verification with this file, and write its result there.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def verify(*, heads: Sequence[Head] | None, path: Path | None, as_json: bool) -> None:
    """Verify the books: balances, journal entries and hash chains.

    It recomputes every balance from the journal, checks that each entry sums to zero, and checks the hash chains over
    all entries and over the audit log, which have the vault's tags.

    Exit 0 when all holds. Exit 1 when something differs: the output names the first bad entry and the first bad
    operator action by their positions in the chains, and every balance that differs from its entries with both sums, in
    kopecks or 0.00000001 USDT. It changes nothing and may run beside a working service. `unsealed` is the number of new
    entries, which the chain includes every hour and after each settlement. Progress goes to standard error.

    `head` is the end of the chains: store it elsewhere. A later check with --from detects a history that was shortened,
    rewritten or replaced, even by a person who has the database and the vault's keys.

    With --since, the time depends on what happened since, not on the size of the ledger: entries that were proved are
    not read again, nor are objects older than a week that no new entry concerns. Once a week, and without the file,
    every row is read. A fault leaves the file as it is.
    """
    if heads and path:
        raise click.UsageError("Give --from or --since, not both: the file of --since contains a head.")
    from ..operations.checkpoint_file import verify_since

    report = guarded(
        lambda: run_in_app(lambda ports: verify_since(ports, path, progress=_progress, against=heads or ())),
        as_json=as_json,
    )
    give(Answer(document=_document(report), text=_text(report)), as_json=as_json)
    if not report.holds:
        raise click.exceptions.Exit(REFUSED)


@ledger.command("head")
@answering
def head() -> Answer:
    """Print the end of the chains as one line, to store elsewhere.

    `cambist ledger verify --from` compares the chains with it later. This command does not check the entries; `verify`
    checks them and prints the head too.
    """
    line = run_in_app(present_head)
    return Answer(document={"head": line}, text=line)


@ledger.command("retag")
@click.option("--yes", is_flag=True, help="Skip the confirmation.")
@answering
@reasoned
def retag_books(*, yes: bool) -> Answer:
    """Tag the books again with the present keys, after the former ones were lost for good.

    Run it after `cambist vault adopt`. It first checks every link and every balance. Then it tags both chains, the
    settings that move money, API keys, payment links, payouts and exchanges again, and lists the payout wallets:
    compare them with what the merchants say. Until then nothing new is chained and nothing is paid out. If the keys
    were not lost, a tag that does not fit means that somebody changed the row: restore a backup instead. You may
    interrupt it with Ctrl-C; another run continues with the rest.
    """
    if not yes:
        click.confirm("Is the history in this database the one that this installation wrote?", abort=True, err=True)
    done = run_in_app(lambda ports: retag(ports, progress=_tagged, checked=_progress))
    document = {"retagged": dict(done.values), "rows": done.rows, "wallets": dict(done.wallets), "left": done.left}
    if not (done.values or done.rows):
        return Answer(document=document, text="every tag fits already")
    lines = [table(("what", "tagged again"), [*done.values.items(), ("rows of the chains", done.rows)])]
    if done.wallets:
        lines += ["compare with the merchants:", table(("account", "payout wallet"), done.wallets)]
    if done.left:
        lines.append(f"payouts to other wallets, not tagged: cancel them: {', '.join(done.left)}")
    return Answer(document=document, text="\n".join(lines))


def _tagged(what: str, count: int) -> None:
    if count % 10_000 == 0:
        click.echo(f"{count} tagged again: {what}", err=True)


def _progress(entries: int) -> None:
    if entries % 100_000 == 0:
        click.echo(f"{entries} entries checked", err=True)


def _bad(bad: BadEntry | None) -> dict[str, Any] | None:
    return None if bad is None else {"number": bad.number, "id": bad.id, "reason": bad.reason}


def _document(report: LedgerReport) -> dict[str, Any]:
    return {
        "holds": report.holds,
        "entries": report.entries,
        "proved_before": report.proved_before,
        "unsealed": report.unsealed,
        "first_bad_entry": _bad(report.first_bad_entry),
        "bad_balances": [
            {"id": balance.id, "kept": balance.kept, "counted": balance.counted} for balance in report.bad_balances
        ],
        "actions": report.actions,
        "actions_unsealed": report.actions_unsealed,
        "first_bad_action": _bad(report.first_bad_action),
        "differing": report.differing,
        "bad_values": [{"id": bad.id, "field": bad.field, "reason": bad.reason} for bad in report.bad_values],
        "head": report.head,
    }


def _told(bad: BadEntry | None) -> str | None:
    return None if bad is None else " ".join(shown(str(part)) for part in (bad.id, bad.number, bad.reason) if part)


def _text(report: LedgerReport) -> str:
    document = _document(report)
    lines = [
        fields(
            {
                "holds": report.holds,
                "entries": report.entries,
                "proved before": report.proved_before,
                "unsealed": report.unsealed,
                "first bad entry": _told(report.first_bad_entry),
                "actions": report.actions,
                "actions unsealed": report.actions_unsealed,
                "first bad action": _told(report.first_bad_action),
                "head": report.head,
            }
        )
    ]
    lines += [shown(each) for each in report.differing]
    lines += [shown(f"{bad.id}: {bad.field} {bad.reason}") for bad in report.bad_values]
    if report.bad_balances:
        titles = ("id", "kept", "counted")
        lines += ["", table(titles, [[row[title] for title in titles] for row in document["bad_balances"]])]
    return "\n".join(lines)
