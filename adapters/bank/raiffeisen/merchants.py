"""Credentials of each merchant, and references that name the owner (docs/adapters.md "Credentials of several
merchants")."""

from collections.abc import Mapping
from pathlib import Path
from typing import Self

import msgspec

from ....ports.faults import NotConfigured, Refused
from ...merchants_file import read_merchants

NAME = "raiffeisen"
"""Stored with every payment through this bank, so it must never change."""
_PARTS = 4
_DIGITS = 20


class Pair(msgspec.Struct, frozen=True):
    """Credentials of a merchant at the bank. The repr hides the key."""

    merchant_id: str
    """`sbpMerchantId`."""
    secret_key: str
    is_shared: bool = True
    """True for the installation's credentials: if the bank rejects their key, the gateway is down for all. A merchant's
    own credentials affect only that merchant."""

    def __repr__(self) -> str:
        return f"<merchant {self.merchant_id}>"


class PayoutPair(msgspec.Struct, frozen=True):
    """Credentials of payouts. The repr hides all of them."""

    account: str
    """The account that pays, 20 digits."""
    secret_key: str
    is_shared: bool = True

    @classmethod
    def of_account(cls, account: str, secret_key: str) -> Self:
        """Raises: NotConfigured for a malformed account number."""
        if len(account) != _DIGITS or not account.isdigit():
            raise NotConfigured(f"the account of payouts must be {_DIGITS} digits")
        return cls(account, secret_key)

    def __repr__(self) -> str:
        return "<payouts>"


class Merchants:
    """Credentials by owner: an account, a shop or a terminal. The owner `""` is the default."""

    def __init__(self, default: Pair | None, by_owner: Mapping[str, Pair]) -> None:
        self._pairs = {**({} if default is None else {"": default}), **by_owner}

    def __repr__(self) -> str:
        return f"<{len(self._pairs)} merchants>"

    def owner_of(self, *owners: str | None) -> str:
        """Return the first of these owners that has credentials, else `""`. Raises: Refused if there are no default
        credentials either, so that the next bank is tried."""
        owner = next((each for each in owners if each and each in self._pairs), "")
        if owner not in self._pairs:
            raise Refused(f"{NAME}: no credentials of this merchant", reason="merchant")
        return owner

    def pair(self, owner: str) -> Pair:
        """Return the owner's credentials. Raises: NotConfigured if they were removed."""
        try:
            return self._pairs[owner]
        except KeyError:
            raise NotConfigured(f"{NAME}: {owner or 'the default merchant'} has no credentials any more") from None

    def keys_of(self, merchant_id: str) -> list[str]:
        """Return the keys that may have signed a notification for this merchant."""
        return sorted({each.secret_key for each in self._pairs.values() if each.merchant_id == merchant_id})

    @property
    def shared(self) -> Pair | None:
        """The installation's credentials, or None."""
        return self._pairs.get("")


def read_pairs(path: Path) -> Mapping[str, Pair]:
    """Read credentials by owner from a file of tables `[acc_…]` with `merchant_id` and `secret_key`. Raises:
    NotConfigured, which names the table but quotes no values."""
    pairs: dict[str, Pair] = {}
    for owner, table in read_merchants(NAME, path, ("merchant_id", "secret_key")).items():
        if "/" in owner or not owner or not all(value.isascii() for value in table.values()):
            raise NotConfigured(f"{NAME}: the file of merchants: [{owner[:64]}] cannot be an owner's, or be sent")
        pairs[owner] = Pair(table["merchant_id"], table["secret_key"], is_shared=False)
    return pairs


class Reference(msgspec.Struct, frozen=True):
    """A stored reference, decoded."""

    kind: str
    """`qr`: an invoice; `sub`: a mandate; `order`: a charge; empty for an unknown reference."""
    owner: str
    first: str
    """Id of the QR or of the subscription."""
    second: str
    """The order. For a mandate: the id of its first charge's QR, empty without a first charge."""

    @classmethod
    def read(cls, text: str) -> Self:
        parts = text.split("/")
        if len(parts) != _PARTS or parts[0] not in ("qr", "sub", "order"):
            return cls("", "", text, "")
        return cls(*parts)

    @property
    def text(self) -> str:
        return "/".join((self.kind, self.owner, self.first, self.second))

    @property
    def order(self) -> str:
        """Order of the payment. For a mandate it is the order of the first charge."""
        if self.kind == "sub":
            return first_order(self.first) if self.second else ""
        return self.second


def first_order(subscription: str) -> str:
    """Return the order of a binding's first charge."""
    return f"1-{subscription}"


def subscription_of(order: str) -> str | None:
    """Return the subscription whose first charge this order is, or None."""
    return order[2:] if order.startswith("1-") else None


def mandate_page(subscription: str) -> str:
    """Return the note key of a subscription. Orders are noted under their own numbers."""
    return f"sub/{subscription}"


def charge_page(order: str) -> str:
    """Return the note key of a charge."""
    return f"charge/{order}"
