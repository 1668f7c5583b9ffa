"""`cambist action …`: operator actions that wait for a second operator."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import click

from ...core.domain.operators.pending_actions import PendingAction
from ...core.usecases.operators import pending_actions as usecases
from ...ports.bundle import Ports
from .groups import group
from .output import Answer, fields, table
from .session import answering, loaded_settings, reasoned, run_in_app
from .views import action_document, action_text

_KEPT = "Keep the secrets: they cannot be shown again."


@group()
def action() -> None:
    """Review operator actions that wait for a second operator (the setting four_eyes)."""


@action.command("list")
@click.option("--all", "is_all", is_flag=True, help="List the newest actions in any status.")
@answering
def list_(*, is_all: bool) -> Answer:
    """List the waiting actions, oldest first."""

    async def work(ports: Ports) -> list[dict[str, Any]]:
        found = await usecases.list_actions(ports, waiting=not is_all)
        return [action_document(each, ports.clock.now()) for each in found]

    rows = run_in_app(work)
    titles = ("created_at", "status", "operator", "action", "object_id", "decided_by", "expires_at", "action_id")
    return Answer(document={"data": rows}, text=table(titles, [[row[title] for title in titles] for row in rows]))


@action.command("show")
@click.argument("action_id", metavar="ID")
@answering
def show(action_id: str) -> Answer:
    """Show one action: its operator, reason and changes."""

    return _answer(usecases.get_action, action_id)


@action.command("confirm")
@click.argument("action_id", metavar="ID")
@answering
@reasoned
def confirm(action_id: str) -> Answer:
    """Carry out an action of another operator as it was shown. New secrets are shown only once."""

    settings = loaded_settings().settings
    from ..app.maintenance import open_beside

    async def work(ports: Ports) -> tuple[dict[str, Any], Mapping[str, str]]:
        done = await usecases.confirm_action(ports, action_id, open_beside(settings))
        return action_document(done.action, ports.clock.now()), done.secrets

    document, secrets = run_in_app(work)
    shown = f"{action_text(document)}\n\n{fields(dict(secrets))}\n\n{_KEPT}" if secrets else action_text(document)
    return Answer(document={**document, **({"secrets": dict(secrets)} if secrets else {})}, text=shown)


@action.command("reject")
@click.argument("action_id", metavar="ID")
@answering
@reasoned
def reject(action_id: str) -> Answer:
    """Reject a waiting action. An operator can also withdraw their own action this way."""

    return _answer(usecases.reject_action, action_id)


def _answer(do: Callable[[Ports, str], Awaitable[PendingAction]], action_id: str) -> Answer:
    async def work(ports: Ports) -> dict[str, Any]:
        return action_document(await do(ports, action_id), ports.clock.now())

    document = run_in_app(work)
    return Answer(document=document, text=action_text(document))
