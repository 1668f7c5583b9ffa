"""Logos of accounts and shops (docs/window.md "Your brand")."""

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import Unit
from ...domain import ids
from ...domain.accounts.accounts import Account
from ...domain.accounts.shops import Shop
from ...domain.errors import FieldFault, Refusal
from ...domain.payer.logos import Logo, Picture, read_picture
from ..common.units import retrying
from .accounts import find_account
from .shops import find_shop

FIELD = "logo"


async def set_logo(ports: Ports, account_id: str, shop_id: str | None, given: bytes) -> str | None:
    """Set the logo of an account, or of one of its shops; an empty one clears it. Return the new logo's id.

    Raises: Refusal VALIDATION_ERROR, ACCOUNT_NOT_FOUND, SHOP_NOT_FOUND.
    """
    picture = _read(given) if given else None

    async def work(unit: Unit) -> str | None:
        if shop_id is None:
            account = await find_account(unit, account_id)
            made = await _replaced(ports, unit, account_id, account.logo_id, picture)
            unit[Account].save(msgspec.structs.replace(account, logo_id=made))
        else:
            shop = await find_shop(unit, shop_id)
            if shop.account_id != account_id:
                raise Refusal("SHOP_NOT_FOUND", "There is no shop of this id")
            made = await _replaced(ports, unit, account_id, shop.logo_id, picture)
            unit[Shop].save(msgspec.structs.replace(shop, logo_id=made))
        return made

    return await retrying(ports.storage, work)


def _read(given: bytes) -> Picture:
    try:
        return read_picture(given)
    except ValueError as error:
        raise Refusal("VALIDATION_ERROR", f"{FIELD} {error}", details=[FieldFault(FIELD, str(error))]) from None


async def _replaced(ports: Ports, unit: Unit, account_id: str, old: str | None, picture: Picture | None) -> str | None:
    former = None if old is None else await unit[Logo].get(old)
    if former is not None:
        unit[Logo].remove(former)
    if picture is None:
        return None
    logo = Logo(
        id=ids.prefixed(ids.LOGO, ports.ids.uuid()),
        account_id=account_id,
        media_type=picture.media_type,
        body=picture.body,
        created_at=ports.clock.now(),
    )
    return unit[Logo].add(logo).id


async def get_logo(ports: Ports, logo_id: str) -> Logo | None:
    """Return a logo, which everybody may see."""
    return await ports.storage.get(Logo, logo_id) if ids.is_prefixed(ids.LOGO, logo_id) else None
