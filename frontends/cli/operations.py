"""`cambist operation …`: operations whose outcome the bank never reported."""

from typing import Any

import click

from ...core.domain.days import iso
from ...core.usecases.operators import unanswered as usecases
from .groups import group
from .output import Answer, fields, table
from .session import answering, reasoned, run_in_app


@group()
def operation() -> None:
    """Resolve refunds, returns and payouts whose outcome their bank never reported."""


@operation.command("list")
@answering
def list_() -> Answer:
    """List operations that are not sent again, because the bank might execute a repeat as a second one. Oldest
    first."""
    rows = [_document(each) for each in run_in_app(usecases.list_unanswered)]
    titles = ("forgotten_at", "operation", "of", "object_id", "account_id", "mode")
    return Answer(document={"data": rows}, text=table(titles, [[row[title] for title in titles] for row in rows]))


@operation.command("end")
@click.argument("operation_id", metavar="OPERATION")
@click.argument("outcome", type=click.Choice(usecases.OUTCOMES))
@answering
@reasoned
def end(operation_id: str, outcome: str) -> Answer:
    """Record the outcome of an operation from the bank's own records: money sent (done) or not (failed).

    The bank is queried once more, and its answer takes precedence. After `failed` the money is back where it was, and
    another operation can send it.
    """
    document = _document(run_in_app(lambda ports: usecases.end_unanswered(ports, operation_id, outcome)))
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
