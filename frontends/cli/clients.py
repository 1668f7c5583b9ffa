"""`cambist client …`: operator actions on end clients. Phones are not shown."""

from typing import Any

import click
import msgspec

from ...core.domain.accounts.accounts import Mode
from ...core.domain.days import iso, iso_or_none
from ...core.domain.kyc.clients import Client, client_status
from ...core.usecases.kyc.clients import every_client, set_blocked
from ...core.usecases.operators.client_forgetting import forget_client, remains
from .groups import group
from .output import Answer, fields, table
from .session import answering, reasoned, run_in_app


@group()
def client() -> None:
    """Manage end clients of merchants."""


@client.command("list")
@click.argument("account_id", metavar="ACCOUNT")
@click.option("--mode", type=click.Choice([mode.value for mode in Mode]), help="Only of this mode.")
@answering
def list_(account_id: str, mode: str | None) -> Answer:
    """List an account's clients, newest first; at most 1000."""
    wanted = None if mode is None else Mode(mode)
    rows = [_document(each) for each in run_in_app(lambda ports: every_client(ports, account_id, wanted))]
    titles = ("created_at", "kyc_status", "kyc_verified_at", "client_ref", "mode", "client_id")
    return Answer(document={"data": rows}, text=table(titles, [[row[title] for title in titles] for row in rows]))


@client.command("block")
@click.argument("client_id", metavar="ID")
@answering
@reasoned
def block(client_id: str) -> Answer:
    """Block a client: no payments that require KYC, and no exchanges."""
    return _answer(run_in_app(lambda ports: set_blocked(ports, client_id, True)))


@client.command("unblock")
@click.argument("client_id", metavar="ID")
@answering
@reasoned
def unblock(client_id: str) -> Answer:
    """Unblock a client; the verification stays as it was."""
    return _answer(run_in_app(lambda ports: set_blocked(ports, client_id, False)))


@client.command("forget")
@click.argument("client_id", metavar="ID")
@click.option("--yes", is_flag=True, help="Skip the confirmation.")
@answering
@reasoned
def forget(client_id: str, *, yes: bool) -> Answer:
    """Delete a client's personal data for good: phone, documents, events. Exchanges and payments stay."""
    if not yes:
        click.confirm("This cannot be undone. Forget the client?", abort=True, err=True)
    done = run_in_app(lambda ports: forget_client(ports, client_id))
    document = msgspec.structs.asdict(done) | {"checks": list(done.checks)}
    said = fields({**document, "checks": ", ".join(done.checks) or None})
    return Answer(document=document, text=f"{said}\n{remains(done)}")


def _answer(done: Client) -> Answer:
    document = _document(done)
    return Answer(document=document, text=fields(document))


def _document(done: Client) -> dict[str, Any]:
    return {
        "client_id": done.id,
        "account_id": done.account_id,
        "mode": done.mode.value,
        "kyc_status": client_status(done).value,
        "kyc_verified_at": iso_or_none(done.verified_at),
        "client_ref": done.account_number,
        "created_at": iso(done.created_at),
        "updated_at": iso(done.updated_at),
    }
