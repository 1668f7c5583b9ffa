"""Counters in this process: exact where one process serves everything."""

from array import array
from collections.abc import Sequence

from ...ports.counters import Counter

_OVERFLOW_SLOTS = 4096
_LEAST = 1024
"""Places of a table at first. There are always at least two for each name, so that a name is found in a step or two."""


class MemoryCounters:
    """Fixed windows in one table, which is dropped whole when the window ends.

    Names come from unauthenticated requests, so their number is bounded: in one window `capacity` names have counters
    of their own, and any further name shares one of 4096 common counters, chosen by a hash that Python keys anew in
    every process. So who floods the counters with new names finds fewer free counts, never more, and cannot aim at
    somebody else's counter; whoever was counted before the flood is not touched by it.

    The table is two numbers a place, the name's hash of 64 bits and its count: of 100 000 names two have the same hash
    once in some billion windows. It makes no object that lives on, whereas some thousand small strings, made amid a
    rush, would keep the interpreter from giving back any of the memory that the rush took.
    """

    def __init__(self, capacity: int = 100_000) -> None:
        """100 000 names take 4 MB, for a moment of growing 6."""
        self._capacity = capacity
        self._window = 0
        self._clear()

    async def count(self, window: int, limits: Sequence[Counter]) -> list[int]:
        """Add one to each counter in turn, up to the first that is over. Never waits, so no request comes between."""
        if window != self._window:
            self._window = window
            self._clear()
        reached: list[int] = []
        for counter in limits:
            number = self._add_one(hash(counter.key) or 1)  # 0 is a free place
            reached.append(number)
            if number > counter.limit:
                break
        return reached

    async def works(self) -> bool:
        """There is no server to lose."""
        return True

    async def close(self) -> None:
        """Forget all counts."""
        self._clear()

    def _clear(self) -> None:
        self.names = 0
        """Names that have a counter of their own in this window."""
        self._table = _table(_LEAST)
        self._common = array("q")

    def _add_one(self, name: int) -> int:
        """The count that the name has then."""
        table = self._table
        last = len(table) - 2
        place = name & last
        while (found := table[place]) != name:
            if not found:
                return self._first(name)
            place = (place + 2) & last
        number = table[place + 1] + 1
        table[place + 1] = number
        return number

    def _first(self, name: int) -> int:
        """Count a name that has no counter yet."""
        if self.names >= self._capacity:
            common = self._common = self._common or array("q", bytes(8 * _OVERFLOW_SLOTS))
            common[name % _OVERFLOW_SLOTS] += 1
            return common[name % _OVERFLOW_SLOTS]
        self.names += 1
        if 4 * self.names > len(self._table):
            old, self._table = self._table, _table(len(self._table))
            for place in range(0, len(old), 2):
                if old[place]:
                    _put(self._table, old[place], old[place + 1])
        _put(self._table, name, 1)
        return 1


def _table(places: int) -> "array[int]":
    return array("q", bytes(16 * places))


def _put(table: "array[int]", name: int, number: int) -> None:
    """Give a name that is not in the table a place of it."""
    last = len(table) - 2
    place = name & last
    while table[place]:
        place = (place + 2) & last
    table[place], table[place + 1] = name, number
