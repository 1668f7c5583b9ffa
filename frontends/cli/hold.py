"""`cambist hold` and `cambist resume`: stop and resume sending of live money."""

from collections.abc import Sequence
from typing import Any

import click

from ...core.domain.days import iso, iso_or_none
from ...core.domain.errors import Refusal
from ...core.domain.installation import Because, Installation
from ...core.usecases.common import quarantine
from ...core.usecases.installation.comparison import Comparison, Decisions, compare, decided
from ...core.usecases.installation.resume import resume_compared
from ...ports.bundle import Ports
from .output import Answer, fields, table
from .session import answering, loaded_settings, reasoned, run_in_app


def _document(installation: Installation) -> dict[str, Any]:
    because = installation.held_because
    return {
        "held_since": iso_or_none(installation.held_since),
        "held_because": None if because is None else because.value,
        "as_of": iso_or_none(installation.as_of),
    }


def _compared(found: Comparison) -> dict[str, Any]:
    return {
        "since": iso(found.since),
        "compared": found.compared,
        "not_compared": found.not_compared,
        "lacking": [
            {
                "provider": each.provider,
                "kind": each.kind,
                "operation": each.operation,
                "amount": each.amount,
                "to": each.to,
                "brought_in_for": each.account_id,
                "is_open": each.is_open,
                "what_to_do": each.advice,
            }
            for each in found.lacking
        ],
    }


def _report(shown: dict[str, Any]) -> str:
    told = fields({name: value for name, value in shown.items() if not isinstance(value, list)})
    lines = [told, f"compared with what these sent: {', '.join(shown['compared']) or 'none'}"]
    if shown["not_compared"]:
        lines.append(f"to be compared with their own statements: {', '.join(shown['not_compared'])}")
    titles = ("kind", "amount", "to", "operation", "provider", "brought_in_for")
    if shown["lacking"]:
        rows = [[each[title] for title in titles] for each in shown["lacking"]]
        lines += ["sent by providers and unknown here:", table(titles, rows)]
    undecided = [each for each in shown["lacking"] if each["is_open"]]
    if undecided:
        lines.append("to be decided before `cambist resume` lets go:")
        lines += [f"  {each['operation']}: {each['what_to_do']}" for each in undecided]
    return "\n".join(lines)


def _decisions(assign: Sequence[str], not_ours: Sequence[str]) -> Decisions:
    assigned: dict[str, str] = {}
    for each in assign:
        operation, _, account_id = each.partition("=")
        if not operation or not account_id or assigned.get(operation, account_id) != account_id:
            raise click.UsageError(f"--assign takes wd_...=ACCOUNT_ID, each wd_... once, not {each!r}")
        assigned[operation] = account_id
    return Decisions(assigned=assigned, not_ours=frozenset(not_ours))


@click.command()
@answering
@reasoned
def hold() -> Answer:
    """Stop sending and settling live money until `cambist resume`. Everything else continues.

    No refund, charge or payout is sent. Use it before the first start on a machine, disk or snapshot that was set back
    as a whole, because the service cannot detect that itself.
    """

    async def work(ports: Ports) -> Installation:
        installation = await quarantine.hold(ports, Because.BY_HAND)
        quarantine.require_readable(installation)
        return installation

    document = {**_document(run_in_app(work)), "held": True}
    return Answer(document=document, text=fields(document))


@click.command()
@click.option("--dry-run", is_flag=True, help="Only show the comparison; stay held.")
@click.option("--yes", is_flag=True, help="Skip the confirmation.")
@click.option(
    "--assign",
    multiple=True,
    metavar="wd_...=ACCOUNT_ID",
    help="Book a payout that the wallet sent as this merchant's debt. May be repeated.",
)
@click.option(
    "--not-ours",
    multiple=True,
    metavar="OPERATION",
    help="Do not book this payout or refund of a provider. May be repeated.",
)
@answering
@reasoned
def resume(dry_run: bool, yes: bool, assign: tuple[str, ...], not_ours: tuple[str, ...]) -> Answer:
    """Let a held installation send money again.

    A copy is held from its first start. Before you resume it, stop the original database for good: nothing else may
    send money for the same merchants.

    The command first asks the providers what they sent, and books payouts and refunds that the database lacks. It stays
    held (exit 1) while a payout or refund has no owner; the answer names each and what to do.
    """

    settings = loaded_settings().settings
    decisions = _decisions(assign, not_ours)
    from ..app.maintenance import open_beside

    async def work(ports: Ports) -> dict[str, Any]:
        installation = await quarantine.read_hold(ports)
        if installation is None:
            raise Refusal("INVALID_STATE", "The installation is not held")
        if not dry_run:
            quarantine.require_readable(installation)
        found = await decided(ports, await compare(ports, installation.as_of), decisions)
        shown = {**_document(installation), **_compared(found)}
        click.echo(_report(shown), err=True)
        if dry_run:
            return {**shown, "held": True}
        if not yes and not found.open:
            click.confirm("Does nothing else send money for these merchants, and shall this?", abort=True, err=True)
        await resume_compared(ports, found, open_beside(settings))
        return {**shown, "held": False}

    document = run_in_app(work)
    return Answer(document=document, text=f"held  {str(document['held']).lower()}")
