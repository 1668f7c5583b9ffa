"""Reading a whole SQLite file, to find what is damaged where nobody looked yet. May run beside a working service."""

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
"""Faults of one table that are told: what is damaged is often damaged in many ways."""

Progress = Callable[[str], None]


async def sqlite_damage(path: Path, progress: Progress) -> tuple[list[str], str]:
    """What is wrong with a file, table by table and then with what belongs to none, and what was looked at. Every page
    in use is read, and every index beside its table. Raises: Unavailable."""
    try:
        connection = sqlite_file.connect_to_read(path, wait=True)
    except (sqlite3.Error, OSError) as fault:
        raise Unavailable(f"{path} cannot be read: {fault}") from fault
    try:
        return await _in_a_daemon(lambda: _damage(connection, progress))
    except asyncio.CancelledError:
        # Nobody waits for its end.
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
    """Raises: sqlite3.OperationalError where it was interrupted."""
    try:
        rows = connection.execute(pragma).fetchmany(_PER_TABLE)
    except sqlite3.OperationalError:
        raise
    except sqlite3.DatabaseError as fault:
        return [str(fault)]
    # SQLite's lines begin with which database it is, on a line of its own.
    texts = [str(text).replace("*** in database main ***\n", "") for (text,) in rows]
    return [line for text in texts for line in text.splitlines()[:_PER_TABLE] if line != "ok"]


async def _in_a_daemon(work: Callable[[], T]) -> T:
    """In a thread that the end of the program does not wait for."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def tell(result: T | None, fault: Exception | None) -> None:
        if done.done():
            return
        if fault is None:
            done.set_result(result)  # type: ignore[arg-type]  # there is one where there is no fault
        else:
            done.set_exception(fault)

    def run() -> None:
        result: T | None = None
        fault: Exception | None = None
        try:
            result = work()
        except sqlite3.Error as error:
            fault = Unavailable(f"it cannot be read: {error}")
        except Exception as error:  # noqa: BLE001 - raised where it is waited for
            fault = error
        with suppress(RuntimeError):  # nobody waits any more, and the loop is closed
            loop.call_soon_threadsafe(tell, result, fault)

    threading.Thread(target=run, daemon=True, name="cambist-pages").start()
    return await done
