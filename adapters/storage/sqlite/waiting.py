"""Units that wait for their commit (committer.py)."""

import asyncio
import sqlite3
from collections.abc import Callable
from typing import Any

import msgspec

Work = Callable[[sqlite3.Cursor], Any]
"""Statements of one unit, which may be carried out twice, the first time in vain. sqlite3.Error out of it fails the
whole batch; anything else only this unit. It leaves no row of an answer unread: that would keep the connection in the
past."""


class WaitingUnit(msgspec.Struct, eq=False):
    """A unit in the queue, and the future of whoever waits for it."""

    work: Work
    quick: Work
    future: "asyncio.Future[Any]"
    late: Callable[[], None] | None
    outcome: Any = None

    __repr__ = object.__repr__  # a struct's own would show what is written

    def succeed(self) -> None:
        """The transaction is on disk: tell what came of this unit in it."""
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
    """The quick way of a unit, or the end of a batch's, was refused; whose refusal it is and which, their work says."""
