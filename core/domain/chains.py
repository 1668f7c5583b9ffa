"""Hash chains over rows that are written once: the ledger's and the audit log's.

A row gets a number and a link, the SHA-256 over the link before and all that the row says. So the last link stands for
the whole history. Links need no key: who may write the database could make them all anew. Therefore the vault tags each
link and the chain's head with a key that does not lie in the database (ports/vault.py). The tag of the head proves the
history up to it, by whichever keys older rows were tagged, if at all; those of the rows tell at which it was rewritten.
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
"""What the first row's link is made over."""


class Chained(Protocol):
    """A row that a chain takes up. `number` and `seal` are null until then."""

    @property
    def id(self) -> str: ...
    @property
    def number(self) -> int | None: ...
    @property
    def seal(self) -> bytes | None:
        """The link, and behind it the vault's tag over it; rows of before there were tags have none."""
        ...


class Chain(msgspec.Struct, frozen=True, kw_only=True):
    """One chain."""

    name: str
    head_id: str
    rows: type[Any]
    says: Callable[[Any, int], bytes]
    """All that a row says, with its number."""

    def link(self, row: Any, number: int, before: bytes) -> bytes:
        """The link of a row at this place."""
        return sha256(before + self.says(row, number)).digest()

    def row_place(self, number: int) -> str:
        """The place of a row's tag."""
        return f"{self.name}.link:{number}"

    def head_place(self, number: int) -> str:
        """The place of the head's tag."""
        return f"{self.name}.head:{number}"


class ChainHead(msgspec.Struct, frozen=True, kw_only=True):
    """Where a chain ends."""

    id: str
    number: int
    seal: bytes
    """The link of the last row."""
    tag: bytes | None = None
    """The vault's over number and link; null where the chain was never taken over from before there were tags."""
    sealed_at: datetime | None = None
    """When the last rows were chained."""
    version: int = 0


def link_in(seal: bytes | None) -> bytes:
    """The link of a row."""
    return (seal or b"")[:LINK_BYTES]


def tag_in(seal: bytes | None) -> bytes:
    """The tag behind it; empty for a row of before there were tags."""
    return (seal or b"")[LINK_BYTES:]


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """A head as it is told outside of the database: what stood at which place of which chain."""

    chain: str
    number: int
    link: bytes

    @property
    def told(self) -> str:
        """`ledger=12:…`. No hexadecimal digits, which logs mask for what they might be."""
        return f"{self.chain}={self.number}:{urlsafe_b64encode(self.link).decode().rstrip('=')}"


_HEAD = re.compile(r"(?<![\w-])(ledger|audit)=([0-9]{1,18}):([A-Za-z0-9_-]{43})(?![A-Za-z0-9_-])")


def told(heads: Iterable[Head], at: datetime | None) -> str:
    """Heads as one line, with the moment at which the rows up to them were chained."""
    return " ".join((*(head.told for head in heads), *(() if at is None else (f"at={iso(at)}",))))


def heads_in(text: str) -> list[Head]:
    """Every head that a text tells, whatever else is in it: a line, a log, a backup's `backup.json`."""
    return [
        Head(chain=name, number=int(number), link=urlsafe_b64decode(f"{link}="))
        for name, number, link in _HEAD.findall(text)
    ]
