"""`cambist provider …`: checks of providers before merchants are affected (docs/providers/index.md)."""

from datetime import timedelta
from io import StringIO
from typing import Any

import click

from ...core.domain.days import iso_or_none
from ...core.domain.ids import PAYMENT
from ...core.domain.money import Rub
from ...core.usecases.operators.provider_facts import ProviderFacts, provider_facts
from ...core.usecases.operators.provider_trial import Trial, TrialNews, TrialStep, run_trial
from .groups import group
from .output import Answer, fields, give, shown
from .session import REFUSED, guarded, run_in_app


@group()
def provider() -> None:
    """Check whether banks, verifiers, chains and markets are ready."""


_SILENT = "payments were paid, and no notification came for them or since: enter the address in the bank's cabinet"


def _document(facts: ProviderFacts) -> dict[str, Any]:
    return {
        "port": facts.port,
        "name": facts.name,
        "mode": facts.mode,
        "credentials": facts.credentials.value,
        "fault": facts.fault,
        "clock_skew_seconds": facts.clock_skew,
        "notification_address": facts.notification_address,
        "notification_networks": [str(network) for network in facts.notification_networks],
        "last_notification": iso_or_none(facts.received_at),
        "notification_problem": _SILENT if facts.is_silent else None,
        "can": list(facts.can),
        "cannot": list(facts.cannot),
        "limits": {name: shown(value) for name, value in facts.limits.items()},
    }


def _text(document: dict[str, Any]) -> str:
    """Return the facts for people, without empty ones."""
    said = {name: value for name, value in document.items() if value not in (None, [], {})}
    said.update({name: [f"{key} {value}" for key, value in said[name].items()] for name in ("limits",) if name in said})
    return fields(said)


@provider.command("check")
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def check(*, name: str | None, as_json: bool) -> None:
    """Check whether each provider, or only NAME, accepts our credentials.

    It shows the provider's clock, its notification address, whether notifications arrive, and its abilities. It moves
    no money. Exit 1 when a provider does not accept the credentials or does not answer, or when its clock differs from
    ours by more than 30 s.
    """
    found = guarded(lambda: run_in_app(lambda ports: provider_facts(ports, name)), as_json=as_json)
    documents = [_document(each) for each in found]
    give(Answer(document={"data": documents}, text="\n\n".join(map(_text, documents))), as_json=as_json)
    if not all(each.is_well for each in found):
        raise click.exceptions.Exit(REFUSED)


def _amount(ctx: click.Context, param: click.Parameter, value: str) -> Rub:  # noqa: ARG001 - click's signature
    try:
        return Rub.parse(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


@provider.command("trial")
@click.argument("name")
@click.option("--amount", default="10", callback=_amount, metavar="RUB", help="Amount that you will pay. Default: 10.")
@click.option("--minutes", default=15, type=click.IntRange(1, 60), show_default=True, help="Time to pay, in minutes.")
@click.option("--operation", "operation_id", metavar="ID", help="Continue an interrupted trial.")
@click.option("--yes", is_flag=True, help="Skip the confirmation.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document at the end.")
def trial(*, name: str, amount: Rub, minutes: int, operation_id: str | None, yes: bool, as_json: bool) -> None:
    """Make one real payment at the bank NAME, watch it to its end, and return it.

    You pay with the printed link or QR code. The payment is between you and the bank: it belongs to no merchant's
    account and no ledger entry. Exit 0 when all received money is returned. After an interruption, continue with
    --operation; nothing is done twice.
    """
    if not yes:
        click.confirm(
            f"{amount} RUB of real money are paid at {shown(name)} and sent back. Go on?", abort=True, err=True
        )

    def run() -> TrialStep:
        from ..app.compose import system_ids

        operation = operation_id or f"{PAYMENT}{system_ids().uuid()}"
        tried = Trial(operation=operation, bank=name, amount=amount, lasts=timedelta(minutes=minutes))
        click.echo(f"trial {shown(operation)}: --operation with this id goes on after an interruption", err=True)
        ended = run_in_app(lambda ports: run_trial(ports, tried, _tell))
        document = {"operation": operation, "bank": name, "amount_rub": str(amount), "outcome": ended.value}
        give(Answer(document=document, text=fields(document)), as_json=as_json)
        return ended

    if guarded(run, as_json=as_json) is not TrialStep.RETURNED:
        raise click.exceptions.Exit(REFUSED)


def _tell(news: TrialNews) -> None:
    click.echo(f"{news.step:<13} {shown(news.message)}", err=True)
    if news.invoice is None:
        return
    click.echo(f"{'':<13} pay here: {shown(news.invoice.link)}", err=True)
    if news.invoice.payload is not None:
        import segno  # imported late: only a terminal needs its picture

        picture = StringIO()
        segno.make_qr(news.invoice.payload, error="l").terminal(picture, compact=True)
        click.echo(picture.getvalue(), err=True)
