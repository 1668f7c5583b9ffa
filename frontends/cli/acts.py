"""`cambist act …`: what waits for a second operator."""

from typing import Any

import click

from ...core.usecases.operators import pending_acts as usecases
from ...ports.bundle import Ports
from .output import Answer, table
from .session import answering, in_house, reasoned
from .views import act_document, act_text


@click.group()
def act() -> None:
    """Acts that wait until a second operator confirms them (the setting four_eyes)."""


@act.command("list")
@click.option("--all", "is_all", is_flag=True, help="The newest, whatever became of them.")
@answering
def list_(*, is_all: bool) -> Answer:
    """What waits, the oldest first."""

    async def work(ports: Ports) -> list[dict[str, Any]]:
        found = await usecases.list_acts(ports, waiting=not is_all)
        return [act_document(each, ports.clock.now()) for each in found]

    rows = in_house(work)
    titles = ("created_at", "status", "operator", "act", "object_id", "decided_by", "expires_at", "act_id")
    return Answer(document={"data": rows}, text=table(titles, [[row[title] for title in titles] for row in rows]))


@act.command("show")
@click.argument("act_id", metavar="ID")
@answering
def show(act_id: str) -> Answer:
    """One act: who asked for what, and what it changes."""

    async def work(ports: Ports) -> dict[str, Any]:
        return act_document(await usecases.get_act(ports, act_id), ports.clock.now())

    return _answer(in_house(work))


@act.command("confirm")
@click.argument("act_id", metavar="ID")
@answering
@reasoned
def confirm(act_id: str) -> Answer:
    """Have it done, as it was shown. Whoever asked for it cannot; refused where anything shown has changed since."""

    async def work(ports: Ports) -> dict[str, Any]:
        return act_document(await usecases.confirm_act(ports, act_id), ports.clock.now())

    return _answer(in_house(work))


@act.command("reject")
@click.argument("act_id", metavar="ID")
@answering
@reasoned
def reject(act_id: str) -> Answer:
    """Have it come to nothing. Whoever asked for it withdraws it so."""

    async def work(ports: Ports) -> dict[str, Any]:
        return act_document(await usecases.reject_act(ports, act_id), ports.clock.now())

    return _answer(in_house(work))


def _answer(document: dict[str, Any]) -> Answer:
    return Answer(document=document, text=act_text(document))
