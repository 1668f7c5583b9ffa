"""`cambist link …`: payment links of merchants."""

from typing import Any

import click

from ...core.domain.accounts.accounts import Caller, Mode
from ...core.domain.days import iso, iso_or_none
from ...core.domain.payments.payment_links import PaymentLinkOrder
from ...core.usecases.accounts.accounts import get_account
from ...core.usecases.payment_links.payment_links import (
    LinkFilter,
    ShownLink,
    archive_link,
    create_link,
    get_link,
    list_links,
)
from ...ports.bundle import Ports
from .groups import group
from .output import Answer, fields, table
from .session import answering, reasoned, run_in_app

_MODE = click.option(
    "--mode", type=click.Choice([each.value for each in Mode]), default=Mode.LIVE.value, show_default=True
)


@group()
def link() -> None:
    """Create, list and archive payment links."""


def _document(ports: Ports, shown: ShownLink) -> dict[str, Any]:
    found = shown.link
    return {
        "id": found.id,
        "url": ports.urls.link_page(found.id),
        "status": shown.status.value,
        "description": found.description,
        "amount_rub": None if found.amount is None else str(found.amount),
        "payments": shown.totals.payments,
        "payments_max": found.payments_max,
        "paid_rub": str(shown.totals.amount),
        "shop_id": found.shop_id,
        "external_id": found.external_id,
        "expires_at": iso_or_none(found.expires_at),
        "archived_at": iso_or_none(found.archived_at),
        "created_at": iso(found.created_at),
    }


async def _caller(ports: Ports, account_id: str, mode: str) -> Caller:
    return Caller(account=(await get_account(ports, account_id)).account, mode=Mode(mode), key_id="")


@link.command("create")
@click.argument("account_id", metavar="ACCOUNT")
@click.argument("description")
@click.option("--amount", "amount_rub", metavar="RUB", help="Default: the payer chooses it.")
@click.option("--reusable", is_flag=True, help="It may be paid more than once.")
@click.option("--shop", "shop_id", metavar="SHOP", help="Default: the account's default shop.")
@click.option("--order", "external_id", metavar="ORDER", help="The merchant's own id.")
@click.option("--until", "expires_at", metavar="TIME", help="Deadline, at most 30 days ahead.")
@_MODE
@answering
@reasoned
def create(account_id: str, description: str, *, mode: str, reusable: bool, **given: Any) -> Answer:
    """Create a payment link, and print its address."""
    order = PaymentLinkOrder(description=description, reusable=reusable or None, **given)

    async def work(ports: Ports) -> dict[str, Any]:
        caller = await _caller(ports, account_id, mode)
        made = await create_link(ports, caller, ports.ids.uuid(), lambda: order)
        return _document(ports, made.resource)

    document = run_in_app(work)
    return Answer(document=document, text=fields(document))


@link.command("list")
@click.argument("account_id", metavar="ACCOUNT")
@_MODE
@click.option("--shop", "shop_id", metavar="SHOP", help="Only of this shop.")
@click.option("--page", type=click.IntRange(1, 100_000), default=1, show_default=True)
@click.option("--per-page", type=click.IntRange(1, 1000), default=50, show_default=True)
@answering
def list_all(account_id: str, *, mode: str, shop_id: str | None, page: int, per_page: int) -> Answer:
    """List an account's payment links, newest first."""

    async def read(ports: Ports) -> tuple[list[dict[str, Any]], int]:
        caller = await _caller(ports, account_id, mode)
        found = await list_links(ports, caller, LinkFilter(shop_id=shop_id), page, per_page)
        return [_document(ports, each) for each in found.records], found.total

    rows, total = run_in_app(read)
    titles = ("id", "status", "amount_rub", "payments", "paid_rub", "description")
    text = table(titles, [[row[title] for title in titles] for row in rows])
    return Answer(document={"data": rows, "total": total}, text=text)


@link.command("show")
@click.argument("account_id", metavar="ACCOUNT")
@click.argument("link_id", metavar="LINK")
@_MODE
@answering
def show(account_id: str, link_id: str, *, mode: str) -> Answer:
    """Show a payment link with the sums of its paid payments."""

    async def read(ports: Ports) -> dict[str, Any]:
        return _document(ports, await get_link(ports, await _caller(ports, account_id, mode), link_id))

    document = run_in_app(read)
    return Answer(document=document, text=fields(document))


@link.command("archive")
@click.argument("account_id", metavar="ACCOUNT")
@click.argument("link_id", metavar="LINK")
@_MODE
@answering
@reasoned
def archive(account_id: str, link_id: str, *, mode: str) -> Answer:
    """Archive a payment link: nobody can pay by it any more."""

    async def work(ports: Ports) -> dict[str, Any]:
        return _document(ports, await archive_link(ports, await _caller(ports, account_id, mode), link_id))

    document = run_in_app(work)
    return Answer(document=document, text=fields(document))
