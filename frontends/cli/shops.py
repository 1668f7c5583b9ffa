"""`cambist shop …`: shops of accounts."""

import click

from ...core.domain.accounts.shops import Shop
from ...core.usecases.accounts import shops as usecases
from ...core.usecases.accounts.accounts import get_account
from ...ports.bundle import Ports
from .arguments import assignments
from .groups import group
from .output import Answer, fields, table
from .session import answering, reasoned, run_in_app
from .views import shop_document


@group()
def shop() -> None:
    """Manage the shops of an account."""


def _answer(changed: Shop) -> Answer:
    document = shop_document(changed)
    return Answer(document=document, text=fields(document))


@shop.command("create")
@click.argument("account_id", metavar="ACCOUNT")
@click.argument("name")
@click.option("--markup", help="Fraction such as 0.03. Without a markup the shop takes no payments yet.")
@answering
@reasoned
def create(account_id: str, name: str, markup: str | None) -> Answer:
    """Add a shop to an account."""
    return _answer(run_in_app(lambda ports: usecases.create_shop(ports, account_id, name, markup)))


@shop.command("rename")
@click.argument("shop_id", metavar="SHOP")
@click.argument("name")
@answering
@reasoned
def rename(shop_id: str, name: str) -> Answer:
    """Rename a shop; its id stays."""
    return _answer(run_in_app(lambda ports: usecases.rename_shop(ports, shop_id, name)))


@shop.command("set", help=f"Change settings of a shop: {', '.join(usecases.SHOP_SETTINGS)}. An empty value clears one.")
@click.argument("shop_id", metavar="SHOP")
@click.argument("settings", metavar="NAME=VALUE...", nargs=-1, required=True)
@answering
@reasoned
def set_settings(shop_id: str, settings: tuple[str, ...]) -> Answer:
    texts = assignments(settings)
    return _answer(run_in_app(lambda ports: usecases.set_shop(ports, shop_id, texts)))


@shop.command("disable")
@click.argument("shop_id", metavar="SHOP")
@answering
@reasoned
def disable(shop_id: str) -> Answer:
    """Refuse new payments of a shop. Existing payments continue."""
    return _answer(run_in_app(lambda ports: usecases.disable_shop(ports, shop_id)))


@shop.command("enable")
@click.argument("shop_id", metavar="SHOP")
@answering
@reasoned
def enable(shop_id: str) -> Answer:
    """Allow payments of a shop again."""
    return _answer(run_in_app(lambda ports: usecases.enable_shop(ports, shop_id)))


@shop.command("list")
@click.argument("account_id", metavar="ACCOUNT")
@answering
def list_all(account_id: str) -> Answer:
    """List the shops of an account."""

    async def work(ports: Ports) -> tuple[str, list[Shop]]:
        view = await get_account(ports, account_id)
        return view.account.default_shop_id, await usecases.list_shops(ports, account_id)

    default, shops = run_in_app(work)
    rows = [(each.id, each.name, _state(each, default), each.markup) for each in shops]
    return Answer(
        document={"default_shop_id": default, "data": [shop_document(each) for each in shops]},
        text=table(("shop", "name", "state", "markup"), rows),
    )


def _state(each: Shop, default: str) -> str:
    if each.id == default:
        return "default"
    return "enabled" if each.enabled else "disabled"
