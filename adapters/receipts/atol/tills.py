"""Selection of the cash registers for a receipt: the installation's or a merchant's own (docs/adapters.md "Credentials
of several merchants")."""

import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from ....ports.faults import NotConfigured
from ....ports.receipts import ReceiptRequest
from ...merchants_file import read_merchants

_INN = re.compile(r"(?:[0-9]{10}|[0-9]{12})\Z")
_EMAIL_MAX, _SITE_MAX = 64, 256


class Till(msgspec.Struct, frozen=True, kw_only=True):
    """A group of registers, its login, and the seller they are registered for. The repr shows none of it."""

    login: str
    password: str
    group: str
    inn: str
    email: str
    site: str
    owner: str = ""
    """The merchant's account, shop or terminal; "": the installation."""

    def __post_init__(self) -> None:
        """Raises: NotConfigured."""
        if not _INN.match(self.inn) or len(self.email) > _EMAIL_MAX or len(self.site) > _SITE_MAX:
            raise NotConfigured(
                f"atol: the seller of {self.named} needs an INN of 10 or 12 digits, an e-mail of {_EMAIL_MAX} and a "
                f"site of {_SITE_MAX} characters at most"
            )

    @property
    def named(self) -> str:
        """Owner for messages."""
        return self.owner or "the installation"

    def __repr__(self) -> str:
        return f"<till of {self.named}>"


class Tills:
    """All tills by owner. The repr shows only their number."""

    def __init__(self, own: Till | None, merchants: Mapping[str, Till]) -> None:
        """Raises: NotConfigured if there is no till."""
        self._all = {**merchants, **({} if own is None else {"": own})}
        if not self._all:
            raise NotConfigured("atol: the file of merchants is empty")

    def __repr__(self) -> str:
        return f"<{len(self._all)} tills>"

    def all(self) -> tuple[Till, ...]:
        """Return all tills."""
        return tuple(self._all.values())

    def of_request(self, request: ReceiptRequest) -> Till:
        """Return the most specific till: the terminal's, shop's or account's, else the installation's. Raises:
        NotConfigured."""
        for owner in (request.terminal, request.shop, request.account, ""):
            if owner is not None and owner in self._all:
                return self._all[owner]
        raise NotConfigured("atol: this merchant has no register there")

    def of_owner(self, owner: str) -> Till:
        """Return the till of an owner; "" means the installation's. Raises: NotConfigured if it was removed."""
        if owner not in self._all:
            raise NotConfigured(f"atol: the credentials are gone of {owner or 'the installation'}")
        return self._all[owner]


def read_tills(path: Path) -> Mapping[str, Till]:
    """Read merchants' tills by owner. Raises: NotConfigured, like `read_merchants`."""
    tables = read_merchants("atol", path, ("login", "password", "group", "inn", "email", "site"))
    return {owner: Till(owner=owner, **told) for owner, told in tables.items()}
