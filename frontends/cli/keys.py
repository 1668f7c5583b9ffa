"""`cambist key …`: API keys of accounts."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import click
from msgspec import UNSET

from ...core.domain.accounts.accounts import ApiKey, Mode
from ...core.domain.accounts.key_terms import Right
from ...core.domain.days import iso
from ...core.usecases.accounts import accounts as of_accounts
from ...core.usecases.accounts import keys as usecases
from .arguments import Duration
from .groups import group
from .output import Answer, fields, table
from .session import answering, reasoned, run_in_app
from .views import key_document, keys_table

_MODE = click.option("--mode", type=click.Choice([mode.value for mode in Mode]), required=True)
_KEPT = "Keep the secret: it cannot be shown again."


@group()
def key() -> None:
    """Create, change and end API keys."""


def _terms(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of `create` and `set` that limit a key."""
    rights = click.option(
        "--right",
        "rights",
        type=click.Choice([right.value for right in Right]),
        multiple=True,
        help="Only this right. May be repeated.",
    )
    addresses = click.option(
        "--address", "addresses", multiple=True, help="Only from this address or network. May be repeated."
    )
    return rights(addresses(command))


@key.command("list")
@click.argument("account_id", metavar="ACCOUNT")
@answering
def list_all(account_id: str) -> Answer:
    """List the keys of an account with their rights, last use and end."""
    view = run_in_app(lambda ports: of_accounts.get_account(ports, account_id))
    documents = [key_document(each, view.uses.get(each.id)) for each in view.keys]
    return Answer(document={"data": documents}, text=keys_table(documents))


@key.command("create")
@click.argument("account_id", metavar="ACCOUNT")
@_MODE
@click.option("--name", required=True, help="Name of the key, such as nightly-report.")
@_terms
@answering
@reasoned
def create(account_id: str, mode: str, name: str, rights: tuple[str, ...], addresses: tuple[str, ...]) -> Answer:
    """Create a further key pair with fewer rights. The secret is shown only once."""
    made = run_in_app(
        lambda ports: usecases.create_key(
            ports, account_id, Mode(mode), name, rights=rights or None, addresses=addresses or None
        )
    )
    head = fields({"mode": mode, "name": name, **_pair(made)})
    document = {"account_id": account_id, "mode": mode, "name": name, **_document(made)}
    return Answer(document=document, text=f"{head}\n\n{_KEPT}")


@key.command("set")
@click.argument("api_key", metavar="KEY")
@_terms
@click.option("--all-rights", is_flag=True, help="Remove the limit on rights.")
@click.option("--any-address", is_flag=True, help="Remove the limit on addresses.")
@answering
@reasoned
def set_terms(
    api_key: str, rights: tuple[str, ...], addresses: tuple[str, ...], *, all_rights: bool, any_address: bool
) -> Answer:
    """Change the limits of a key; its secret stays. Limits that you do not name stay as they are."""
    if (rights and all_rights) or (addresses and any_address):
        raise click.UsageError("give --right or --all-rights, and --address or --any-address, not both")
    if not (rights or addresses or all_rights or any_address):
        raise click.UsageError("name what to change")
    changed = run_in_app(
        lambda ports: usecases.set_key(
            ports,
            api_key,
            rights=None if all_rights else rights or UNSET,
            addresses=None if any_address else addresses or UNSET,
        )
    )
    return _shown(changed)


@key.command("end")
@click.argument("api_key", metavar="KEY")
@click.option("--overlap", type=Duration(), help="How long the key still works (24h). Default: it ends at once.")
@answering
@reasoned
def end(api_key: str, overlap: timedelta | None) -> Answer:
    """End a key that was made by `key create`. The mode's own key can only be rotated."""
    return _shown(run_in_app(lambda ports: usecases.end_key(ports, api_key, overlap)))


@key.command("rotate")
@click.argument("account_id", metavar="ACCOUNT")
@_MODE
@click.option("--name", help="Name of the key. Default: the mode's own.")
@click.option("--overlap", type=Duration(), help="How long the old pair still works (24h). Default: it ends at once.")
@answering
@reasoned
def rotate(account_id: str, mode: str, name: str | None, overlap: timedelta | None) -> Answer:
    """Create a new key pair with the rights of the old one. The secret is shown only once."""
    made = run_in_app(lambda ports: usecases.rotate_key(ports, account_id, Mode(mode), overlap, name=name))
    replaced = [{"api_key": old.api_key, "ends_at": iso(old.ends_at)} for old in made.replaced]
    head = fields({"mode": mode, **_pair(made)})
    ended = table(("replaced", "ends"), [(old["api_key"], old["ends_at"]) for old in replaced])
    return Answer(
        document={"account_id": account_id, "mode": mode, **_document(made), "replaced": replaced},
        text=f"{head}\n\n{ended}\n\n{_KEPT}",
    )


def _pair(made: usecases.NewKey) -> dict[str, str]:
    return {"X-Api-Key": made.pair.api_key, "X-Api-Secret": made.pair.api_secret}


def _document(made: usecases.NewKey) -> dict[str, Any]:
    return {"api_key": made.pair.api_key, "api_secret": made.pair.api_secret}


def _shown(changed: ApiKey) -> Answer:
    document = key_document(changed, None)
    return Answer(document=document, text=keys_table([document]))
