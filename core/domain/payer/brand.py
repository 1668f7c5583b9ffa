"""How the payer's pages of a merchant look: logo, colour, contact and the text after a payment
(docs/window.md "Your brand"). A shop's values come before those of its account, one by one."""

import re

import msgspec

from ..accounts.accounts import Account
from ..accounts.shops import Shop
from ..web_addresses import is_web_address

CONTACT_LONGEST = 120
TEXT_LONGEST = 255

_EMAIL = re.compile(r"[A-Za-z0-9.!#$*+=_~^-]{1,64}@[A-Za-z0-9.-]{1,190}\Z")
"""Without the characters that would end the address in `mailto:`, such as a question mark."""
_PHONE = re.compile(r"\+?[0-9][0-9 ()\-]{4,30}\Z", re.ASCII)


class Brand(msgspec.Struct, frozen=True, kw_only=True):
    """The brand of a seller; None: nothing was set."""

    color: str | None = None
    contact: str | None = None
    """Where payers ask for help: a mail address, a phone, a web address, or words."""
    success_text: str | None = None
    logo_id: str | None = None

    @property
    def contact_link(self) -> str | None:
        """Address of a link to the contact; None for words."""
        text = self.contact or ""
        if _EMAIL.match(text):
            return f"mailto:{text}"
        if _PHONE.match(text):
            return f"tel:{''.join(char for char in text if char in '+0123456789')}"
        return text if is_web_address(text) else None


def brand_of(account: Account, shop: Shop | None) -> Brand:
    """Return the brand that payers of a shop see. Without a shop: that of the account."""
    settings = account.settings
    own = Brand(
        color=settings.brand_color,
        contact=settings.brand_contact,
        success_text=settings.brand_success_text,
        logo_id=account.logo_id,
    )
    if shop is None:
        return own
    return Brand(
        color=shop.brand_color or own.color,
        contact=shop.brand_contact or own.contact,
        success_text=shop.brand_success_text or own.success_text,
        logo_id=shop.logo_id or own.logo_id,
    )
