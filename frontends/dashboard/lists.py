"""Parts that list pages share: the page number, the pager, shops, and filters by date."""

from collections.abc import Mapping, Sequence

from ...core.domain.days import read_moment
from ...core.domain.errors import Refusal
from ...core.usecases.accounts.shops import list_shops
from ...core.usecases.paging import Page as Found
from .blocks import Field, Link
from .web import Ask

SIZE = 50
LAST = 20_000


def number_of(ask: Ask) -> int:
    """Return the number of the wanted page of a list; the first for anything else than a number."""
    text = ask.query.get("page", "1")
    return min(int(text), LAST) if text.isascii() and text.isdigit() and len(text) < 8 and int(text) else 1


def pager(ask: Ask, found: Found[object]) -> Sequence[Link]:
    """Return the links to the pages beside this one."""
    links = []
    if found.number > 1:
        links.append(Link(ask.t("newer"), ask.here(page=str(found.number - 1))))
    if found.number * found.size < found.total:
        links.append(Link(ask.t("older"), ask.here(page=str(found.number + 1))))
    return links


async def shop_names(ask: Ask) -> Mapping[str, str]:
    """Return the names of the account's shops that the person may see, by id."""
    found = await list_shops(ask.ports, ask.actor.account.id)
    return {shop.id: shop.name for shop in found if ask.caller.sees_shop(shop.id)}


def shop_filter(ask: Ask, names: Mapping[str, str]) -> tuple[str | None, list[Field]]:
    """Return the shop of a list and its filter. A person limited to shops always sees one of them."""
    limited = ask.caller.shops is not None
    given = ask.query.get("shop_id") or None
    chosen = given if given in names else next(iter(names), None) if limited else None
    if len(names) < 2:
        return chosen, []
    options = [*(() if limited else [("", ask.t("all"))]), *names.items()]
    return chosen, [Field(name="shop_id", label=ask.t("shop"), type="select", value=chosen or "", options=options)]


def date_fields(ask: Ask) -> list[Field]:
    """Return the fields of a filter by Moscow days."""
    return [
        Field(name="from", label=ask.t("from"), type="date", value=ask.query.get("from", "")),
        Field(name="to", label=ask.t("to"), type="date", value=ask.query.get("to", "")),
    ]


def dates(ask: Ask) -> tuple[str | None, str | None]:
    """Return the bounds of the filter: from the first moment of a Moscow day, to the end of another. A text that is no
    day counts as absent."""
    return _bound(ask.query.get("from", ""), "00:00:00"), _bound(ask.query.get("to", ""), "23:59:59.999")


def _bound(day: str, time: str) -> str | None:
    text = f"{day}T{time}+03:00"
    try:
        read_moment("date", text)
    except Refusal:
        return None
    return text


def total_of(ask: Ask, found: Found[object]) -> str:
    return ask.t("total", total=ask.number(found.total))
