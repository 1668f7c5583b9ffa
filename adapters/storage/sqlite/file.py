"""The SQLite file: readable by its owner only, and opened with the settings that the storage needs."""

import os
import sqlite3
import time
from pathlib import Path

BUSY = 5.0
"""Seconds to wait for another process that writes. A group commit takes milliseconds."""
BUSY_PATIENT = 30.0
"""Seconds that operators' commands wait. No request depends on them."""
SMALL_CACHE = "PRAGMA cache_size=-512"
"""Kibibytes of pages that a reading connection caches (SQLite's default is 2000). It drops them at every commit."""
DURABLE = "PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=1000"
"""Wait for the disk at COMMIT. A commit that finds the log long copies it into the file."""
NOT_DURABLE = "PRAGMA synchronous=NORMAL; PRAGMA wal_autocheckpoint=0"
"""Do not wait for the disk at COMMIT, however long the log is.

If the machine fails, the log is cut off after some commit.
"""
_WAL_TRIES = 100
_WAL_PAUSE = 0.05


def _spare_the_search() -> None:
    """Bind null, flags and bytes without sqlite3's search for an adapter.

    For a value that is neither text nor a number, sqlite3 searches for an adapter, and builds the texts of two
    unused errors when it finds none. A payment has twenty such values, and the search takes a third
    of the time to insert it. These adapters change nothing for other users of sqlite3 in the process.
    """
    sqlite3.register_adapter(type(None), dict[None, None]().get)
    sqlite3.register_adapter(bool, int)
    sqlite3.register_adapter(bytes, bytes)


_spare_the_search()


def make(path: Path) -> None:
    """Create an empty file that only its owner can read and write. SQLite gives its -wal and -shm the same mode.

    An existing file is left alone: opening and closing it here would drop the locks that SQLite's own connections
    in this process hold on it (POSIX locks belong to the process).
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        return


def connect(path: Path) -> sqlite3.Connection:
    """Return a connection that may write. Only explicit statements begin and end its transactions.

    It may move between threads, one at a time. With FULL, committed data is on disk. Raises sqlite3.Error.
    """
    connection = sqlite3.connect(
        path, timeout=BUSY, isolation_level=None, check_same_thread=False, cached_statements=512
    )
    try:
        _use_wal(connection)
        connection.execute("PRAGMA cache_size=-1000")  # SQLite's default is 2000 KiB; most writes are new rows
        connection.executescript(DURABLE)
        connection.execute("PRAGMA fullfsync=ON")  # only macOS knows it: there, fsync stops at the drive's cache
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute(
            "PRAGMA secure_delete=ON"
        )  # deleted data, including personal data, is overwritten in the file
    except BaseException:
        connection.close()
        raise
    return connection


def connect_to_read(path: Path, *, wait: bool) -> sqlite3.Connection:
    """Return a connection that only reads. With `wait` false a lock raises sqlite3.OperationalError at once."""
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
    """Return the URI with which SQLite opens the file for reading only."""
    return f"{path.absolute().as_uri()}?mode=ro"


def _use_wal(connection: sqlite3.Connection) -> None:
    """Switch to the write-ahead log, so that readers and the writer do not wait for each other. The file remembers it.

    SQLite does not wait for a lock on this one statement, so two processes that open a new file together need this
    loop.
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
