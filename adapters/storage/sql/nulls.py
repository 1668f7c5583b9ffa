"""Which fields of new rows are left out, because they are null anyway.

Of a payment's fields more than half are null until much later. To bind a null takes Python's SQLite longer than a text,
and an array of them, however empty, is worked through by Postgres' driver and by the server: a twentieth of what a new
payment costs on Postgres (by time), a thirtieth on SQLite (by instructions).
"""

from collections.abc import Sequence
from typing import Any

from ..table.table_map import TableMap

_MASKS = 4
"""Ways to leave fields of one table out: each makes a form of its own, which every connection has to plan."""


Written = tuple[tuple[int, ...], tuple[str, ...]]
"""Fields by their places, and the same by their names."""


class Nulls:
    """What new rows leave out, of all tables."""

    def __init__(self) -> None:
        self._masks: dict[str, list[tuple[frozenset[int], Written]]] = {}
        """By table: what is left out, the most first, and the rest, which is written."""

    def written(self, mapped: TableMap[Any], columns: Sequence[Sequence[Any]]) -> Written:
        """The fields to write, given the values of each: all but some that are null in every row."""
        masks = self._masks.get(mapped.name)
        if masks is None:
            masks = self._masks[mapped.name] = []
        rows = len(columns[0])
        for null, written in masks:
            for index in null:
                if columns[index].count(None) < rows:
                    break
            else:
                return written
        everything = tuple(range(len(columns)))
        null = frozenset(index for index in everything if columns[index].count(None) == rows)
        if not null or len(masks) == _MASKS:
            return everything, mapped.codec.names
        places = tuple(index for index in everything if index not in null)
        written = places, tuple(mapped.codec.names[index] for index in places)
        masks.append((null, written))
        masks.sort(key=lambda mask: len(mask[0]), reverse=True)
        return written
