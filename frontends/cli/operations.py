"""`cambist operation …`: what a bank never told the end of."""

from typing import Any

import click

from ...core.domain.days import iso
from ...core.usecases.operators import unanswered as usecases
from .groups import group
from .output import Answer, fields, table
from .session import answering, in_house, reasoned


@group()
def operation() -> None:
    """Refunds, returns and payouts that their bank has forgotten without telling the end."""


@operation.command("list")
@answering
def list_() -> Answer:
    """What is not sent again, because the bank might take a repeat for another one. Oldest first."""
    rows = [_document(each) for each in in_house(usecases.list_unanswered)]
    titles = ("forgotten_at", "operation", "of", "object_id", "account_id", "mode")
    return Answer(document={"data": rows}, text=table(titles, [[row[title] for title in titles] for row in rows]))


@operation.command("end")
@click.argument("operation_id", metavar="OPERATION")
@click.argument("outcome", type=click.Choice(usecases.OUTCOMES))
@answering
@reasoned
def end(operation_id: str, outcome: str) -> Answer:
    """Say what became of it, as the bank's own records show: the money went (done), or never will (failed).

    The bank is asked once more, and its answer counts for more. After `failed` the money is where it was
    before, and can be sent again by another operation.
    """
    document = _document(in_house(lambda ports: usecases.end_unanswered(ports, operation_id, outcome)))
    return Answer(document=document | {"outcome": outcome}, text=fields(document | {"outcome": outcome}))


def _document(row: usecases.Unanswered) -> dict[str, Any]:
    return {
        "operation": row.operation,
        "of": row.of,
        "object_id": row.object_id,
        "account_id": row.account_id,
        "mode": row.mode.value,
        "forgotten_at": iso(row.until),
    }
