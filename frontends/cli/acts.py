"""`cambist act …`: what waits for a second operator."""

from collections.abc import Awaitable, Callable
from typing import Any

import click

from ...core.domain.operators.pending_acts import PendingAct
from ...core.usecases.operators import pending_acts as usecases
from ...ports.bundle import Ports
from .groups import group
from .output import Answer, table
from .session import answering, in_house, reasoned
from .views import act_document, act_text


@group()
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

    return _answer(usecases.get_act, act_id)


@act.command("confirm")
@click.argument("act_id", metavar="ID")
@answering
@reasoned
def confirm(act_id: str) -> Answer:
    """Have it done, as it was shown. Whoever asked for it cannot; refused where anything shown has changed since."""

    return _answer(usecases.confirm_act, act_id)


@act.command("reject")
@click.argument("act_id", metavar="ID")
@answering
@reasoned
def reject(act_id: str) -> Answer:
    """Have it come to nothing. Whoever asked for it withdraws it so."""

    return _answer(usecases.reject_act, act_id)


def _answer(do: Callable[[Ports, str], Awaitable[PendingAct]], act_id: str) -> Answer:
    async def work(ports: Ports) -> dict[str, Any]:
        return act_document(await do(ports, act_id), ports.clock.now())

    document = in_house(work)
    return Answer(document=document, text=act_text(document))
