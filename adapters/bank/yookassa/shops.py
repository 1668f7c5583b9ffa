"""Selection of the shop for a call: the installation's or a merchant's own (docs/adapters.md "Credentials of several
merchants")."""

from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

import msgspec

from ....ports.bank import InvoiceRequest
from ....ports.faults import NotConfigured, Refused
from ....ports.mandates import BindingRequest
from ...merchants_file import read_merchants


class Shop(msgspec.Struct, frozen=True, kw_only=True):
    """A shop or a gateway of payouts, and its key. The repr shows neither."""

    id: str
    key: str
    owner: str | None = None
    """The merchant's account, shop or terminal; None: the installation's."""

    @property
    def headers(self) -> dict[str, str]:
        """Headers of every call as this shop."""
        return {"Authorization": "Basic " + b64encode(f"{self.id}:{self.key}".encode()).decode()}

    def reference(self, theirs: str) -> str:
        """Return YooKassa's id, prefixed with the owner."""
        return theirs if self.owner is None else f"{self.owner}/{theirs}"

    def __repr__(self) -> str:
        return f"<shop of {self.owner or 'the installation'}>"


class Shops:
    """All shops by owner. The repr shows only their number."""

    def __init__(self, own: Shop | None, merchants: Mapping[str, Shop]) -> None:
        """Raises: NotConfigured if there is no shop."""
        if own is None and not merchants:
            raise NotConfigured("set CAMBIST_YOOKASSA_SHOP_ID and CAMBIST_YOOKASSA_SECRET_KEY")
        self._own = own
        self._merchants = dict(merchants)

    def __repr__(self) -> str:
        return f"<{len(self.all())} shops>"

    def all(self) -> tuple[Shop, ...]:
        own = () if self._own is None else (self._own,)
        return (*own, *self._merchants.values())

    def of_request(self, request: InvoiceRequest | BindingRequest) -> Shop:
        """Return the most specific shop: the terminal's, shop's or account's, else the installation's.

        Raises: Refused (`merchant`), so that the next bank is tried.
        """
        for owner in (request.terminal, request.shop, request.account):
            if owner is not None and owner in self._merchants:
                return self._merchants[owner]
        if self._own is None:
            raise Refused("yookassa: this merchant has no shop there", reason="merchant")
        return self._own

    def of_owner(self, owner: str) -> Shop | None:
        """Return the shop of an owner; "" means the installation's."""
        return self._merchants.get(owner) if owner else self._own

    def of_reference(self, reference: str) -> tuple[Shop, str]:
        """Return the shop, and YooKassa's id quoted for a path. Raises: NotConfigured if the shop's credentials were
        removed."""
        owner, slash, theirs = reference.rpartition("/")
        shop = self._merchants.get(owner) if slash else self._own
        if shop is None:
            raise NotConfigured(f"yookassa: the credentials are gone of {owner or 'the installation'}")
        return shop, quote(theirs, safe="")


def read_shops(path: Path) -> Mapping[str, Shop]:
    """Read merchants' shops by owner. Raises: NotConfigured, like `read_merchants`."""
    tables = read_merchants("yookassa", path, ("shop_id", "secret_key"))
    return {owner: Shop(id=told["shop_id"], key=told["secret_key"], owner=owner) for owner, told in tables.items()}
