"""New rows of the units of one SQLite transaction, written together: one statement for each table, however many units.

A creation adds three rows and changes none. Units that only add can go in any order: none sees what another wrote, and
where two add the same, one is refused whichever comes first. So their rows wait for each other, table by table, and
what a statement costs before it does anything is paid once; what is null in all of them is left out (nulls.py). By
instructions counted, the statements of a creation take a seventh less.
"""

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any, TypeGuard

from ..sql.nulls import Nulls
from ..sql.statements import TableStatements
from ..table.codec import Row
from ..table.table_map import TableMap
from ..table.writes import Add, Write

_TOGETHER = 16
"""Units whose rows are written in one go: about a millisecond, in which the event loop does nothing else."""


def all_add(writes: Sequence[Write]) -> TypeGuard[Sequence[Add]]:
    """Whether a unit only adds, and so may wait here."""
    for write in writes:  # noqa: SIM110 - to make a generator takes longer
        if type(write) is not Add:
            return False
    return True


class Adds:
    """The rows that wait, of a transaction that is under way."""

    def __init__(self, statements: Callable[[TableMap[Any]], TableStatements]) -> None:
        self._statements = statements
        self._nulls = Nulls()
        self._rows: dict[str, tuple[TableMap[Any], list[Row]]] = {}
        self._units = 0

    def clear(self) -> None:
        """Another transaction begins."""
        self._rows.clear()
        self._units = 0

    def add(self, cursor: sqlite3.Cursor, adds: Sequence[Add]) -> None:
        """What a unit adds that does nothing else by id. Raises: as `write`, for all that waited."""
        for write in adds:
            waiting = self._rows.get(write.mapped.name)
            if waiting is None:
                self._rows[write.mapped.name] = write.mapped, [write.row]
            else:
                waiting[1].append(write.row)
        self._units += 1
        if self._units >= _TOGETHER:
            self.write(cursor)

    def write(self, cursor: sqlite3.Cursor) -> None:
        """Write what waits. Raises: sqlite3.IntegrityError, without telling whose row it is."""
        for mapped, rows in self._rows.values():
            columns = list(zip(*rows, strict=True))
            indexes = self._nulls.written(mapped, columns)
            given = zip(*(columns[index] for index in indexes), strict=True)
            cursor.executemany(self._statements(mapped).insert(indexes), given)
        self.clear()
