"""Which fields of new rows are left out, because they are null anyway.

Of a payment's fields more than half are null until much later. To bind a null takes Python's SQLite longer than a text,
and an array of them, however empty, is worked through by Postgres' driver and by the server: a twentieth of what a new
payment costs on Postgres (by time), a thirtieth on SQLite (by instructions).
"""

from collections.abc import Callable, Collection, Sequence
from operator import itemgetter
from typing import Any

import msgspec

from ..table.codec import Row
from ..table.table_map import TableMap

_MASKS = 4
"""Ways to leave fields of one table out: each makes a form of its own, which every connection has to plan."""
_FEWEST = 2
"""Fields that are worth such a form."""


class Mask(msgspec.Struct, frozen=True):
    """A way to leave fields of a table out."""

    null: frozenset[int]
    """What is left out, by its places."""
    places: tuple[int, ...]
    """What is written, by its places."""
    names: tuple[str, ...]
    """The same by its names."""
    left_out: Callable[[Row], tuple[Any, ...]]
    """The values of a row that are not written."""
    values: Callable[[Row], tuple[Any, ...]]
    """Those that are."""


class Nulls:
    """What new rows leave out, of all tables."""

    def __init__(self) -> None:
        self._masks: dict[str, list[Mask]] = {}
        """By table, those that leave the most out first."""

    def written(self, mapped: TableMap[Any], columns: Sequence[Sequence[Any]]) -> tuple[Sequence[int], tuple[str, ...]]:
        """The fields to write, by their places and by their names, given the values of each: all but some that are null
        in every row."""
        rows = len(columns[0])
        for mask in self._masks.get(mapped.name, ()):
            for index in mask.null:
                if columns[index].count(None) < rows:
                    break
            else:
                return mask.places, mask.names
        null = [index for index, column in enumerate(columns) if column.count(None) == rows]
        learnt = self._learn(mapped, null)
        return (range(len(columns)), mapped.codec.names) if learnt is None else (learnt.places, learnt.names)

    def of_row(self, mapped: TableMap[Any], row: Row) -> tuple[tuple[str, ...], Row]:
        """The same of one row: the names of the fields to write, and their values."""
        if row.count(None) < _FEWEST:
            return mapped.codec.names, row
        for mask in self._masks.get(mapped.name, ()):
            if mask.left_out(row).count(None) == len(mask.null):
                return mask.names, mask.values(row)
        learnt = self._learn(mapped, [index for index, value in enumerate(row) if value is None])
        return (mapped.codec.names, row) if learnt is None else (learnt.names, learnt.values(row))

    def _learn(self, mapped: TableMap[Any], null: Collection[int]) -> Mask | None:
        """Make a mask that leaves these fields out; None where they are too few, or the table has all that it may."""
        masks = self._masks.setdefault(mapped.name, [])
        if len(null) < _FEWEST or len(masks) == _MASKS:
            return None
        names = mapped.codec.names
        places = tuple(index for index in range(len(names)) if index not in null)
        written = tuple(names[index] for index in places)
        mask = Mask(frozenset(null), places, written, itemgetter(*null), itemgetter(*places))
        masks.append(mask)
        masks.sort(key=lambda mask: len(mask.null), reverse=True)
        return mask
