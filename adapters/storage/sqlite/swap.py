"""Putting a SQLite file in the place of another one, in one step, with the former one kept."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from ....ports.faults import Refused, Unavailable
from ...durable import sync

LOGS = ("-wal", "-shm")
"""What SQLite keeps beside a file. A log of the former one must not lie beside the new one, which would take it for its
own."""


def close_log(path: Path) -> None:
    """Leave one file, with all that its log holds and nothing beside it. Raises: sqlite3.Error, also while another
    process has the file open."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")


def put_in_place(draft: Path, target: Path, former: Path) -> Path | None:
    """Let `draft`, which nobody has open, stand as `target`; what stood there is `former` from then on.

    Whenever it is broken off, the one or the other stands there whole. Only the log of a file that SQLite cannot read
    any more is put aside before it. Returns where the former file is; None: there was none.
    Raises: Refused while another process has the former file open; Unavailable.
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
            # It is damaged, so its log is kept as it is, with it.
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
    """Give the file the other name, too, so that there is no moment without one."""
    try:
        os.link(target, former)
    except OSError:
        # A file system without links: for an instant there is none.
        target.rename(former)
