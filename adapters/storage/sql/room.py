"""Check that a storage has room for new payments.

The one small row of a health check cannot show it: it fits into its old place when nothing larger fits any more.
"""

import os
from collections.abc import Callable
from pathlib import Path

from ....ports.faults import Unavailable

LEAST = 8 * 1024 * 1024
"""Free bytes needed on the database's disk: a busy second writes as much before SQLite reuses its log."""
_COUNTS = 1.0
"""Seconds for which a refused unit counts as a full disk."""


class Room:
    """Memory of the last unit that was refused because the disk was full. `is_full` recognizes such a fault."""

    def __init__(self, monotonic: Callable[[], float], is_full: Callable[[BaseException | None], bool]) -> None:
        self._monotonic = monotonic
        self._is_full = is_full
        self._refused_at: float | None = None

    def refused(self, fault: Unavailable) -> None:
        """Remember a unit that was not written, if the disk was full."""
        if self._is_full(fault.__cause__):
            self._refused_at = self._monotonic()

    def taken(self) -> None:
        """Remember that a unit was written, so there is room."""
        self._refused_at = None

    def check(self) -> None:
        """Raise Unavailable while the last refusal counts."""
        if self._refused_at is not None and self._monotonic() - self._refused_at < _COUNTS:
            raise Unavailable("there is no room: the last unit was not written")


def free_bytes(path: Path) -> int:
    """Return how many bytes this process may still write on the path's file system."""
    found = os.statvfs(path)
    # Only root may use the blocks that are reserved for root.
    return (found.f_bavail if os.geteuid() else found.f_bfree) * found.f_frsize


def check_disk(path: Path) -> None:
    """Raise Unavailable if too little disk space is free."""
    free = free_bytes(path)
    if free < LEAST:
        raise Unavailable(f"the disk is full: {free // 1024} KiB are left at {path.parent}")
