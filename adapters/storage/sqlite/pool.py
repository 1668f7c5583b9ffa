"""Connections for the longer reads of a SQLite file.

There are few, created when first needed, and each has its own thread (aiosqlite), so that no list query blocks the
event loop.
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiosqlite

from ....ports.faults import Unavailable
from ..sql.asides import tolerant
from ..table.codec import Row
from . import file as sqlite_file

_CONNECTIONS = 4
_PATIENCE = 10.0
"""Seconds that a read waits for a free connection."""
_AGAIN = 0.05
_NO_TEXT = "Could not decode to UTF-8"
"""Start of sqlite3's error for a text column with bytes that are not UTF-8. The error fails the whole statement."""
_GRACE = 5.0
"""Seconds that `close` waits for reads under way."""


class ReadingPool:
    """Reading connections of one file. For one event loop."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._idle: list[aiosqlite.Connection] = []
        self._places = asyncio.Semaphore(_CONNECTIONS)
        self._closed = False
        self._closing: set[asyncio.Task[None]] = set()

    async def ask(self, text: str, parameters: Sequence[Any]) -> Sequence[Row]:
        """Return all rows of a statement. Raises: Unavailable."""
        async with self.connection() as connection:
            return await ask_on(connection, text, parameters)

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[aiosqlite.Connection]:
        """Lend a connection for a block. Raises: Unavailable.

        After a fault or a cancellation the connection is not reused, because its thread may still be reading.
        """
        try:
            async with asyncio.timeout(_PATIENCE):
                await self._places.acquire()
        except TimeoutError:
            raise Unavailable("SQLite could not read: too many reads wait") from None
        try:
            connection = self._idle.pop() if self._idle else await self._connect()
            try:
                yield connection
            except BaseException:
                self._let_go(connection)
                raise
            if self._closed:
                self._let_go(connection)
            else:
                self._idle.append(connection)
        finally:
            self._places.release()

    async def close(self) -> None:
        """Close the file once the reads under way have ended, or after _GRACE seconds."""
        if self._closed:
            return
        self._closed = True
        with suppress(TimeoutError):
            async with asyncio.timeout(_GRACE):
                for _ in range(_CONNECTIONS):
                    await self._places.acquire()
        while self._idle:
            self._let_go(self._idle.pop())
        while self._closing:
            await asyncio.wait(self._closing)

    async def _connect(self) -> aiosqlite.Connection:
        try:
            connection = await aiosqlite.connect(
                sqlite_file.read_uri(self._path),
                uri=True,
                timeout=sqlite_file.BUSY,
                isolation_level=None,
            )
        except (sqlite3.Error, OSError) as fault:
            raise _unread(fault) from fault
        try:
            await ask_on(connection, sqlite_file.SMALL_CACHE, ())
        except BaseException:
            self._let_go(connection)
            raise
        return connection

    def _let_go(self, connection: aiosqlite.Connection) -> None:
        task = asyncio.get_running_loop().create_task(_end(connection))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


async def ask_on(connection: aiosqlite.Connection, text: str, parameters: Sequence[Any]) -> Sequence[Row]:
    """Return all rows of a statement. Raises: Unavailable; sqlite3.ProgrammingError for a bug in our code."""
    try:
        return await _rows(connection, text, parameters)
    except sqlite3.OperationalError as fault:
        if not str(fault).startswith(_NO_TEXT):
            raise _unread(fault) from fault
    # A row holds bytes that are not text. Read again without decoding: the codec reports that row, and the others load.
    connection.text_factory = tolerant
    try:
        return await _rows(connection, text, parameters)
    except sqlite3.OperationalError as fault:
        raise _unread(fault) from fault
    finally:
        connection.text_factory = str


async def _rows(connection: aiosqlite.Connection, text: str, parameters: Sequence[Any]) -> Sequence[Row]:
    try:
        return list(await connection.execute_fetchall(text, parameters))
    except (sqlite3.ProgrammingError, sqlite3.OperationalError):
        raise
    except (sqlite3.Error, OSError) as fault:
        raise _unread(fault) from fault


async def _end(connection: aiosqlite.Connection) -> None:
    """Close a connection and interrupt its read.

    The interrupt is repeated, because a read that has not started yet misses it.
    """
    closing = asyncio.ensure_future(connection.close())
    while not closing.done():
        with suppress(ValueError, sqlite3.Error):  # the connection closed meanwhile
            await connection.interrupt()
        await asyncio.wait([closing], timeout=_AGAIN)
    await closing


def _unread(fault: Exception) -> Unavailable:
    return Unavailable(f"SQLite could not read: {fault}")
