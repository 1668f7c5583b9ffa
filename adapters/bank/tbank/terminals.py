"""Selection of the terminal for a request: the installation's or a merchant's own (docs/adapters.md "Credentials of
several merchants")."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import msgspec

from ....ports.faults import NotConfigured, Refused, Unavailable
from ...merchants_file import read_merchants


class Terminal(msgspec.Struct, frozen=True, kw_only=True):
    """A terminal and its password from the cabinet. The repr hides the password."""

    key: str
    password: str

    def __repr__(self) -> str:
        return f"<terminal {self.key}>"


def read_terminals(path: Path) -> Mapping[str, Terminal]:
    """Read terminals by owner from a file of tables with `terminal_key` and `password`. Raises: NotConfigured."""
    tables = read_merchants("tbank", path, ("terminal_key", "password"))
    return {owner: Terminal(key=table["terminal_key"], password=table["password"]) for owner, table in tables.items()}


class Owned(Protocol):
    """Owner fields that invoice and binding requests share."""

    @property
    def account(self) -> str | None: ...

    @property
    def shop(self) -> str | None: ...

    @property
    def terminal(self) -> str | None: ...


class Terminals:
    """All configured terminals: the default, and merchants' own by our account, shop or terminal id."""

    def __init__(self, default: Terminal | None, by_owner: Mapping[str, Terminal] | None = None) -> None:
        """Raises: NotConfigured if no terminal is given, a part is missing or too long, or one terminal has two
        passwords."""
        self._default = default
        self._by_owner = dict(by_owner or {})
        self._by_key: dict[str, Terminal] = {}
        for each in ([default] if default is not None else []) + list(self._by_owner.values()):
            if not (0 < len(each.key) <= 20 and each.key.isascii() and each.key.isalnum()) or not each.password:
                raise NotConfigured("tbank: a terminal key has 1 to 20 letters and digits, and a password goes with it")
            if self._by_key.setdefault(each.key, each) != each:
                raise NotConfigured(f"tbank: the terminal {each.key} is given with two passwords")
        if not self._by_key:
            raise NotConfigured("tbank: no terminal is given")

    def __repr__(self) -> str:
        return f"<{len(self._by_key)} terminals>"

    def all(self) -> tuple[Terminal, ...]:
        """Return every terminal once."""
        return tuple(self._by_key.values())

    def of_request(self, request: Owned) -> Terminal:
        """Return the most specific terminal: of our terminal, shop, account, else the default. Raises: Refused
        `merchant`."""
        for owner in (request.terminal, request.shop, request.account):
            if owner is not None and owner in self._by_owner:
                return self._by_owner[owner]
        if self._default is None:
            raise Refused("tbank: this merchant has no terminal there", reason="merchant")
        return self._default

    def find(self, key: str) -> Terminal | None:
        """Return the terminal with this key, or None. Notifications name the key."""
        return self._by_key.get(key)

    def of_key(self, key: str) -> Terminal:
        """Return the terminal that a reference names. Raises: Unavailable if it is no longer configured, which must not
        disable T-Bank for other merchants."""
        found = self._by_key.get(key)
        if found is None:
            raise Unavailable("tbank: a terminal that payments went by is no longer among the settings")
        return found

    def is_own(self, terminal: Terminal) -> bool:
        """Report whether this is the installation's terminal, on which all merchants depend."""
        return terminal == self._default
