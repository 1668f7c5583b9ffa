"""The port that counts requests in fixed windows, for rate limits."""

from collections.abc import Sequence
from typing import Protocol

import msgspec


class Counter(msgspec.Struct, frozen=True):
    """One counter: its name, and the highest count that is within the limit."""

    key: str
    limit: int


class RateCounters(Protocol):
    """Counters that all processes of the service share (or that one process keeps)."""

    async def count(self, window: int, limits: Sequence[Counter]) -> Sequence[int]:
        """Add one to each counter in order, stopping after the first that then exceeds its limit.

        `window` is the number of the present window (Unix seconds divided by its length): counters of another window
        start at zero. Returns the counts reached, one for each counter that was incremented. Never raises: without its
        server, the adapter counts in this process alone.
        """
        ...

    async def works(self) -> bool:
        """Return whether all processes are counted together now, by a request to the server. Never raises.

        False while the server is away and each process counts alone: limits are then looser, and health reports it.
        """
        ...

    async def close(self) -> None: ...
