"""`cambist account …`"""

from collections.abc import Mapping
from typing import Any

import click

from ...core.domain.account_settings import ACCOUNT_SETTINGS
from ...core.usecases.accounts import accounts as usecases
from .arguments import assignments
from .output import Answer, fields, table
from .session import answering, in_house, reasoned
from .views import account_document, key_document


@click.group()
def account() -> None:
    """Merchants' accounts and their settings."""


@account.command("create")
@click.argument("name")
@answering
def create(name: str) -> Answer:
    """Open an account. It takes payments at once; the secrets are shown this once."""
    made = in_house(lambda ports: usecases.create_account(ports, name))
    pairs = {"live": made.live, "test": made.test}
    keys = table(("mode", "X-Api-Key", "X-Api-Secret"), [(m, p.api_key, p.api_secret) for m, p in pairs.items()])
    head = fields({"account": made.account_id, "default shop": made.default_shop_id})
    return Answer(document=made, text=f"{head}\n\n{keys}\n\nKeep the secrets: they cannot be shown again.")


@account.command("list")
@answering
def list_all() -> Answer:
    """All accounts, the oldest first."""
    documents = [account_document(each) for each in in_house(usecases.list_accounts)]
    rows = [(each["account_id"], each["name"], each["created_at"]) for each in documents]
    return Answer(document={"data": documents}, text=table(("account", "name", "created"), rows))


@account.command("show")
@click.argument("account_id", metavar="ID")
@answering
def show(account_id: str) -> Answer:
    """One account: settings and keys."""
    view = in_house(lambda ports: usecases.get_account(ports, account_id))
    document = account_document(view.account) | {"keys": [key_document(key) for key in view.keys]}
    keys = table(
        ("mode", "X-Api-Key", "created", "ends"),
        [(key["mode"], key["api_key"], key["created_at"], key["ends_at"]) for key in document["keys"]],
    )
    return Answer(document=document, text=f"{_text(document)}\n\n{keys}")


@account.command(
    "set",
    help="Change settings, all of them or none. Settings: "
    f"{', '.join(ACCOUNT_SETTINGS)}. Booleans are true or false; an empty value clears what may be empty.",
)
@click.argument("account_id", metavar="ID")
@click.argument("settings", metavar="NAME=VALUE...", nargs=-1, required=True)
@answering
@reasoned
def set_settings(account_id: str, settings: tuple[str, ...]) -> Answer:
    texts = assignments(settings)
    document = account_document(in_house(lambda ports: usecases.set_settings(ports, account_id, texts)))
    return Answer(document=document, text=_text(document))


def _text(document: Mapping[str, Any]) -> str:
    plain = {name: value for name, value in document.items() if name not in ("settings", "keys")}
    return f"{fields(plain)}\n\n{fields(document['settings'])}"
