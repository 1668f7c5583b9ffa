"""How units are carried out on the one connection that writes a SQLite file.

Each in two ways: the quick one hopes that nothing is refused, and leaves sums to the end of the batch, where one upsert
adds up each row of them however many units moved it (sql/plan.py). The thorough one says what was refused, and to whom.
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
    """The units of the transaction that is under way."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._nulls = Nulls()
        self._sums = Plan(self._nulls)

    def begin(self) -> None:
        """Another transaction begins."""
        self._sums.clear()

    def hope(self, cursor: sqlite3.Cursor, pending: Pending) -> None:
        """Carry a unit out, but for its sums. Raises: Doubtful where something is refused."""
        try:
            for write in pending.writes:
                if not cursor.execute(*self._quick(write)).rowcount:
                    raise Doubtful
        except sqlite3.IntegrityError as refused:
            raise Doubtful from refused
        self._sums.put(pending.accruals.values())

    def _quick(self, write: Write) -> Statement:
        """The statement of a write; of a new row without the fields that are null, each of which SQLite takes 1300
        instructions to be told."""
        statements = self._tables.statements(write.mapped)
        if type(write) is not Add:
            return statements.of(write)
        names, values = self._nulls.of_row(write.mapped, write.row)
        return statements.insert(names), values

    def end(self, cursor: sqlite3.Cursor) -> None:
        """Write the sums. Raises: Doubtful where one is refused: whose it is shows when each unit writes its own."""
        try:
            for part in self._sums.sums():
                cursor.executemany(self._tables.statements(part.mapped).upsert(1), part.by_row())
        except (sqlite3.IntegrityError, ValueError) as refused:
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
