"""Units waiting for their commit (committer.py)."""

import asyncio
import sqlite3
from collections.abc import Callable
from typing import Any

import msgspec

Work = Callable[[sqlite3.Cursor], Any]
"""Statements of one unit. They may run twice, the first time in vain.

A sqlite3.Error fails the whole batch; any other exception fails only this unit. The function must fetch all rows of
a result, because an unread one would pin the connection to an old snapshot.
"""


class WaitingUnit(msgspec.Struct, eq=False):
    """Unit in the queue, with the future that its caller awaits."""

    work: Work
    quick: Work
    future: "asyncio.Future[Any]"
    late: Callable[[], None] | None
    outcome: Any = None

    __repr__ = object.__repr__  # the default of a struct would show the written values

    def succeed(self) -> None:
        """Report the outcome of this unit to its caller. The transaction is on disk."""
        if isinstance(self.outcome, Exception):
            self.fail(self.outcome)
        elif not self.future.done():
            self.future.set_result(self.outcome)
        elif self.late is not None:
            self.late()

    def fail(self, fault: Exception) -> None:
        if not self.future.done():
            self.future.set_exception(fault)


class Doubtful(Exception):
    """The quick mode of a unit or the end of its batch was refused. The thorough mode finds out which unit and why."""
