"""Whose a transaction is: an operation stands in the last digits of its end, its moment and its limit. Two operations
alike in all else are two transactions by it, and the chain tells what was paid by which."""

from datetime import timedelta
from hashlib import sha256

import msgspec

from .transaction import Transfer

LIFETIME = timedelta(hours=1)
"""In which it gets into a block, or never. The network takes a day at most."""
SUN = 1_000_000
"""Of one TRX. Limits are of whole TRX but for the mark."""


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """Of one operation."""

    end: int
    """Milliseconds that the end is later by."""
    moment: int
    """Milliseconds that the moment is earlier by."""
    limit: int
    """Sun that the limit is higher by: a TRX at most."""

    @property
    def text(self) -> str:
        """As it is read back: of end and moment their distance is known, since nobody knows when it was signed."""
        return _text(self.end + self.moment, self.limit % SUN)


def mark_of(operation: str) -> Mark:
    """The operation's own."""
    number = int.from_bytes(sha256(operation.encode()).digest()[:8])
    return Mark(end=number & 0xFFFF, moment=number >> 16 & 0xFFFF, limit=number >> 32 & 0xFFFFF)


def mark_on(made: Transfer) -> str:
    """What a transaction bears; of one that is none of ours it is no operation's."""
    return _text(made.expiration - made.timestamp - LIFETIME // timedelta(milliseconds=1), made.fee_limit % SUN)


def _text(distance: int, limit: int) -> str:
    return f"{distance:x}-{limit:x}"
