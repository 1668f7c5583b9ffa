"""Whether a storage has room for what a creation writes, which a health check's one small row does not tell: that
fits where the last one was, when nothing larger does any more."""

import os
from collections.abc import Callable
from pathlib import Path

from ....ports.faults import Unavailable

LEAST = 8 * 1024 * 1024
"""Bytes that must be free where the file lies: what a busy second writes, before its log is used anew."""
_COUNTS = 1.0
"""Seconds for which a refused unit says that there is no room."""


class Room:
    """Remembers the last unit that was refused for want of room; `is_full` tells by a fault whether it was."""

    def __init__(self, monotonic: Callable[[], float], is_full: Callable[[BaseException | None], bool]) -> None:
        self._monotonic = monotonic
        self._is_full = is_full
        self._refused_at: float | None = None

    def refused(self, fault: Unavailable) -> None:
        """A unit was not written."""
        if self._is_full(fault.__cause__):
            self._refused_at = self._monotonic()

    def taken(self) -> None:
        """A unit was written: there is room."""
        self._refused_at = None

    def check(self) -> None:
        """Raises Unavailable while the last refusal counts."""
        if self._refused_at is not None and self._monotonic() - self._refused_at < _COUNTS:
            raise Unavailable("there is no room: the last unit was not written")


def free_bytes(path: Path) -> int:
    """Return how many bytes this process may still write where the path lies."""
    found = os.statvfs(path)
    # Blocks that are reserved for root are free for root.
    return (found.f_bavail if os.geteuid() else found.f_bfree) * found.f_frsize


def check_disk(path: Path) -> None:
    """Raises Unavailable where too little is free."""
    free = free_bytes(path)
    if free < LEAST:
        raise Unavailable(f"the disk is full: {free // 1024} KiB are left at {path.parent}")
