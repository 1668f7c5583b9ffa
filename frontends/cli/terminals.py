"""`cambist terminal …`: terminals of accounts."""

from typing import Any

import click

from ...core.domain.accounts.terminals import PAYMENT_METHODS, REQUIRABLE, Terminal, TerminalKind, TerminalWish
from ...core.domain.days import iso
from ...core.usecases.accounts import terminals as usecases
from .groups import group
from .output import Answer, fields, table
from .session import answering, reasoned, run_in_app


@group()
def terminal() -> None:
    """Manage the terminals of an account: payment methods with their own rules.

    Merchants see and use them while the account's setting `terminals` is true.
    """


def terminal_document(each: Terminal) -> dict[str, Any]:
    """Return a terminal as the command line shows it. Merchants see its id as `method_id`."""
    return {
        "method_id": each.id,
        "account_id": each.account_id,
        "label": each.label,
        "payment_method": each.payment_method,
        "kind": each.kind.value,
        "required_fields": list(each.required_fields),
        "own_lifetime": each.own_lifetime,
        "direct_link": each.direct_link,
        "credit_follows_receipt": each.credit_follows_receipt,
        "routes": list(each.routes),
        "enabled": each.enabled,
        "created_at": iso(each.created_at),
    }


def _answer(each: Terminal) -> Answer:
    document = terminal_document(each)
    return Answer(document=document, text=fields(document))


@terminal.command("add")
@click.argument("account_id", metavar="ACCOUNT")
@click.option("--label", required=True, help="Name in the merchant's list.")
@click.option("--method", "payment_method", default=PAYMENT_METHODS[0], show_default=True)
@click.option("--kind", default=TerminalKind.ORDINARY.value, show_default=True, help=" or ".join(TerminalKind))
@click.option(
    "--require", default="", metavar="FIELD,…", help=f"Fields required in every payment: {', '.join(REQUIRABLE)}."
)
@click.option(
    "--own-lifetime/--no-own-lifetime", default=True, show_default=True, help="Whether `ttl_minutes` applies."
)
@click.option(
    "--direct-link/--no-direct-link",
    default=False,
    show_default=True,
    help="Whether merchants may get the bank's link.",
)
@click.option("--credit-follows-receipt", is_flag=True, help="Refuse partial refunds before settlement.")
@click.option("--route", "routes", multiple=True, metavar="BANK", help="Bank to try. Repeat it in the order of trial.")
@answering
@reasoned
def add(account_id: str, require: str, routes: tuple[str, ...], **rest: Any) -> Answer:
    """Add a terminal to an account. It never changes: for another rule, add another terminal."""
    required = tuple(name.strip() for name in require.split(",")) if require.strip() else ()
    wish = TerminalWish(required_fields=required, routes=routes, **rest)
    return _answer(run_in_app(lambda ports: usecases.create_terminal(ports, account_id, wish)))


@terminal.command("list")
@click.argument("account_id", metavar="ACCOUNT")
@answering
def list_all(account_id: str) -> Answer:
    """List the terminals of an account, oldest first."""
    found = run_in_app(lambda ports: usecases.list_terminals(ports, account_id))
    rows = [
        (each.id, each.label, each.kind.value, each.required_fields, "enabled" if each.enabled else "disabled")
        for each in found
    ]
    return Answer(
        document={"data": [terminal_document(each) for each in found]},
        text=table(("terminal", "label", "kind", "requires", "state"), rows),
    )


@terminal.command("disable")
@click.argument("terminal_id", metavar="ID")
@answering
@reasoned
def disable(terminal_id: str) -> Answer:
    """Refuse new payments by a terminal. Existing payments continue."""
    return _answer(run_in_app(lambda ports: usecases.disable_terminal(ports, terminal_id)))


@terminal.command("enable")
@click.argument("terminal_id", metavar="ID")
@answering
@reasoned
def enable(terminal_id: str) -> Answer:
    """Allow payments by a terminal again."""
    return _answer(run_in_app(lambda ports: usecases.enable_terminal(ports, terminal_id)))
