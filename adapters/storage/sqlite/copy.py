"""Copy of the SQLite file beside a working service: SQLite's own online backup, from one read snapshot."""

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from ....ports.faults import Unavailable
from . import file as sqlite_file

_PAGES = 1024
"""Pages copied in one step: 4 MiB with SQLite's usual page size."""


class _Cancelled(Exception):
    """The caller of the copy was cancelled."""


async def copy(source: Path, target: Path, progress: Callable[[int, int], None]) -> None:
    """Create `target`, which must not exist, with everything committed before the copy began, and check it.

    Raises: Unavailable.
    """
    given_up = threading.Event()

    def step(_status: int, left: int, pages: int) -> None:
        if given_up.is_set():
            raise _Cancelled
        progress(left, pages)

    def work() -> None:
        if not source.exists():
            raise Unavailable(f"there is no database {source}")
        _copy(source, target, step)
        fault = _fault_of(target)
        if fault is not None:
            raise Unavailable(
                f"there is no backup: the copy of {source} is damaged, and so may be the database ({fault}). See "
                "`cambist doctor --full`, and keep the last sound backup"
            )

    try:
        await asyncio.to_thread(work)
    except _Cancelled:
        raise Unavailable("the copying was broken off") from None
    except (sqlite3.Error, OSError) as fault:
        raise Unavailable(f"{source} cannot be copied: {fault}") from fault
    finally:
        given_up.set()


def _copy(source: Path, target: Path, step: Callable[[int, int, int], object]) -> None:
    sqlite_file.make(target)
    with (
        closing(sqlite_file.connect_to_read(source, wait=True)) as reading,
        closing(sqlite3.connect(target)) as writing,
    ):
        # Keep a read transaction open, so that all pages come from one moment. Without it the backup restarts at every
        # commit of the service, and under load would never end. The log grows by the commits made meanwhile.
        reading.execute("BEGIN")
        reading.execute("SELECT count(*) FROM sqlite_master").fetchone()
        reading.backup(writing, pages=_PAGES, progress=step, sleep=0)
        # Leave one file without a log beside it, until a process opens it.
        writing.execute("PRAGMA journal_mode=DELETE")


def _fault_of(path: Path) -> str | None:
    """Return what SQLite finds wrong with a file that no process uses."""
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
        (found,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    return None if found == "ok" else str(found).replace("\n", " ")
