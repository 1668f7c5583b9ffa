"""Rows that this program cannot read, because a newer version wrote them or they were damaged. Each is set aside and
reported, so that it blocks only the objects it concerns."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, Protocol, runtime_checkable

import msgspec

from .storage import Unit


class UnreadableRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row that cannot be read, recorded by the storage that met it."""

    id: str
    """Table, colon, row id."""
    source: str
    """Table name."""
    row_id: str
    why: str
    """The field and the fault, never its content."""
    found_at: datetime
    found_by: str
    """Version and schema of the program that could not read the row. Another version may be able to."""
    held: str | None = None
    """The row's values as JSON, if the row was moved out of its table so that it is not read again: a job, which every
    claim would otherwise return. Null: the row is still in its table."""
    version: int = 0

    __repr__ = object.__repr__  # the default repr of a struct would show `held`


Resume = Callable[[Unit, Any], Awaitable[None]]
"""Receives a record that can be read again and stayed in its table meanwhile, and writes the work it missed. Raises:
Conflict, Stale, when another process does the same."""


@runtime_checkable
class SettingAside(Protocol):
    """A storage whose rows other programs may also write, so that some may be unreadable. Optional."""

    async def take_up(self, resume: Resume, /) -> int:
        """Try again to read each recorded row, and return how many could be read. Such a row is no longer recorded. A
        row that was moved out returns to its table, unless the table has a new one with its id; for any other row the
        same unit includes the writes of `resume`."""
        ...

    async def count_noted(self) -> int:
        """Return how many rows are recorded, including all that were met up to now."""
        ...
