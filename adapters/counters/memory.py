"""Counters in this process: exact where one process serves everything."""

from collections.abc import Sequence

from ...ports.counters import Counter

_OVERFLOW_SLOTS = 4096


class MemoryCounters:
    """Fixed windows in one dict, which is dropped whole when the window ends.

    Names come from unauthenticated requests, so their number is bounded: in one window `capacity` names have counters
    of their own, and any further name shares one of 4096 common counters, chosen by a hash that Python keys anew in
    every process. So who floods the counters with new names finds fewer free counts, never more, and cannot aim at
    somebody else's counter; whoever was counted before the flood is not touched by it.
    """

    def __init__(self, capacity: int = 100_000) -> None:
        """100 000 names take about 20 MB."""
        self._capacity = capacity
        self._window = 0
        self._counts: dict[str | int, int] = {}

    async def count(self, window: int, limits: Sequence[Counter]) -> list[int]:
        """Add one to each counter in turn, up to the first that is over. Never waits, so no request comes between."""
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
        """There is no server to lose."""
        return True

    async def close(self) -> None:
        """Forget all counts."""
        self._counts = {}
