"""`cambist unreadable …`: rows that this program cannot read."""

from typing import Any

import click

from ...core.domain.days import iso
from ...core.usecases.operators import unreadable as usecases
from ...ports.unreadable import UnreadableRow
from .groups import group
from .output import Answer, fields, table
from .session import answering, reasoned, run_in_app


@group()
def unreadable() -> None:
    """Manage rows that cannot be read: damaged, or written by a newer version."""


def _document(row: UnreadableRow) -> dict[str, Any]:
    return {
        "row": row.id,
        "why": row.why,
        "found_at": iso(row.found_at),
        "found_by": row.found_by,
        "set_aside": row.held is not None,
    }


@unreadable.command("list")
@answering
def list_all() -> Answer:
    """List the known unreadable rows by table and id. Their content is not shown."""
    rows = [_document(row) for row in run_in_app(usecases.list_unreadable)]
    titles = ("row", "why", "found_at", "found_by", "set_aside")
    return Answer(document={"data": rows}, text=table(titles, [[row[title] for title in titles] for row in rows]))


@unreadable.command()
@answering
def retry() -> Answer:
    """Read these rows again after a repair, and resume the readable ones. Workers do so when they start and every 10
    minutes."""

    document = {"readable_again": run_in_app(usecases.take_up)}
    return Answer(document=document, text=fields(document))


@unreadable.command()
@click.argument("row", metavar="ROW")
@answering
@reasoned
def forget(row: str) -> Answer:
    """Remove ROW from the list once it is dealt with. A job that was set aside is deleted for good."""
    document = _document(run_in_app(lambda ports: usecases.forget_unreadable(ports, row)))
    return Answer(document=document, text=fields(document))
