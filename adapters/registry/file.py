"""Process registry based on file locks beside a SQLite database, for the processes of one machine.

`flock` belongs to the open file, so the system releases it when the process ends, for whatever reason. The files stay;
they contain only the name of the last process.
"""

import os
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from ...ports.faults import Unavailable
from ...ports.registry import Role

_WATCHED = sys.platform != "win32"
"""Windows has no flock, so processes are not registered there."""
if sys.platform != "win32":
    import fcntl


class FileRegistry:
    """Implement the port ProcessRegistry."""

    def __init__(self, database: Path) -> None:
        """The files are beside `database`; their folder is created by the first `enter`."""
        self._database = database.absolute()
        self._held: dict[Role, int] = {}

    async def enter(self, role: Role, *, alone: bool) -> bool:
        """Lock the role's file. Raises: Unavailable if it cannot be created."""
        if not _WATCHED or role in self._held:
            return True
        try:
            self._database.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(self._path(role), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise Unavailable(f"{self._path(role)} cannot be opened: {error.strerror}") from error
        if not _locked(descriptor, alone=alone):
            os.close(descriptor)
            return False
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
        self._held[role] = descriptor
        return True

    def when_lost(self, tell: Callable[[], None]) -> None:
        """Do nothing: a file lock is never lost while the process lives."""

    async def others(self, role: Role) -> Sequence[str]:
        """Return the name of the last process that locked the file, if another process holds the lock. Raises:
        Unavailable."""
        if not _WATCHED:
            return []
        try:
            descriptor = os.open(self._path(role), os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise Unavailable(f"{self._path(role)} cannot be opened: {error.strerror}") from error
        try:
            if role in self._held or _locked(descriptor, alone=True):
                return []
            return [os.pread(descriptor, 200, 0).decode("utf-8", "replace").strip() or "a process"]
        finally:
            os.close(descriptor)

    async def close(self) -> None:
        """Release the locks."""
        while self._held:
            os.close(self._held.popitem()[1])

    def _path(self, role: Role) -> Path:
        return self._database.with_name(f"{self._database.name}.{role}.lock")


def _locked(descriptor: int, *, alone: bool) -> bool:
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
