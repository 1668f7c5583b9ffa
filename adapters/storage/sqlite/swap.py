"""Replacement of a SQLite file by another in one step. The former file is kept."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from ....ports.faults import Refused, Unavailable
from ...durable import sync

LOGS = ("-wal", "-shm")
"""Suffixes of the files that SQLite puts beside a database.

The new file must not lie beside a log of the former one, because SQLite would apply that log to it.
"""


def close_log(path: Path) -> None:
    """Merge the log into the file, so that nothing is left beside it.

    Raises: sqlite3.Error, also while another process has the file open.
    """
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")


def put_in_place(draft: Path, target: Path, former: Path) -> Path | None:
    """Move `draft`, which no process has open, to `target`, and the file at `target` to `former`.

    An interruption leaves either file whole at `target`. Only the log of a file that SQLite can no longer read is
    moved away first. Returns the path of the former file; None if there was none. Raises: Refused while another
    process has the former file open; Unavailable.
    """
    try:
        return _put(draft, target, former)
    except sqlite3.Error as fault:
        raise Refused(f"another process has {target} open: {fault}") from fault
    except OSError as fault:
        raise Unavailable(f"{target} cannot be put in place: {fault}") from fault


def _put(draft: Path, target: Path, former: Path) -> Path | None:
    there = target.exists()
    if there:
        try:
            close_log(target)
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError:
            # The file is damaged, so keep its log with it unchanged.
            pass
    for suffix in LOGS:
        log = target.with_name(target.name + suffix)
        if log.exists():
            log.rename(former.with_name(former.name + suffix))
    sync(draft)
    if there:
        _keep(target, former)
    draft.replace(target)
    sync(target.parent)
    return former if there else None


def _keep(target: Path, former: Path) -> None:
    """Give the former file a second name, so that `target` exists at every moment."""
    try:
        os.link(target, former)
    except OSError:
        # The file system has no hard links, so `target` is missing for an instant.
        target.rename(former)
