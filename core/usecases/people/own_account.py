"""Settings and shops that a merchant's people change themselves (docs/dashboard.md "Settings"). The operator changes
the others."""

from collections.abc import Mapping

from ....ports.bundle import Ports
from ....ports.storage import Unit
from ...domain.accounts.accounts import Account
from ...domain.accounts.shops import Shop
from ...domain.errors import Refusal
from ...domain.people.roles import PersonRight
from ..accounts.accounts import set_settings
from ..accounts.shops import create_shop, disable_shop, enable_shop, rename_shop, set_shop
from ..webhooks.endpoint import set_own_headers
from .sessions import Actor, by_person, require

OWN_SETTINGS: Mapping[str, PersonRight] = {
    "payout_wallet": PersonRight.PAYOUT_DETAILS,
    "webhook_url": PersonRight.WEBHOOKS,
    "webhook_events": PersonRight.WEBHOOKS,
    "webhook_secret": PersonRight.WEBHOOKS,
    "return_url": PersonRight.SHOPS,
    "auto_return": PersonRight.SHOPS,
    "proof_reminders": PersonRight.SHOPS,
    "alarm_email": PersonRight.SHOPS,
}
"""The settings of an account that its people may change, with the right for each."""


async def change_settings(ports: Ports, actor: Actor, texts: Mapping[str, str]) -> Account:
    """Change settings of the account by name; all of them or none.

    Raises: Refusal PERSON_RIGHT_MISSING, STEP_UP_NEEDED, VALIDATION_ERROR, INVALID_STATE; Waits when two operators
    guard the change.
    """
    for name in texts:
        if name not in OWN_SETTINGS:
            raise Refusal("VALIDATION_ERROR", f"{name} is set by the operator of the service")
        require(actor, OWN_SETTINGS[name])
    return await set_settings(by_person(ports, actor, "account.set", actor.account.id), actor.account.id, texts)


async def change_webhook_headers(ports: Ports, actor: Actor, headers: Mapping[str, str]) -> Account:
    """Replace the static headers of the account's own webhook endpoint. Raises: as `change_settings`."""
    require(actor, PersonRight.WEBHOOKS)
    ports = by_person(ports, actor, "account.headers", actor.account.id)
    return await set_own_headers(ports, actor.account.id, headers)


async def open_shop(ports: Ports, actor: Actor, name: str) -> Shop:
    """Create a shop. It takes payments once the operator has set its markup. Raises: as `change_settings`."""
    require(actor, PersonRight.SHOPS)
    return await create_shop(by_person(ports, actor, "shop.create"), actor.account.id, name)


async def change_shop(
    ports: Ports, actor: Actor, shop_id: str, *, name: str | None = None, return_url: str | None = None
) -> Shop:
    """Rename a shop, or set its return address; an empty one clears it. Raises: as `change_settings`;
    SHOP_NOT_FOUND."""
    require(actor, PersonRight.SHOPS)
    found = await _own(ports, actor, shop_id)
    if name is not None and name != found.name:
        found = await rename_shop(by_person(ports, actor, "shop.rename", shop_id), shop_id, name)
    if return_url is not None and return_url != (found.return_url or ""):
        found = await set_shop(by_person(ports, actor, "shop.set", shop_id), shop_id, {"return_url": return_url})
    return found


async def switch_shop(ports: Ports, actor: Actor, shop_id: str, *, enabled: bool) -> Shop:
    """Disable or enable a shop. Raises: as `change_shop`; INVALID_STATE for the default shop."""
    require(actor, PersonRight.SHOPS)
    await _own(ports, actor, shop_id)
    if enabled:
        return await enable_shop(by_person(ports, actor, "shop.enable", shop_id), shop_id)
    return await disable_shop(by_person(ports, actor, "shop.disable", shop_id), shop_id)


async def _own(ports: Ports, actor: Actor, shop_id: str) -> Shop:
    async with ports.storage.unit() as unit:
        found = await _find(unit, shop_id)
    if found is None or found.account_id != actor.account.id or not actor.caller.sees_shop(shop_id):
        raise Refusal("SHOP_NOT_FOUND", "The account has no shop of this id")
    return found


async def _find(unit: Unit, shop_id: str) -> Shop | None:
    return await unit[Shop].get(shop_id) if shop_id.isascii() and shop_id.isprintable() else None
