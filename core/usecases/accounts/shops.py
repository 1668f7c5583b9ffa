"""Shops, which only operators create and change. Merchants only name them (docs/concepts.md "Shops")."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from ....ports.bundle import Ports
from ....ports.faults import Conflict
from ....ports.storage import Unit
from ...domain.account_settings import BRAND_SETTINGS, Setting, read_settings
from ...domain.accounts.accounts import Account
from ...domain.accounts.shops import Shop, fold_name, shop_markup, shop_name
from ...domain.errors import Refusal
from ...domain.web_addresses import web_address
from ..actions.four_eyes import gated
from ..common.units import retrying, unit_of_work
from .accounts import find_account, storable

NAME_TAKEN = "shops_name"
"""Unique rule of the storage: a name is unique in its account, ignoring case."""


def _markup(text: str) -> str:
    try:
        return shop_markup(text)
    except Refusal as refusal:
        raise ValueError(refusal.message) from None


SHOP_SETTINGS: Mapping[str, Setting] = {
    "markup": Setting(read=_markup, form="0 to 0.5", meaning="the service's part of a payment", clearable=True),
    "return_url": Setting(read=web_address, form="web address", meaning="where its payers go back to", clearable=True),
    **BRAND_SETTINGS,
}


async def find_shop(unit: Unit, shop_id: str) -> Shop:
    """Return a shop. Raises: Refusal SHOP_NOT_FOUND."""
    shop = await unit[Shop].get(shop_id) if storable(shop_id) else None
    if shop is None:
        raise Refusal("SHOP_NOT_FOUND", "There is no shop of this id")
    return shop


async def _naming(ports: Ports, work: Callable[[Unit], Awaitable[Shop]]) -> Shop:
    try:
        return await retrying(ports.storage, work)
    except Conflict as conflict:
        if conflict.rule != NAME_TAKEN:
            raise
        raise Refusal("VALIDATION_ERROR", "The account has a shop of this name already (case does not count)") from None


async def create_shop(ports: Ports, account_id: str, name: str, markup: str | None = None) -> Shop:
    """Create an enabled shop. Without a markup it takes no payments yet (`422 SHOP_MARKUP_NOT_SET`).

    Raises: Refusal VALIDATION_ERROR, ACCOUNT_NOT_FOUND; Waits when a second operator has to confirm the markup.
    """
    ports = gated(ports, "create_shop", account_id, name=name, markup=markup)
    kept_name = shop_name(name)
    shop = Shop(
        id=ports.ids.uuid(),
        account_id=account_id,
        name=kept_name,
        name_folded=fold_name(kept_name),
        created_at=ports.clock.now(),
        markup=None if markup is None else shop_markup(markup),
    )

    async def work(unit: Unit) -> Shop:
        await find_account(unit, account_id)
        return unit[Shop].add(shop)

    return await _naming(ports, work)


async def _change(ports: Ports, shop_id: str, **changes: Any) -> Shop:
    async def work(unit: Unit) -> Shop:
        return unit[Shop].save(msgspec.structs.replace(await find_shop(unit, shop_id), **changes))

    return await _naming(ports, work)


async def rename_shop(ports: Ports, shop_id: str, name: str) -> Shop:
    """Rename a shop; its id never changes. Raises: Refusal VALIDATION_ERROR, SHOP_NOT_FOUND."""
    kept_name = shop_name(name)
    return await _change(ports, shop_id, name=kept_name, name_folded=fold_name(kept_name))


async def set_shop(ports: Ports, shop_id: str, texts: Mapping[str, str]) -> Shop:
    """Set settings of a shop by name. An empty text clears a setting.

    Raises: Refusal VALIDATION_ERROR, SHOP_NOT_FOUND; Waits when a second operator has to confirm the markup.
    """
    ports = gated(ports, "set_shop", shop_id, None, **texts)
    return await _change(ports, shop_id, **read_settings(texts, SHOP_SETTINGS))


@unit_of_work()
async def disable_shop(_: Ports, unit: Unit, shop_id: str) -> Shop:
    """Stop taking new payments and subscriptions for a shop. Existing ones continue.

    Raises: Refusal SHOP_NOT_FOUND; INVALID_STATE for a default shop, which cannot be disabled.
    """
    shop = await find_shop(unit, shop_id)
    account = await unit[Account].get(shop.account_id)
    if account is not None and account.default_shop_id == shop.id:
        raise Refusal("INVALID_STATE", "The default shop of an account cannot be disabled")
    return unit[Shop].save(msgspec.structs.replace(shop, enabled=False))


async def enable_shop(ports: Ports, shop_id: str) -> Shop:
    """Take payments for a shop again. Raises: Refusal SHOP_NOT_FOUND."""
    return await _change(ports, shop_id, enabled=True)


async def list_shops(ports: Ports, account_id: str) -> list[Shop]:
    """Return all shops of an account, oldest first. The oldest is the default shop. Raises: Refusal
    ACCOUNT_NOT_FOUND."""
    async with ports.storage.unit() as unit:
        await find_account(unit, account_id)
    return [shop async for batch in ports.storage.scan(Shop, account_id=account_id) for shop in batch]
