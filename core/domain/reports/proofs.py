"""Proofs of registers: a hash chain over the rows of an account, a tree over the accounts of a day, and its head
(docs/reports.md "Proof"). The tree is that of RFC 9162, filled up to a power of two, so that it has one shape."""

from collections.abc import Sequence
from hashlib import sha256

import msgspec

from ..accounts.accounts import Mode

NOTHING = bytes(32)
"""Link before the first row."""
_LEAF, _NODE, _ROW = b"\x00", b"\x01", b"\x02"


class DayHead(msgspec.Struct, frozen=True, kw_only=True):
    """Signed head of the tree of one Moscow day. Written once and published."""

    id: str
    """The day."""
    text: str
    """Lines: origin, number of leaves, root in hex, day, and SHA-256 of the head before in hex."""
    signature: str
    """Ed25519 signature of the text, in hex."""
    key: str
    """Public key, in hex."""
    leaves: bytes
    """Hashes of the leaves, one after the other. They are salted, so they tell nothing."""
    version: int = 0

    @property
    def hashes(self) -> list[bytes]:
        return [self.leaves[at : at + 32] for at in range(0, len(self.leaves), 32)]


def chained(link: bytes, rows: bytes) -> bytes:
    """Return the link after these rows of CSV, each ended by CR LF."""
    for row in rows.split(b"\r\n")[:-1]:
        link = sha256(_ROW + link + row).digest()
    return link


def leaf_of(salt: bytes, account_id: str, mode: Mode, number: int, link: bytes) -> bytes:
    """Return the leaf of an account and mode whose last row has this number and link."""
    return sha256(_LEAF + salt + f"{account_id}:{mode}:{number}:".encode() + link).digest()


def root_of(leaves: Sequence[bytes]) -> bytes:
    """Return the root of leaves whose number is a power of two."""
    level = list(leaves)
    while len(level) > 1:
        level = [_node(*level[at : at + 2]) for at in range(0, len(level), 2)]
    return level[0]


def path_of(leaves: Sequence[bytes], index: int) -> list[bytes]:
    """Return the siblings from the leaf up to the root."""
    level, path = list(leaves), []
    while len(level) > 1:
        path.append(level[index ^ 1])
        level = [_node(*level[at : at + 2]) for at in range(0, len(level), 2)]
        index //= 2
    return path


def _node(left: bytes, right: bytes) -> bytes:
    return sha256(_NODE + left + right).digest()


def head_text(origin: str, leaves: Sequence[bytes], day: str, before: str | None) -> str:
    """Return the text of a head. `before`: the text of the head before it."""
    earlier = sha256((before or "").encode()).hexdigest()
    return f"{origin}\n{len(leaves)}\n{root_of(leaves).hex()}\n{day}\n{earlier}\n"
