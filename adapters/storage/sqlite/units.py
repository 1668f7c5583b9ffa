"""Execution of units on the connection that writes a SQLite file.

There are two modes. The quick one assumes that nothing is refused, and leaves sums to the end of the batch, where
one upsert writes each row of sums, however many units changed it (sql/plan.py). The thorough one finds out which
unit was refused, and why.
"""

import sqlite3
from collections.abc import Callable

import msgspec

from ....ports.faults import Conflict, Stale
from ..sql.nulls import Nulls
from ..sql.plan import Plan
from ..sql.statements import Statement
from ..sql.tables import Tables
from ..table.writes import Add, Pending, Write
from .waiting import Doubtful


class Units:
    """Units of the transaction under way."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._nulls = Nulls()
        self._sums = Plan(self._nulls)

    def begin(self) -> None:
        """Start another transaction."""
        self._sums.clear()

    def hope(self, cursor: sqlite3.Cursor, pending: Pending) -> None:
        """Write a unit without its sums. Raises: Doubtful when a write is refused."""
        try:
            for write in pending.writes:
                if not cursor.execute(*self._quick(write)).rowcount:
                    raise Doubtful
        except sqlite3.IntegrityError as refused:
            raise Doubtful from refused
        self._sums.put(pending.accruals.values())

    def _quick(self, write: Write) -> Statement:
        """Return the statement of a write.

        An insert leaves out null fields, because each costs SQLite 1300 instructions.
        """
        statements = self._tables.statements(write.mapped)
        if type(write) is not Add:
            return statements.of(write)
        names, values = self._nulls.of_row(write.mapped, write.row)
        return statements.insert(names), values

    def end(self, cursor: sqlite3.Cursor) -> None:
        """Write the sums.

        Raises: Doubtful when one is refused. Each unit then writes its own, which shows whose it was.
        """
        try:
            for part in self._sums.sums():
                cursor.executemany(self._tables.statements(part.mapped).upsert(1), part.by_row())
        except (sqlite3.IntegrityError, ValueError) as refused:
            raise Doubtful from refused

    def carry_out(self, cursor: sqlite3.Cursor, pending: Pending) -> None:
        """Write a whole unit. Raises: Conflict, Stale or ValueError when a write is refused."""
        for write, (text, parameters) in self._tables.of_unit(pending.all_writes()):
            try:
                changed = cursor.execute(text, parameters).rowcount
            except sqlite3.IntegrityError:
                raise self._refusal(cursor, write) from None
            if not changed:
                raise Stale(f"{write.mapped.name} {write.id} changed since it was read, or is gone")

    def _refusal(self, cursor: sqlite3.Cursor, write: Write) -> Exception:
        """Return the error for a violated constraint: a unique rule, or a sum beyond 64 bits, which SQLite turned into
        null.
        """
        for rule, statement in self._tables.statements(write.mapped).clashes(write):
            if cursor.execute(*statement).fetchall():
                return Conflict(rule)
        return ValueError(f"{write.mapped.name}: beyond 64 bits, or otherwise refused by the table")


class Work(msgspec.Struct, eq=False):
    """A unit in the form that the committer takes. Creating closures for each unit would take longer."""

    units: Units
    pending: Pending
    late: Callable[[Pending], None]

    def hope(self, cursor: sqlite3.Cursor) -> None:
        """Write the unit in the quick mode of Units."""
        self.units.hope(cursor, self.pending)

    def carry_out(self, cursor: sqlite3.Cursor) -> None:
        """Write the unit in the thorough mode of Units."""
        self.units.carry_out(cursor, self.pending)

    def tell_late(self) -> None:
        """Report a unit that was written after its caller was cancelled."""
        self.late(self.pending)
