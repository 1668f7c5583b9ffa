"""`cambist alarm …`: active alarms and alarm channels."""

from typing import Any

import click

from ...core.domain.days import iso_or_none
from ...core.usecases.alarms import channels as usecases
from ...core.usecases.alarms.channels import ShownChannel, ShownProblem
from ...ports.bundle import Ports
from .groups import group
from .output import Answer, complain, give, table
from .session import REFUSED, answering, guarded, run_in_app


@group()
def alarm() -> None:
    """Show active alarms and test the alarm channels."""


def _problem_document(shown: ShownProblem) -> dict[str, Any]:
    problem = shown.problem
    return {
        "id": problem.id,
        "urgent": problem.urgent,
        "since": iso_or_none(problem.since),
        "told_by": list(shown.told_by),
        "text": problem.text,
    }


def _channel_document(shown: ShownChannel) -> dict[str, Any]:
    return {
        "channel": shown.name,
        "last_told": iso_or_none(shown.told_at),
        "knows": shown.knows,
        "failing_since": iso_or_none(shown.failing_since),
        "fault": shown.fault,
    }


@alarm.command("list")
@answering
def list_all() -> Answer:
    """List active alarms, the channels that delivered them, and the state of the channels."""

    async def work(ports: Ports) -> tuple[list[ShownProblem], list[ShownChannel]]:
        return await usecases.list_problems(ports), await usecases.list_channels(ports)

    problems, channels = run_in_app(work)
    document = {
        "problems": [_problem_document(each) for each in problems],
        "channels": [_channel_document(each) for each in channels],
    }
    parts = [_listed(rows, none) for rows, none in zip(document.values(), ("nothing alarms", _NO_CHANNEL), strict=True)]
    return Answer(document=document, text="\n\n".join(parts))


_NO_CHANNEL = "no alarm channel is set: CAMBIST_ALARMS (docs/alarms.md)"


def _listed(rows: list[dict[str, Any]], none: str) -> str:
    return table(tuple(rows[0]), [tuple(row.values()) for row in rows]) if rows else none


@alarm.command("test")
@click.option("--channel", metavar="NAME", help="Only by this channel.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def send_test(*, channel: str | None, as_json: bool) -> None:
    """Send a test message by every channel. Exit 1 when a channel fails, or when none is set."""
    said = guarded(lambda: run_in_app(lambda ports: usecases.try_channels(ports, channel)), as_json=as_json)
    if not said:
        complain("NOT_CONFIGURED", [_NO_CHANNEL], as_json=as_json)
        raise click.exceptions.Exit(REFUSED)
    rows = [{"channel": name, "taken": fault is None, "fault": fault} for name, fault in said.items()]
    give(Answer(document={"data": rows}, text=_listed(rows, "")), as_json=as_json)
    if any(said.values()):
        raise click.exceptions.Exit(REFUSED)
