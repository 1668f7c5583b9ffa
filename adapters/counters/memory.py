"""Counters in this process. They are exact if one process serves all requests."""

from collections.abc import Sequence

from ...ports.counters import Counter

_OVERFLOW_SLOTS = 4096


class MemoryCounters:
    """Fixed windows in one dict, which is discarded when the window ends.

    Names come from unauthenticated requests, so their number is limited. In each window `capacity` names have their own
    counters. Further names share 4096 common counters, chosen by a hash that Python seeds anew in every process. A
    flood of new names therefore gets fewer free requests, never more, and cannot target another client's counter.
    Clients that were counted before the flood are not affected.
    """

    def __init__(self, capacity: int = 100_000) -> None:
        """100 000 names take about 20 MB."""
        self._capacity = capacity
        self._window = 0
        self._counts: dict[str | int, int] = {}

    async def count(self, window: int, limits: Sequence[Counter]) -> list[int]:
        """Increment the counters in order, up to the first one over its limit. There is no await, so no other request
        runs in between."""
        if window != self._window:
            self._window = window
            self._counts = {}
        counts = self._counts
        reached: list[int] = []
        for counter in limits:
            name: str | int = counter.key
            number = counts.get(name, 0) + 1
            if number == 1 and len(counts) >= self._capacity:
                name = hash(name) % _OVERFLOW_SLOTS
                number = counts.get(name, 0) + 1
            counts[name] = number
            reached.append(number)
            if number > counter.limit:
                break
        return reached

    async def works(self) -> bool:
        """Return True: there is no server that could fail."""
        return True

    async def close(self) -> None:
        """Forget all counts."""
        self._counts = {}
