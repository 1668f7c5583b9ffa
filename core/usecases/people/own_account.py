"""Settings and shops that a merchant's people change themselves (docs/dashboard.md "Settings"). The operator changes
the others."""

from collections.abc import Mapping

from ....ports.bundle import Ports
from ....ports.storage import Unit
from ...domain.account_settings import BRAND_SETTINGS, WEBHOOK_SECRET
from ...domain.accounts.accounts import Account, Mode
from ...domain.accounts.shops import Shop
from ...domain.errors import Refusal
from ...domain.operators.pending_actions import Line
from ...domain.people.people import MEMBERS_MOST, Membership
from ...domain.people.roles import PersonRight, Role
from ..accounts.accounts import set_settings
from ..accounts.logos import set_logo
from ..accounts.shops import create_shop, disable_shop, enable_shop, rename_shop, set_shop
from ..webhooks.endpoint import set_own_headers
from ..webhooks.endpoints import rotate_secret
from .second_person import Asked, asking
from .sessions import Actor, by_person, require

OWN_SETTINGS: Mapping[str, PersonRight] = {
    "payout_wallet": PersonRight.PAYOUT_DETAILS,
    "webhook_url": PersonRight.WEBHOOKS,
    "webhook_events": PersonRight.WEBHOOKS,
    "webhook_secret": PersonRight.WEBHOOKS,
    "return_url": PersonRight.SHOPS,
    **dict.fromkeys(BRAND_SETTINGS, PersonRight.SHOPS),
    "auto_return": PersonRight.SHOPS,
    "payer_retry": PersonRight.SHOPS,
    "proof_reminders": PersonRight.SHOPS,
    "alarm_email": PersonRight.SHOPS,
    "second_person": PersonRight.OWNER,
}
"""The settings of an account that its people may change, with the right for each."""

_BY_TWO = ("payout_wallet", "webhook_secret", "second_person")
"""Settings that a second person approves where the account asks for it."""
_SECRET_BYTES = 32


async def change_settings(ports: Ports, actor: Actor, texts: Mapping[str, str]) -> Account:
    """Change settings of the account by name; all of them or none.

    Raises: Refusal PERSON_RIGHT_MISSING, STEP_UP_NEEDED, VALIDATION_ERROR, INVALID_STATE; Requested; Waits when two
    operators guard the change.
    """
    for name in texts:
        if name not in OWN_SETTINGS:
            raise Refusal("VALIDATION_ERROR", f"{name} is set by the operator of the service")
        require(actor, OWN_SETTINGS[name])
    account_id = actor.account.id
    by_two = [name for name in _BY_TWO if name in texts]
    if not by_two:
        return await set_settings(by_person(ports, actor, "account.set", account_id), account_id, texts)
    if texts.get("second_person") == "true":
        await _require_two_owners(ports, account_id)
    asked = Asked(
        use_case="account.set", right=OWN_SETTINGS[by_two[0]], object_id=account_id, arguments={"texts": {**texts}}
    )
    return await set_settings(asking(ports, actor, "account.set", asked, object_id=account_id), account_id, texts)


async def _require_two_owners(ports: Ports, account_id: str) -> None:
    async with ports.storage.unit() as unit:
        found = await unit[Membership].find(account_id=account_id, order="id", limit=MEMBERS_MOST)
    if sum(each.role is Role.OWNER for each in found) < 2:
        raise Refusal("INVALID_STATE", "Only owners may approve a wallet: make a second person an owner first")


async def roll_webhook_secret(ports: Ports, actor: Actor) -> str:
    """Create a new secret of the account's own webhook endpoint, and return it. Raises: as `change_settings`."""
    require(actor, PersonRight.WEBHOOKS)
    account_id = actor.account.id
    asked = Asked(
        use_case="webhook.secret",
        right=PersonRight.WEBHOOKS,
        object_id=account_id,
        arguments={},
        lines=(_another_secret(account_id),),
    )
    secret = ports.ids.secret(_SECRET_BYTES)
    ports = asking(ports, actor, "account.set", asked, object_id=account_id)
    await set_settings(ports, account_id, {WEBHOOK_SECRET: secret})
    return secret


async def roll_endpoint_secret(ports: Ports, actor: Actor, endpoint_id: str) -> str:
    """Create a new secret of a further webhook endpoint, and return it. Raises: as `change_settings`;
    WEBHOOK_ENDPOINT_NOT_FOUND."""
    require(actor, PersonRight.WEBHOOKS)
    asked = Asked(
        use_case="endpoint.secret",
        right=PersonRight.WEBHOOKS,
        object_id=endpoint_id,
        arguments={"endpoint_id": endpoint_id},
        mode=actor.mode,
        lines=(_another_secret(endpoint_id),),
    )
    if actor.mode is Mode.LIVE:
        ports = asking(ports, actor, "endpoint.secret", asked, object_id=endpoint_id)
    else:
        ports = by_person(ports, actor, "endpoint.secret", endpoint_id)
    made = await rotate_secret(ports, actor.caller, endpoint_id)
    return made.secret or ""


def _another_secret(holder: str) -> Line:
    return Line("webhook_secret", holder, "another one")


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


async def change_brand(ports: Ports, actor: Actor, shop_id: str | None, texts: Mapping[str, str]) -> None:
    """Change how the payer's pages look, of the account or of one shop. Raises: as `change_shop`."""
    texts = {name: texts[name] for name in BRAND_SETTINGS}
    if shop_id is None:
        await change_settings(ports, actor, texts)
        return
    require(actor, PersonRight.SHOPS)
    await _own(ports, actor, shop_id)
    await set_shop(by_person(ports, actor, "shop.set", shop_id), shop_id, texts)


async def change_logo(ports: Ports, actor: Actor, shop_id: str | None, given: bytes) -> None:
    """Replace the logo of the account or of one shop; an empty one removes it. Raises: as `change_shop`."""
    require(actor, PersonRight.SHOPS)
    account_id = actor.account.id
    if shop_id is None:
        ports = by_person(ports, actor, "account.logo", account_id)
    else:
        await _own(ports, actor, shop_id)
        ports = by_person(ports, actor, "shop.logo", shop_id)
    await set_logo(ports, account_id, shop_id, given)


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
