"""Choice of the null fields that an insert leaves out.

More than half of a payment's fields are null until much later. Python's SQLite binds a null more slowly than a
text, and Postgres' driver and server process even an array of nulls. This costs a twentieth of a new payment's time
on Postgres, and a thirtieth of its instructions on SQLite.
"""

from collections.abc import Callable, Collection, Sequence
from operator import itemgetter
from typing import Any

import msgspec

from ..table.codec import Row
from ..table.table_map import TableMap

_MASKS = 4
"""Masks for one table. Each makes another statement, which every connection has to plan."""
_FEWEST = 2
"""Null fields that are worth a mask."""


class Mask(msgspec.Struct, frozen=True):
    """Set of fields that an insert leaves out."""

    null: frozenset[int]
    """Positions of the fields left out."""
    places: tuple[int, ...]
    """Positions of the written fields."""
    names: tuple[str, ...]
    """Names of the written fields."""
    left_out: Callable[[Row], tuple[Any, ...]]
    """Get the values of a row for the fields left out."""
    values: Callable[[Row], tuple[Any, ...]]
    """Get the values of a row for the written fields."""


class Nulls:
    """Masks of all tables."""

    def __init__(self) -> None:
        self._masks: dict[str, list[Mask]] = {}
        """Masks by table. Those that leave out the most come first."""

    def written(self, mapped: TableMap[Any], columns: Sequence[Sequence[Any]]) -> tuple[Sequence[int], tuple[str, ...]]:
        """Return positions and names of the fields to write, given the columns of values.

        Fields that are null in every row may be left out.
        """
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
        """Return names and values of the fields to write for one row."""
        if row.count(None) < _FEWEST:
            return mapped.codec.names, row
        for mask in self._masks.get(mapped.name, ()):
            if mask.left_out(row).count(None) == len(mask.null):
                return mask.names, mask.values(row)
        learnt = self._learn(mapped, [index for index, value in enumerate(row) if value is None])
        return (mapped.codec.names, row) if learnt is None else (learnt.names, learnt.values(row))

    def _learn(self, mapped: TableMap[Any], null: Collection[int]) -> Mask | None:
        """Make a mask that leaves these fields out; None if they are too few, or the table has its maximum of masks."""
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
