"""How units are carried out on the one connection that writes a SQLite file.

Each in two ways: the quick one hopes that nothing is refused, and leaves to the end of the transaction what is cheaper
for all its units together (rows of those that only add, sums); the thorough one says what was refused, and to whom.
"""

import sqlite3
from collections.abc import Callable, Sequence
from itertools import groupby

import msgspec

from ....ports.faults import Conflict, Stale
from ..sql.statements import Statement
from ..sql.tables import Tables
from ..table.writes import Pending, Write
from .adds import Adds, all_add
from .committer import Doubtful
from .sums import Sums

_MANY = 8
"""Statements of a unit from which on those of one text, in a row, are carried out together."""


def _text_of(statement: tuple[Write, Statement]) -> str:
    return statement[1][0]


def _write_all(cursor: sqlite3.Cursor, statements: Sequence[tuple[Write, Statement]]) -> None:
    """Carry out statements that change one row each, of which none is expected to be refused. Raises: Doubtful,
    sqlite3.IntegrityError."""
    if len(statements) < _MANY:
        for _, (text, parameters) in statements:
            if not cursor.execute(text, parameters).rowcount:
                raise Doubtful
        return
    # Each row on its own costs half as much again.
    for text, group in groupby(statements, key=_text_of):
        rows = [parameters for _, (_, parameters) in group]
        if cursor.executemany(text, rows).rowcount < len(rows):
            raise Doubtful


class Units:
    """The units of the transaction that is under way."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._adds = Adds(tables.statements)
        self._sums = Sums(tables.statements)

    def begin(self) -> None:
        """Another transaction begins."""
        self._adds.clear()
        self._sums.clear()

    def hope(self, cursor: sqlite3.Cursor, pending: Pending) -> None:
        """Carry a unit out, or leave it to the end. Raises: Doubtful where something is refused."""
        try:
            if all_add(pending.writes):
                self._adds.add(cursor, pending.writes)
            else:
                _write_all(cursor, self._tables.of_unit(pending.writes))
        except sqlite3.IntegrityError as refused:
            raise Doubtful from refused
        self._sums.add(pending.accruals.values())

    def end(self, cursor: sqlite3.Cursor) -> None:
        """Write what was left. Raises: Doubtful where a row or a sum is refused: whose it is shows when each unit
        writes its own."""
        try:
            self._adds.write(cursor)
            self._sums.write(cursor)
        except (sqlite3.IntegrityError, OverflowError) as refused:
            raise Doubtful from refused

    def carry_out(self, cursor: sqlite3.Cursor, pending: Pending) -> None:
        """Carry out all of a unit. Raises: Conflict, Stale, ValueError for what is refused."""
        for write, (text, parameters) in self._tables.of_unit(pending.all_writes()):
            try:
                changed = cursor.execute(text, parameters).rowcount
            except sqlite3.IntegrityError:
                raise self._refusal(cursor, write) from None
            if not changed:
                raise Stale(f"{write.mapped.name} {write.id} changed since it was read, or is gone")

    def _refusal(self, cursor: sqlite3.Cursor, write: Write) -> Exception:
        """What a constraint refused: a unique rule, or, having made a null of the sum, one beyond 64 bits."""
        for rule, statement in self._tables.statements(write.mapped).clashes(write):
            if cursor.execute(*statement).fetchall():
                return Conflict(rule)
        return ValueError(f"{write.mapped.name}: beyond 64 bits, or otherwise refused by the table")


class Work(msgspec.Struct, eq=False):
    """A unit as the committer is given it. Functions made for each would take longer than this."""

    units: Units
    pending: Pending
    late: Callable[[Pending], None]

    def hope(self, cursor: sqlite3.Cursor) -> None:
        """As Units has it."""
        self.units.hope(cursor, self.pending)

    def carry_out(self, cursor: sqlite3.Cursor) -> None:
        """As Units has it."""
        self.units.carry_out(cursor, self.pending)

    def tell_late(self) -> None:
        """It was written after who committed it was cancelled."""
        self.late(self.pending)
