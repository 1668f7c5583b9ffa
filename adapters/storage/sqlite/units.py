"""How units are carried out on the one connection that writes a SQLite file.

Each in two ways: the quick one hopes that nothing is refused, and plans what is cheaper for many units together
(sql/plan.py): a statement for each table and form however many they are, and one upsert for each row of sums. By
instructions counted, the statements of a creation take a seventh less so. The thorough one says what was refused, and
to whom.
"""

import sqlite3
from collections.abc import Callable, Sequence
from itertools import groupby

import msgspec

from ....ports.faults import Conflict, Stale
from ..sql.nulls import Nulls
from ..sql.plan import Part, Plan, What
from ..sql.statements import Statement
from ..sql.tables import Tables
from ..table.writes import Add, Pending, Save, Write
from .committer import Doubtful

_TOGETHER = 16
"""Units whose rows are written in one go: about a millisecond, in which the event loop does nothing else."""
_LONG = 16
"""Writes of a unit that ends such a lot."""
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


def _is_planned(writes: Sequence[Write]) -> bool:
    """Whether a unit only adds, and changes rows that no unique rule binds: in which order that is done nobody sees."""
    for write in writes:
        kind = type(write)
        if kind is not Add and (kind is not Save or write.mapped.rules):
            return False
    return True


class Units:
    """The units of the transaction that is under way."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._plan = Plan(Nulls())
        self._planned = 0

    def begin(self) -> None:
        """Another transaction begins."""
        self._plan.clear()
        self._planned = 0

    def hope(self, cursor: sqlite3.Cursor, pending: Pending) -> None:
        """Carry a unit out, or leave it to the plan. Raises: Doubtful where something is refused."""
        try:
            if not _is_planned(pending.writes):
                _write_all(cursor, self._tables.of_unit(pending.writes))
            else:
                self._plan.put(pending.writes)
                self._planned += 1
                if self._planned == _TOGETHER or len(pending.writes) > _LONG:
                    self._write(cursor, self._plan.rows())
            self._plan.put(pending.accruals.values())
        except sqlite3.IntegrityError as refused:
            raise Doubtful from refused

    def end(self, cursor: sqlite3.Cursor) -> None:
        """Write what was left. Raises: Doubtful where a row or a sum is refused: whose it is shows when each unit
        writes its own."""
        try:
            self._write(cursor, self._plan.rows())
            self._write(cursor, self._plan.sums())
        except (sqlite3.IntegrityError, ValueError) as refused:
            raise Doubtful from refused

    def _write(self, cursor: sqlite3.Cursor, parts: Sequence[Part]) -> None:
        """Raises: Doubtful for a changed row that is not as it was read; sqlite3.IntegrityError."""
        self._planned = 0
        for part in parts:
            statements = self._tables.statements(part.mapped)
            if part.what is What.ADD:
                cursor.executemany(statements.insert(part.fields), part.by_row())
            elif part.what is What.ACCRUE:
                cursor.executemany(statements.upsert(1), part.by_row())
            elif cursor.executemany(statements.update(part.fields), part.by_row()).rowcount < part.count:
                raise Doubtful

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
