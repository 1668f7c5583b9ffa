"""`cambist payment …`: operator actions on payments."""

from typing import Any

import click

from ...core.domain.days import iso
from ...core.domain.errors import shape_error
from ...core.domain.money import Rub
from ...core.domain.payments.payments import Payment
from ...core.domain.payments.suspense import Suspense
from ...core.usecases.operators import review as usecases
from ...core.usecases.refunds.suspense_return import return_suspense
from .groups import group
from .output import Answer, fields, table
from .session import answering, in_house, reasoned


@group()
def payment() -> None:
    """Decide on payments that need an operator."""


@payment.command("resolve")
@click.argument("payment_id", metavar="ID")
@click.argument("outcome", type=click.Choice(usecases.OUTCOMES))
@click.option("--amount", help="Amount received in RUB, if the bank could not report it.")
@answering
@reasoned
def resolve(payment_id: str, outcome: str, amount: str | None) -> Answer:
    """End the review of an amount_mismatch: credit the received amount (paid), or return it (failed)."""
    came = None if amount is None else _rub(amount)
    done = in_house(lambda ports: usecases.resolve_mismatch(ports, payment_id, outcome, amount=came))
    document = _document(done)
    return Answer(document=document, text=fields(document))


@payment.command("suspense")
@click.option("--account", "account_id", metavar="ACCOUNT", help="Only of this account.")
@answering
def suspense(account_id: str | None) -> Answer:
    """List transfers that could not be applied to a payment, oldest first."""
    rows = [_suspense(row) for row in in_house(lambda ports: usecases.list_suspense(ports, account_id))]
    titles = ("received_at", "amount_rub", "reason", "payment_id", "account_id", "mode", "id")
    return Answer(document={"data": rows}, text=table(titles, [[row[title] for title in titles] for row in rows]))


@payment.command("return")
@click.argument("suspense_id", metavar="SUSPENSE_ID")
@answering
@reasoned
def return_(suspense_id: str) -> Answer:
    """Return an unapplied transfer to its payer; the service sends it."""
    document = _suspense(in_house(lambda ports: return_suspense(ports, suspense_id)))
    return Answer(document=document, text=fields(document))


def _rub(text: str) -> Rub:
    try:
        return Rub.parse(text)
    except ValueError as error:
        raise shape_error("--amount", str(error)) from None


def _document(done: Payment) -> dict[str, Any]:
    return {
        "payment_id": done.id,
        "status": done.status.value,
        "amount_rub": str(done.amount),
        "actual_amount_rub": None if done.actual_amount is None else str(done.actual_amount),
    }


def _suspense(row: Suspense) -> dict[str, Any]:
    return {
        "id": row.id,
        "account_id": row.account_id,
        "mode": row.mode.value,
        "payment_id": row.payment_id,
        "amount_rub": str(row.amount),
        "reason": row.reason,
        "received_at": iso(row.received_at),
    }
