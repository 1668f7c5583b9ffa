"""Whether a SQLite file that is open is still the one that its path leads to.

A file that is deleted or replaced stays open: SQLite goes on writing to it, and all of that is gone with the process.
"""

import os
import sys
from pathlib import Path

from ....ports.faults import Unavailable

_LOGS = ("-wal", "-shm")
"""What else belongs to an open file: what is committed lies in the log first."""


class OpenFile:
    """Where an open file, its log and its index lay when they were opened."""

    def __init__(self, path: Path) -> None:
        """The file has been opened and read, so that its log is there."""
        self.lost: str | None = None
        """Why what is written is lost, once it is. It stays so: what is put back is another file."""
        files = (path, *(path.with_name(path.name + ending) for ending in _LOGS))
        # Windows neither deletes nor replaces what is open.
        self._known = [] if sys.platform == "win32" else [(file, found) for file in files if (found := _which(file))]

    def look(self) -> str | None:
        """Why what is written now would be lost; None while all is in its place. Three calls of the system."""
        for file, known in self._known if self.lost is None else ():
            if _which(file) != known:
                self.lost = f"{file} was deleted or replaced while it was open: nothing that is written is kept"
                break
        return self.lost

    def require(self) -> None:
        """Raises: Unavailable when a look found it lost."""
        if self.lost is not None:
            raise Unavailable(self.lost)


def _which(file: Path) -> tuple[int, int] | None:
    """Device and number of what lies there."""
    try:
        found = os.stat(file)  # noqa: PTH116 - a third of what Path takes, at each commit
    except OSError:
        return None
    return found.st_dev, found.st_ino
