"""Fair turns for the processes that write one SQLite file.

SQLite has no queue. A process that finds the file locked retries after a pause, and a service under load, which
begins its next transaction as soon as one ends, leaves no gap for it. So a waiting process holds the lock of a file
beside the database, and no process begins a transaction while another holds that lock. Correctness does not depend
on it: where this lock is not available, only SQLite's own lock decides.
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
"""Seconds to respect the turn of another process.

A process that was stopped during its turn must not stop all others.
"""
_SPURNED = 10.0
"""Seconds for which turns are ignored after that."""
_AGAIN = 0.002


class Turnstile:
    """Lock beside one database, for one process. The first process that waits creates the lock file, which stays."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._path = database.with_name(f"{database.name}.turn.lock")
        self._descriptor: int | None = None
        self._spurned_until = 0.0

    def is_free(self) -> bool:
        """Return whether no other process waits for its turn. Makes two system calls: some microseconds."""
        descriptor = self._opened(os.O_RDWR)
        if descriptor is None:
            return True
        if not _locked(descriptor, alone=False):
            return time.monotonic() < self._spurned_until
        _let_go(descriptor)
        return True

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the turn inside the block, or go on without it if another process keeps its own too long. Blocks."""
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
        """Close the lock file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _opened(self, flags: int) -> int | None:
        """Return the file's descriptor; None if it cannot be opened, as on Windows, which has no flock.

        A file that root creates gets the database's owner, who must be able to open it.
        """
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
