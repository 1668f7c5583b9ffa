"""the counters counts requests in fixed windows, for rate limits."""

from collections.abc import Sequence
from typing import Protocol

import msgspec


class Counter(msgspec.Struct, frozen=True):
    """One counter: its name, and the count above which it is over."""

    key: str
    limit: int


class RateCounters(Protocol):
    """Counters that all processes of the service share (or that one process keeps)."""

    async def count(self, window: int, limits: Sequence[Counter]) -> Sequence[int]:
        """Add one to each counter in turn, stopping after the first that is then over its limit.

        `window` is the number of the present window (Unix seconds divided by its length): counters of another window
        start at zero. Returns the counts reached, as many as counter were counted. Never raises: counters that loses
        its server falls back to counting by itself.
        """
        ...

    async def works(self) -> bool:
        """Whether all processes are counted together just now, found out by asking the server. Never raises.

        False while counters that lost its server counts by itself: limits are then looser, and health says so.
        """
        ...

    async def close(self) -> None: ...
