"""Rows that this program cannot read: what a newer one wrote, or what was damaged. Each is set aside and told of, so
that it stops nobody but whom it is about."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, Protocol, runtime_checkable

import msgspec

from .storage import Unit


class UnreadableRow(msgspec.Struct, frozen=True, kw_only=True):
    """One of them, written by the storage that met it."""

    id: str
    """Its table, a colon, and its id."""
    source: str
    """The table."""
    row_id: str
    why: str
    """Which field, and by what fault. Never what is in it."""
    found_at: datetime
    found_by: str
    """Version and schema of the program that could not read it. Another one may."""
    held: str | None = None
    """The row's values as JSON, where it was taken out of its table so that nobody meets it again: a job, which every
    claim would else bring back. Null: it lies where it lay."""
    version: int = 0

    __repr__ = object.__repr__  # a struct's own would show what is held


Resume = Callable[[Unit, Any], Awaitable[None]]
"""Is given a record that can be read again, which lay in its table meanwhile, and writes what it missed there. Raises:
Conflict, Stale, where somebody else does, too."""


@runtime_checkable
class SettingAside(Protocol):
    """A storage whose rows others may write, too, so that some cannot be read. Not every one is."""

    async def take_up(self, resume: Resume, /) -> int:
        """Try again to read each row that is noted: one that can be read now is noted no more, and one that was taken
        out goes back to its table, unless it stands there anew; of any other the same unit writes what `resume` does.
        How many these are."""
        ...

    async def count_noted(self) -> int:
        """How many rows are noted, all that were met up to now among them."""
        ...
