"""Grouping of the writes of units for both databases.

Each part has one kind of write, one table and one set of fields, with a row for every write. A database writes a
part in its fastest way (SQLite with `executemany`, Postgres with an array for each column). This module reads no
database, and assumes that nothing is refused. If something is, the caller rolls everything back and runs each
unit's writes one after the other. New rows come first, then changed ones. Sums come last, in the order of ids, so
that two plans never lock them crosswise. Within a part, rows keep the order of the units.
"""

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Any

import msgspec

from ..table.codec import Row
from ..table.table_map import TableMap
from ..table.writes import Accrue, Add, Save, Write
from .nulls import Nulls

_LOWEST, _HIGHEST = -(2**63), 2**63 - 1


class What(Enum):
    """Kind of write."""

    ADD = "add"
    SAVE = "save"
    ACCRUE = "accrue"


class Part(msgspec.Struct, frozen=True):
    """Rows of one table with the same kind of write."""

    what: What
    mapped: TableMap[Any]
    fields: tuple[str, ...]
    """The written fields, in order. An accrual has all fields of the row."""
    columns: Sequence[Sequence[Any]]
    """Values of all rows for each field. A save has two more columns: the ids, and the versions that it replaces."""

    @property
    def count(self) -> int:
        """Number of rows."""
        return len(self.columns[0])

    def by_row(self) -> Iterable[Row]:
        """Return the values row by row."""
        return zip(*self.columns, strict=True)


class Plan:
    """Collector of the writes of units, until they are run. `nulls` remembers which fields new rows leave out."""

    def __init__(self, nulls: Nulls) -> None:
        self._nulls = nulls
        self._adds: dict[str, tuple[TableMap[Any], list[Row]]] = {}
        self._saves: dict[tuple[str, tuple[str, ...]], tuple[TableMap[Any], list[Row]]] = {}
        self._sums: dict[tuple[str, str], tuple[TableMap[Any], list[Any]]] = {}

    def clear(self) -> None:
        """Drop all collected writes."""
        self._adds.clear()
        self._saves.clear()
        self._sums.clear()

    def put(self, writes: Iterable[Write]) -> None:
        """Add writes of a unit. Raises: TypeError for any write but an add, save or accrual."""
        for write in writes:
            mapped = write.mapped
            # Compare types: `isinstance` takes several times as long when the answer is no.
            if type(write) is Add:
                waiting = self._adds.get(mapped.name)
                if waiting is None:
                    self._adds[mapped.name] = mapped, [write.row]
                else:
                    waiting[1].append(write.row)
            elif type(write) is Save:
                values = (*mapped.taken(write.changed, write.row), write.id, write.version)
                changed = self._saves.get((mapped.name, write.changed))
                if changed is None:
                    self._saves[mapped.name, write.changed] = mapped, [values]
                else:
                    changed[1].append(values)
            elif type(write) is Accrue:
                moved = self._sums.get((mapped.name, write.id))
                if moved is None:
                    self._sums[mapped.name, write.id] = mapped, list(write.row)
                else:
                    for index in mapped.sums_in_order:
                        moved[1][index] += write.row[index]
            else:
                raise TypeError(f"{type(write).__name__} is not planned")

    def rows(self) -> list[Part]:
        """Return the parts of new and changed rows, and drop them here."""
        parts = []
        for mapped, rows in self._adds.values():
            columns = list(zip(*rows, strict=True))
            places, names = self._nulls.written(mapped, columns)
            parts.append(Part(What.ADD, mapped, names, [columns[place] for place in places]))
        for (_, changed), (mapped, rows) in self._saves.items():
            parts.append(Part(What.SAVE, mapped, mapped.setting(changed), list(zip(*rows, strict=True))))
        self._adds.clear()
        self._saves.clear()
        return parts

    def sums(self) -> list[Part]:
        """Return the parts of sums, with one row for each changed row, and drop them here.

        Raises: ValueError for sums that together are beyond 64 bits.
        """
        tables: dict[str, tuple[TableMap[Any], list[Row]]] = {}
        for (name, _), (mapped, row) in sorted(self._sums.items(), key=_place):
            for index in mapped.sums_in_order:
                if not _LOWEST <= row[index] <= _HIGHEST:
                    raise ValueError(f"{name}: a sum beyond 64 bits")
            tables.setdefault(name, (mapped, []))[1].append(row)
        self._sums.clear()
        return [
            Part(What.ACCRUE, mapped, mapped.codec.names, list(zip(*rows, strict=True)))
            for mapped, rows in tables.values()
        ]


def _place(item: tuple[tuple[str, str], Any]) -> tuple[str, str]:
    return item[0]
