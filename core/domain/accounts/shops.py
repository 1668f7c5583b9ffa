"""Shops: lines of business inside an account, with their names and markups (docs/concepts.md "Shops")."""

import re
import unicodedata
from datetime import datetime

import msgspec

from ..errors import Refusal
from .accounts import Account, plain_name


class Shop(msgspec.Struct, frozen=True, kw_only=True):
    """A line of business inside an account."""

    id: str
    account_id: str
    name: str
    name_folded: str
    """`fold_name(name)`: names are unique in the account ignoring case."""
    created_at: datetime
    enabled: bool = True
    markup: str | None = None
    """A decimal fraction (`0.03`), as text so that no digit is lost; None: `422 SHOP_MARKUP_NOT_SET`."""
    return_url: str | None = None
    brand_color: str | None = None
    """This and the next three come before those of the account (docs/window.md "Your brand")."""
    brand_contact: str | None = None
    brand_success_text: str | None = None
    logo_id: str | None = None
    version: int = 0


DEFAULT_SHOP_NAME = "Default"
DEFAULT_MARKUP = "0.03"


def shop_name(text: str) -> str:
    """Return a shop's name in its stored form: trimmed, 1 to 120 characters, no control characters.

    Raises: Refusal VALIDATION_ERROR.
    """
    return plain_name(text, "A shop")


def fold_name(name: str) -> str:
    """Return the form in which two shop names are compared. It is normalised again at the end, because folding
    decomposes letters (`ΐ`) and leaves decomposed ones (`Ϊ́`) unchanged."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


_MARKUP = re.compile(r"0(?:\.[0-9]{1,6})?\Z")


def shop_markup(text: str) -> str:
    """Return a markup in its stored form: a fraction from 0 to below 1 with up to 6 decimals. Raises: Refusal
    VALIDATION_ERROR."""
    if not _MARKUP.match(text):
        raise Refusal("VALIDATION_ERROR", "A markup is a fraction from 0 to below 1, such as 0.03")
    return text


def seller_name(shop: Shop, account: Account) -> str:
    """Return the seller's name. The default shop's name is meant for the merchant, so payers see the account's name
    instead."""
    is_default = shop.id == account.default_shop_id and shop.name == DEFAULT_SHOP_NAME
    return account.name if is_default else shop.name
