"""Check that an open SQLite file is still the file at its path.

SQLite keeps writing to an open file that was deleted or replaced, and those writes disappear with the process.
"""

import os
import sys
from pathlib import Path

from ....ports.faults import Unavailable

_LOGS = ("-wal", "-shm")
"""Suffixes of the other files that belong to an open database. A commit goes into the log first."""


class OpenFile:
    """Identity of an open file, its log and its index, recorded at opening."""

    def __init__(self, path: Path) -> None:
        """Record the identity. The file was opened and read before, so its log exists."""
        self.lost: str | None = None
        """Reason why writes are lost, once they are. It is permanent, because a restored file is a different file."""
        files = (path, *(path.with_name(path.name + ending) for ending in _LOGS))
        # Windows can neither delete nor replace an open file.
        self._known = [] if sys.platform == "win32" else [(file, found) for file in files if (found := _which(file))]

    def look(self) -> str | None:
        """Return why writes would be lost now; None while every file is in place. Makes three system calls."""
        for file, known in self._known if self.lost is None else ():
            if _which(file) != known:
                self.lost = f"{file} was deleted or replaced while it was open: nothing that is written is kept"
                break
        return self.lost

    def require(self) -> None:
        """Raise Unavailable if `look` found the file lost."""
        if self.lost is not None:
            raise Unavailable(self.lost)


def _which(file: Path) -> tuple[int, int] | None:
    """Return device and inode of the file; None if it is not there."""
    try:
        found = os.stat(file)  # noqa: PTH116 - a third of the time of Path.stat, and it runs at each commit
    except OSError:
        return None
    return found.st_dev, found.st_ino
