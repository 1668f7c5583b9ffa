"""What units of work write, taken together, for both databases: parts of one kind, table and form, each with a row for
every write. A database carries out a part as it does best (SQLite by `executemany`, Postgres by an array a column).

Pure: it asks no database, and assumes that nothing is refused. Where something is, whoever planned takes all of it back
and carries out each unit's writes one after the other. New rows come first, then changed ones, sums last and in the
order of ids, so that no two lock them crosswise; within a part rows stay in the order of the units.
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
    """What a part does."""

    ADD = "add"
    SAVE = "save"
    ACCRUE = "accrue"


class Part(msgspec.Struct, frozen=True):
    """Rows of one table of which the same is to be done."""

    what: What
    mapped: TableMap[Any]
    fields: tuple[str, ...]
    """Those that are written, in their order; all of an accrued row."""
    columns: Sequence[Sequence[Any]]
    """For each field the values of all rows. A save has two more: the ids, and the versions that are replaced."""

    @property
    def count(self) -> int:
        """How many rows."""
        return len(self.columns[0])

    def by_row(self) -> Iterable[Row]:
        """The same, row by row."""
        return zip(*self.columns, strict=True)


class Plan:
    """Collects what units write, until it is carried out. `nulls` remembers which fields new rows leave out."""

    def __init__(self, nulls: Nulls) -> None:
        self._nulls = nulls
        self._adds: dict[str, tuple[TableMap[Any], list[Row]]] = {}
        self._saves: dict[tuple[str, tuple[str, ...]], tuple[TableMap[Any], list[Row]]] = {}
        self._sums: dict[tuple[str, str], tuple[TableMap[Any], list[Any]]] = {}

    def clear(self) -> None:
        """Forget all of it."""
        self._adds.clear()
        self._saves.clear()
        self._sums.clear()

    def put(self, writes: Iterable[Write]) -> None:
        """What a unit writes, or some of it. Raises: TypeError for any other write than these three."""
        for write in writes:
            mapped = write.mapped
            # Not isinstance, which takes several times as long where the answer is no.
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
        """New rows and changed ones, which are then forgotten."""
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
        """What is accrued, one row for each that moves, which is then forgotten. Raises: ValueError for sums that
        together are beyond 64 bits."""
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
