"""What the units of one SQLite transaction add to sums, taken together: one upsert for each row, however many units
move it.

A new payment moves two tallies, and those of a moment mostly the same ones: beside an upsert in every unit that is a
thirtieth of what a creation costs. It is as if whoever accrues came last in the transaction: a row that another unit
of it removes, having seen none of this, is made anew, and nothing that was added is lost.
"""

import sqlite3
from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Any

from ..sql.statements import TableStatements
from ..table.table_map import TableMap
from ..table.writes import Accrue


class Sums:
    """The accruals of a transaction that is under way."""

    def __init__(self, statements: Callable[[TableMap[Any]], TableStatements]) -> None:
        self._statements = statements
        self._rows: dict[tuple[str, str], tuple[Accrue, list[Any]]] = {}

    def clear(self) -> None:
        """Another transaction begins."""
        self._rows.clear()

    def add(self, accruals: Iterable[Accrue]) -> None:
        """What a unit accrues, whose other writes were carried out."""
        for accrual in accruals:
            mapped = accrual.mapped
            known = self._rows.get((mapped.name, accrual.id))
            if known is None:
                self._rows[mapped.name, accrual.id] = accrual, list(accrual.row)
                continue
            row = known[1]
            for index in mapped.sums_in_order:
                row[index] += accrual.row[index]

    def write(self, cursor: sqlite3.Cursor) -> None:
        """Add all of it to what is stored. Raises: sqlite3.IntegrityError, OverflowError for a sum beyond 64 bits,
        without telling whose it is."""
        for _, group in groupby(sorted(self._rows.items()), key=_table_of):
            found = [value for _, value in group]
            one = found[0][0]
            text, _ = self._statements(one.mapped).accrue([one])
            cursor.executemany(text, [row for _, row in found])
        self._rows.clear()  # what a rush leaves is not kept until the next one


def _table_of(item: tuple[tuple[str, str], tuple[Accrue, list[Any]]]) -> str:
    return item[0][0]
