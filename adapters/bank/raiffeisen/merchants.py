"""Whose credentials a call goes by, and the references that remember it (docs/adapters.md "Credentials of several
merchants")."""

from collections.abc import Mapping
from pathlib import Path
from typing import Self

import msgspec

from ....ports.faults import NotConfigured, Refused
from ...merchants_file import read_merchants

NAME = "raiffeisen"
"""Stored with every payment that goes this way: never change it."""
_PARTS = 4
_DIGITS = 20


class Pair(msgspec.Struct, frozen=True):
    """A merchant at the bank. Its repr hides the key."""

    merchant_id: str
    """`sbpMerchantId`."""
    secret_key: str
    is_shared: bool = True
    """The installation's: where its key is not taken, the gateway is down for all. One merchant's own is that
    merchant's matter."""

    def __repr__(self) -> str:
        return f"<merchant {self.merchant_id}>"


class PayoutPair(msgspec.Struct, frozen=True):
    """By what people are paid. Its repr says nothing."""

    account: str
    """20 digits: what payouts are taken from."""
    secret_key: str
    is_shared: bool = True

    @classmethod
    def of_account(cls, account: str, secret_key: str) -> Self:
        """Raises: NotConfigured for what is no account's number."""
        if len(account) != _DIGITS or not account.isdigit():
            raise NotConfigured(f"the account of payouts must be {_DIGITS} digits")
        return cls(account, secret_key)

    def __repr__(self) -> str:
        return "<payouts>"


class Merchants:
    """Pairs by whom they belong to: an account, a shop or a terminal; `""` is everybody else."""

    def __init__(self, default: Pair | None, by_owner: Mapping[str, Pair]) -> None:
        self._pairs = {**({} if default is None else {"": default}), **by_owner}

    def __repr__(self) -> str:
        return f"<{len(self._pairs)} merchants>"

    def owner_of(self, *owners: str | None) -> str:
        """The first of these that has a pair, else `""`. Raises: Refused where there is none for anybody, so that the
        next bank is tried."""
        owner = next((each for each in owners if each and each in self._pairs), "")
        if owner not in self._pairs:
            raise Refused(f"{NAME}: no credentials of this merchant", reason="merchant")
        return owner

    def pair(self, owner: str) -> Pair:
        """Raises: NotConfigured for one that is no longer there."""
        try:
            return self._pairs[owner]
        except KeyError:
            raise NotConfigured(f"{NAME}: {owner or 'the default merchant'} has no credentials any more") from None

    def keys_of(self, merchant_id: str) -> list[str]:
        """The keys by which the bank may have signed what it says to this merchant."""
        return sorted({each.secret_key for each in self._pairs.values() if each.merchant_id == merchant_id})

    @property
    def shared(self) -> Pair | None:
        """The installation's, where it has one."""
        return self._pairs.get("")


def read_pairs(path: Path) -> Mapping[str, Pair]:
    """Pairs by owner, from a file of tables `[acc_…]` with `merchant_id` and `secret_key`. Raises: NotConfigured, which
    names the table and quotes nothing of it."""
    pairs: dict[str, Pair] = {}
    for owner, table in read_merchants(NAME, path, ("merchant_id", "secret_key")).items():
        if "/" in owner or not owner or not all(value.isascii() for value in table.values()):
            raise NotConfigured(f"{NAME}: the file of merchants: [{owner[:64]}] cannot be an owner's, or be sent")
        pairs[owner] = Pair(table["merchant_id"], table["secret_key"], is_shared=False)
    return pairs


class Reference(msgspec.Struct, frozen=True):
    """What a stored reference says."""

    kind: str
    """`qr`: an invoice; `sub`: a mandate; `order`: a charge; empty for what is none of ours."""
    owner: str
    first: str
    """The id of the QR, or of the subscription."""
    second: str
    """The order; of a mandate the id of the QR of its first charge, which may be empty."""

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
        """The order that money came by. Of a mandate: of its first charge."""
        if self.kind == "sub":
            return first_order(self.first) if self.second else ""
        return self.second


def first_order(subscription: str) -> str:
    """The order of a binding's first charge."""
    return f"1-{subscription}"


def subscription_of(order: str) -> str | None:
    """The subscription whose first charge this order is."""
    return order[2:] if order.startswith("1-") else None


def mandate_page(subscription: str) -> str:
    """Under which a subscription is noted; orders are noted under their own numbers."""
    return f"sub/{subscription}"


def charge_page(order: str) -> str:
    """Under which a charge is noted."""
    return f"charge/{order}"
