"""Turns of the processes that write one SQLite file.

SQLite has no queue: who finds the file locked asks again after a pause, and a service under load, which begins its next
transaction as soon as one ended, leaves no moment for it. So whoever waits holds the lock of a file beside the database
meanwhile, and nobody begins while another holds it. It is a courtesy, and nothing rests on it: where it cannot be had,
SQLite's own lock decides as ever.
"""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

if sys.platform != "win32":
    import fcntl

COURTESY = 2.0
"""Seconds for which another's turn is respected: a process that was stopped in it must not stop all."""
_SPURNED = 10.0
"""Seconds for which nobody's turn is respected after that."""
_AGAIN = 0.002


class Turnstile:
    """The lock beside one database, for one process. Its file is made by the first that waits, and stays."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._path = database.with_name(f"{database.name}.turn.lock")
        self._descriptor: int | None = None
        self._spurned_until = 0.0

    def is_free(self) -> bool:
        """Whether no other process waits for its turn. Two calls of the system: some microseconds."""
        descriptor = self._opened(os.O_RDWR)
        if descriptor is None:
            return True
        if not _locked(descriptor, alone=False):
            return time.monotonic() < self._spurned_until
        _let_go(descriptor)
        return True

    @contextmanager
    def held(self) -> Iterator[None]:
        """Have the turn inside, or, where another does not end its own, go without. Blocks."""
        descriptor = self._opened(os.O_CREAT | os.O_RDWR)
        if descriptor is None:
            yield
            return
        deadline = time.monotonic() + COURTESY
        while not _locked(descriptor, alone=True):
            if time.monotonic() > deadline:
                self._spurned_until = time.monotonic() + _SPURNED
                break
            time.sleep(_AGAIN)
        try:
            yield
        finally:
            _let_go(descriptor)

    def close(self) -> None:
        """Let go of the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _opened(self, flags: int) -> int | None:
        """The file's descriptor; None where there can be none, as on Windows, which has no flock. What root makes
        belongs to the database's owner, who must be able to open it."""
        if self._descriptor is not None or sys.platform == "win32":
            return self._descriptor
        with suppress(OSError):
            self._descriptor = os.open(self._path, flags | os.O_CLOEXEC, 0o600)
            owner = self._database.stat()
            if os.geteuid() == 0 != owner.st_uid:
                os.fchown(self._descriptor, owner.st_uid, owner.st_gid)
        return self._descriptor


def _locked(descriptor: int, *, alone: bool) -> bool:
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _let_go(descriptor: int) -> None:
    fcntl.flock(descriptor, fcntl.LOCK_UN)
