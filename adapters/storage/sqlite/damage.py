"""Full read of a SQLite file, to find damage in parts that no query has read yet.

It may run beside a working service.
"""

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import TypeVar

from ....ports.faults import Unavailable
from . import file as sqlite_file

T = TypeVar("T")

_PER_TABLE = 3
"""Faults reported for one table at most: a damaged table often has many."""

Progress = Callable[[str], None]


async def sqlite_damage(path: Path, progress: Progress) -> tuple[list[str], str]:
    """Return what is wrong with a file, first by table and then for the rest, and a summary of the check.

    Every page in use is read, and every index is compared with its table. Raises: Unavailable.
    """
    try:
        connection = sqlite_file.connect_to_read(path, wait=True)
    except (sqlite3.Error, OSError) as fault:
        raise Unavailable(f"{path} cannot be read: {fault}") from fault
    try:
        return await _in_a_daemon(lambda: _damage(connection, progress))
    except asyncio.CancelledError:
        # The caller was cancelled, so stop the read.
        with suppress(sqlite3.ProgrammingError):  # closed by now
            connection.interrupt()
        raise


def _damage(connection: sqlite3.Connection, progress: Progress) -> tuple[list[str], str]:
    with closing(connection):
        found = list[str]()
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for number, table in enumerate(tables, start=1):
            progress(f"table {number} of {len(tables)}: {table}")
            name = table.replace('"', '""')
            found += [f"{table}: {fault}" for fault in _faults(connection, f'PRAGMA integrity_check("{name}")')]
        if not found:
            progress(f"{pages} pages")
            found = _faults(connection, f"PRAGMA quick_check({_PER_TABLE})")
    return found, f"all {pages} pages of {len(tables)} tables are sound"


def _faults(connection: sqlite3.Connection, pragma: str) -> list[str]:
    """Return the faults that a check reports. Raises: sqlite3.OperationalError when it was interrupted."""
    try:
        rows = connection.execute(pragma).fetchmany(_PER_TABLE)
    except sqlite3.OperationalError:
        raise
    except sqlite3.DatabaseError as fault:
        return [str(fault)]
    # SQLite's texts begin with a line that names the database.
    texts = [str(text).replace("*** in database main ***\n", "") for (text,) in rows]
    return [line for text in texts for line in text.splitlines()[:_PER_TABLE] if line != "ok"]


async def _in_a_daemon(work: Callable[[], T]) -> T:
    """Run `work` in a thread that does not delay the end of the program."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def tell(result: T | None, fault: Exception | None) -> None:
        if done.done():
            return
        if fault is None:
            done.set_result(result)  # type: ignore[arg-type] # without a fault there is a result
        else:
            done.set_exception(fault)

    def run() -> None:
        result: T | None = None
        fault: Exception | None = None
        try:
            result = work()
        except sqlite3.Error as error:
            fault = Unavailable(f"it cannot be read: {error}")
        except Exception as error:  # noqa: BLE001 - raised in the coroutine that awaits it
            fault = error
        with suppress(RuntimeError):  # the loop is closed, so no coroutine waits
            loop.call_soon_threadsafe(tell, result, fault)

    threading.Thread(target=run, daemon=True, name="cambist-pages").start()
    return await done
