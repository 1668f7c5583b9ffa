"""Shops of an account."""

from collections.abc import Sequence
from typing import Any

import msgspec

from ....core.domain.accounts.accounts import Account
from ....core.domain.accounts.shops import Shop
from ....core.usecases.accounts.shops import disable_shop, enable_shop, rename_shop, set_shop
from ....core.usecases.browse.browse import merged
from ....core.usecases.browse.leaves import Way
from ....ports.bundle import Ports
from ....ports.storage import OneOf, Unit
from ..columns import Column, merchant, when
from .kinds import ACCOUNT, Change, ConsoleAction, Doing, Entry, Kind, Part, Wish, by_id, switches


class ListedShop(Shop, frozen=True, kw_only=True):
    """A shop, and whether it is the default shop of its account, which cannot be disabled."""

    is_default: bool


async def _listed(unit: Unit, shops: Sequence[Shop]) -> list[ListedShop]:
    owners = tuple({each.account_id for each in shops})
    found = await unit[Account].find(id=OneOf(owners), limit=len(owners), readable=True)
    default = {each.default_shop_id for each in found}
    return [ListedShop(**msgspec.structs.asdict(each), is_default=each.id in default) for each in shops]


async def _read(ports: Ports, wish: Wish, after: Shop | None, limit: int) -> list[ListedShop]:
    account = wish.of("account")
    criteria = {} if account is None else {"account_id": account}
    async with ports.storage.unit() as unit:
        newest_first = wish.order == "newest"
        found = await merged(unit, [Way(Shop, criteria)], after, limit, by="id", newest_first=newest_first)
        return found.of(await _listed(unit, found))


async def _get(ports: Ports, shop_id: str) -> ListedShop | None:
    found = await by_id(Shop)(ports, shop_id)
    if found is None:
        return None
    async with ports.storage.unit() as unit:
        return next(iter(await _listed(unit, [found])))


def _facts(shop: ListedShop) -> list[tuple[str, Any]]:
    return [
        ("name", shop.name),
        ("shop_id", shop.id),
        ("account", shop.account_id),
        ("enabled", "yes, for good: it is the account's default shop" if shop.is_default else shop.enabled),
        ("markup", shop.markup or "none: it takes no payments"),
        ("return address", shop.return_url or "the account's"),
        ("created", shop.created_at),
    ]


async def _rename(doing: Doing) -> str:
    done = await rename_shop(doing.ports, doing.record.id, doing.given["name"])
    return f"It is named {done.name}."


async def _markup(doing: Doing) -> str:
    done = await set_shop(doing.ports, doing.record.id, {"markup": doing.given["markup"].strip()})
    return f"Its markup is {done.markup or 'none: it takes no payments'}."


async def _return_url(doing: Doing) -> str:
    done = await set_shop(doing.ports, doing.record.id, {"return_url": doing.given["url"].strip()})
    return f"Payers return to {done.return_url or 'the address of the account'}."


_DISABLE, _ENABLE = switches("shop", disable_shop, enable_shop, ends="no new payments and subscriptions")

SHOPS = Kind(
    name="shop",
    title="Shops",
    key="",
    columns=(
        when("created", lambda each: each.created_at),
        Column(title="name", cell=lambda each: each.name, width=24),
        Column(title="enabled", cell=lambda each: each.enabled, width=7),
        Column(title="markup", cell=lambda each: each.markup, width=8, right=True),
        merchant(14, 24),
        Column(title="shop", cell=lambda each: each.id, width=36, wide=True),
    ),
    read=_read,
    get=_get,
    facts=_facts,
    filters=(ACCOUNT,),
    orders=("oldest", "newest"),
    parts=(Part(title="Payments", key="a", of="payment", by="shop"),),
    actions=(
        ConsoleAction(
            name="shop.rename",
            title="Change name",
            key="c",
            entries=(Entry(name="name", label="Name", needed=True),),
            changes=lambda each: [Change("name", each.name, "what you type")],
            follows=lambda each, given: [Change("name", each.name, given.get("name") or "what you type")],
            run=_rename,
        ),
        ConsoleAction(
            name="shop.set",
            title="Markup",
            key="k",
            entries=(Entry(name="markup", label="Markup (empty: none)"),),
            changes=lambda each: [Change("markup", each.markup or "-", "-")],
            follows=lambda each, given: [Change("markup", each.markup or "-", given.get("markup") or "-")],
            run=_markup,
        ),
        ConsoleAction(
            name="shop.set",
            title="Return address",
            key="t",
            entries=(Entry(name="url", label="URL (empty: account's)"),),
            changes=lambda each: [Change("return_url", each.return_url or "-", "-")],
            follows=lambda each, given: [Change("return_url", each.return_url or "-", given.get("url") or "-")],
            run=_return_url,
        ),
        msgspec.structs.replace(_DISABLE, allowed=lambda each: each.enabled and not each.is_default),
        _ENABLE,
    ),
)
