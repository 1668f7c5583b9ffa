"""Hash chains over rows that are written once, used by the ledger and the audit log.

A row gets a number and a link, the SHA-256 of the previous link and the row's content. So the last link stands for the
whole history. Links need no key: anybody with write access to the database could compute all of them again. Therefore
the vault tags each link and the chain's head with a key that is not in the database (ports/vault.py). The tag of the
head proves the history up to it, whichever keys tagged older rows; the tags of the rows show at which row
it was rewritten.
"""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterable
from datetime import datetime
from hashlib import sha256
from typing import Any, Protocol

import msgspec

from .days import iso

LINK_BYTES = 32
FIRST_LINK = bytes(LINK_BYTES)
"""Predecessor of the first row's link."""


class Chained(Protocol):
    """A row that a chain can include. `number` and `seal` are null until then."""

    @property
    def id(self) -> str: ...
    @property
    def number(self) -> int | None: ...
    @property
    def seal(self) -> bytes | None:
        """The link, followed by the vault's tag of it."""
        ...


class Chain(msgspec.Struct, frozen=True, kw_only=True):
    """One chain."""

    name: str
    head_id: str
    rows: type[Any]
    says: Callable[[Any, int], bytes]
    """Serializes the content of a row with its number."""

    def link(self, row: Any, number: int, before: bytes) -> bytes:
        """Return the link of a row with this number."""
        return sha256(before + self.says(row, number)).digest()

    def row_aad(self, number: int) -> str:
        """Return the associated data of a row's tag."""
        return f"{self.name}.link:{number}"

    def head_aad(self, number: int) -> str:
        """Return the associated data of the head's tag."""
        return f"{self.name}.head:{number}"


class ChainHead(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a chain."""

    id: str
    number: int
    seal: bytes
    """The link of the last row."""
    tag: bytes | None = None
    """The vault's tag of number and link. Null only if somebody took it away."""
    sealed_at: datetime | None = None
    """When the last rows were chained."""
    version: int = 0


def link_in(seal: bytes | None) -> bytes:
    """Return the link of a row."""
    return (seal or b"")[:LINK_BYTES]


def tag_in(seal: bytes | None) -> bytes:
    """Return the tag after the link."""
    return (seal or b"")[LINK_BYTES:]


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """A head published outside of the database: the link at one position of one chain."""

    chain: str
    number: int
    link: bytes

    @property
    def told(self) -> str:
        """Text such as `ledger=12:…`. Not hexadecimal, because logs mask hex digits as possible secrets."""
        return f"{self.chain}={self.number}:{urlsafe_b64encode(self.link).decode().rstrip('=')}"


_HEAD = re.compile(r"(?<![\w-])(ledger|audit)=([0-9]{1,18}):([A-Za-z0-9_-]{43})(?![A-Za-z0-9_-])")


def told(heads: Iterable[Head], at: datetime | None) -> str:
    """Format heads as one line, with the moment at which the rows up to them were chained."""
    return " ".join((*(head.told for head in heads), *(() if at is None else (f"at={iso(at)}",))))


def heads_in(text: str) -> list[Head]:
    """Find every head in a text with any other content: a line, a log, a backup's `backup.json`."""
    return [
        Head(chain=name, number=int(number), link=urlsafe_b64decode(f"{link}="))
        for name, number, link in _HEAD.findall(text)
    ]
