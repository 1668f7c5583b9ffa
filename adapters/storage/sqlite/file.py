"""The SQLite file: made for its owner only, and opened the way the storage needs it."""

import os
import sqlite3
import time
from pathlib import Path

BUSY = 5.0
"""Seconds for which another process' write is waited for. A group commit takes milliseconds."""
BUSY_PATIENT = 30.0
"""Seconds for which operators' commands wait: nobody's request hangs on them."""
SMALL_CACHE = "PRAGMA cache_size=-512"
"""Kibibytes of pages that a reading connection keeps, of 2000 by itself: it forgets them at every commit."""
DURABLE = "PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=1000"
"""A commit returns when it is on disk. One that finds the log long copies it into the file."""
NOT_DURABLE = "PRAGMA synchronous=NORMAL; PRAGMA wal_autocheckpoint=0"
"""A commit waits for no disk, however long the log is. A failure of the machine cuts the log off behind some commit."""
_WAL_TRIES = 100
_WAL_PAUSE = 0.05


def _spare_the_search() -> None:
    """Bind null, flags and bytes as they are, at once.

    For what is neither text nor a number sqlite3 looks for an adapter, and where there is none makes the texts of two
    errors that nobody reads: a third of what it takes to insert a payment, which has twenty such values. These change
    nothing for anybody else in the process.
    """
    sqlite3.register_adapter(type(None), dict[None, None]().get)
    sqlite3.register_adapter(bool, int)
    sqlite3.register_adapter(bytes, bytes)


_spare_the_search()


def make(path: Path) -> None:
    """An empty file that only its owner reads and writes; SQLite gives its -wal and -shm the same mode.

    Left alone when it is there: opening and closing it here would drop the locks that SQLite's own connections in
    this process hold on it (POSIX locks belong to the process).
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        return


def connect(path: Path) -> sqlite3.Connection:
    """A connection that may write. Transactions are begun and ended by statements only.

    It may move between threads, one at a time. FULL: what is committed is on disk. Raises sqlite3.Error.
    """
    connection = sqlite3.connect(
        path, timeout=BUSY, isolation_level=None, check_same_thread=False, cached_statements=512
    )
    try:
        _use_wal(connection)
        connection.execute("PRAGMA cache_size=-1000")  # of 2000 KiB; what is written is mostly new
        connection.executescript(DURABLE)
        connection.execute("PRAGMA fullfsync=ON")  # macOS alone knows it: there, fsync stops at the drive's cache
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute("PRAGMA secure_delete=ON")  # what is deleted, persons among it, is overwritten in the file
    except BaseException:
        connection.close()
        raise
    return connection


def connect_to_read(path: Path, *, wait: bool) -> sqlite3.Connection:
    """A connection that only reads. With `wait` false a lock raises sqlite3.OperationalError at once."""
    connection = sqlite3.connect(
        read_uri(path),
        uri=True,
        timeout=BUSY if wait else 0.0,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=512,
    )
    connection.execute(SMALL_CACHE)
    return connection


def read_uri(path: Path) -> str:
    """The file as SQLite opens it for reading only."""
    return f"{path.absolute().as_uri()}?mode=ro"


def _use_wal(connection: sqlite3.Connection) -> None:
    """Write-ahead log: readers and the writer do not wait for each other. The file remembers it.

    Changing to it is the one statement for which SQLite does not wait for a lock, so that two processes that open a
    new file together need this loop.
    """
    for tries_left in reversed(range(_WAL_TRIES)):
        try:
            (mode,) = connection.execute("PRAGMA journal_mode=WAL").fetchone()
        except sqlite3.OperationalError:
            if not tries_left:
                raise
            time.sleep(_WAL_PAUSE)
        else:
            if mode != "wal":
                raise sqlite3.OperationalError(f"the file takes no write-ahead log, it stays in mode {mode}")
            return
