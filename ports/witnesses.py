"""Marks of the running processes in a database that a promoted server may replace (a failover).

A server stores its commits in one sequence, and a promoted server has the beginning of it. So if it has the last commit
that was confirmed to a process, it has everything that was confirmed before. Each durable commit of a process carries a
mark for that, and once a second the process marks itself.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol, runtime_checkable

import msgspec


class Witness(msgspec.Struct, frozen=True, kw_only=True):
    """The mark of one process, as the database has it."""

    process: str
    """Random id of the process."""
    number: int
    """It rises with each mark."""
    is_whole: bool
    """Whether the database always had every commit that was confirmed to the process."""
    since: str | None
    """Location of the database at the first mark of the process."""
    place: str | None
    """Location at the newest mark."""
    marked_at: datetime
    """Time of the newest mark, by the server's clock."""
    is_synchronous: bool
    """Whether commits waited for a synchronous standby at the newest mark."""
    has_left: bool = False
    """Whether the process ended in order, so that it confirms nothing any more."""
    is_accepted: bool = False
    """Whether an operator accepted the database without what this process may miss. It continues under another id."""


@runtime_checkable
class Witnessed(Protocol):
    """A storage whose server may be replaced by a promoted one while processes use it. Optional."""

    @property
    def process(self) -> str:
        """The id under which this process marks itself."""
        ...

    def location(self) -> str | None:
        """Return the location that the newest connection reached (`Beside.place`); None if it is unknown, and empty
        while this process has not found all of its commits there. Cheap, so callers may check often."""
        ...

    def follows(self, former: str, present: str) -> bool:
        """Return whether `present` may be a promoted copy of the database at `former`."""
        ...

    async def now(self) -> datetime:
        """Return the time of the server's clock. Raises: Unavailable."""
        ...

    async def mark(self) -> Sequence[Witness]:
        """Mark this process by a durable commit, and return the marks of all processes. Its own mark says whether the
        database has all its confirmed commits. From the first call on, each durable commit carries a mark.

        Raises: Unavailable.
        """
        ...

    async def witnesses(self) -> Sequence[Witness]:
        """Return the marks of all processes. Raises: Unavailable."""
        ...

    def begin_anew(self) -> None:
        """Continue under another id, as a process that confirmed nothing yet. The former marks stay."""
        ...
