"""`cambist operator …`: operators of the installation and their keys."""

from typing import Any

import click

from ...core.domain.days import iso, iso_or_none
from ...core.domain.operators.operators import Operator
from ...core.usecases.operators import operators as usecases
from .groups import group
from .output import Answer, fields, table
from .session import answering, reasoned, run_in_app


@group()
def operator() -> None:
    """Manage operators of the installation and their keys."""


@operator.command("create")
@click.argument("name")
@answering
@reasoned
def create(name: str) -> Answer:
    """Create an operator with a personal key. The key is shown only once."""
    made = run_in_app(lambda ports: usecases.create_operator(ports, name))
    document = {**_document(made.operator), "operator_key": made.key.text}
    text = fields({"operator": name, "CAMBIST_OPERATOR_KEY": made.key.text})
    return Answer(document=document, text=f"{text}\n\nKeep the key: it cannot be shown again.")


@operator.command("end")
@click.argument("name")
@answering
@reasoned
def end(name: str) -> Answer:
    """End an operator's key at once. The name is never used again."""
    document = _document(run_in_app(lambda ports: usecases.end_operator(ports, name)))
    return Answer(document=document, text=fields(document))


@operator.command("list")
@answering
def list_all() -> Answer:
    """List all operators, oldest first."""
    documents = [_document(each) for each in run_in_app(usecases.list_operators)]
    titles = ("name", "created_at", "ended_at")
    rows = [[row[title] for title in titles] for row in documents]
    return Answer(document={"data": documents}, text=table(titles, rows))


def _document(found: Operator) -> dict[str, Any]:
    return {"name": found.name, "created_at": iso(found.created_at), "ended_at": iso_or_none(found.ended_at)}
