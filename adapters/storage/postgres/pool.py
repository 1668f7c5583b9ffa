"""Connections that rest in our hands between two statements.

To take one from asyncpg's pool and to put it back costs more CPU than a lookup by id itself (it starts a task and a
timer each way): in one run, 94 us of CPU for a lookup on a held connection, 215 with the pool around it. So a few stay
out of the pool, which still makes them, bounds them and lets others wait.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any

import asyncpg

from .gate import Gate

ACQUIRE_SECONDS = 10
_KEPT = 8
"""More go back to the pool, which closes those that nobody needs for some minutes."""


class Connections:
    """What of a pool is in use or kept (at most `kept`). For one event loop."""

    def __init__(self, pool: Any, gate: Gate, *, mapped: int = _KEPT) -> None:
        self._pool = pool
        self._gate = gate
        self._most_kept = mapped
        self._table_map: list[Any] = []
        self._used: set[Any] = set()
        self._waiting: set[asyncio.Timeout] = set()
        self.moved = 0
        """How often one was taken or put back."""

    @property
    def is_waited_for(self) -> bool:
        """Whether somebody waits for a connection, or for an answer on one."""
        return bool(self._used or self._waiting)

    async def take(self) -> Any:
        """A connection that was not closed meanwhile.

        Raises: what asyncpg does; TimeoutError; Unavailable at once while the gate is shut.
        """
        self._gate.refuse()
        while self._table_map:
            connection = self._table_map.pop()
            if not connection.is_closed():
                break
            await self._pool.release(connection)
        else:
            connection = await self._acquired()
        self._used.add(connection)
        self.moved += 1
        return connection

    async def _acquired(self) -> Any:
        async with asyncio.timeout(None) as limit:
            self._waiting.add(limit)
            try:
                return await self._pool.acquire(timeout=ACQUIRE_SECONDS)
            finally:
                self._waiting.discard(limit)

    async def give(self, connection: Any) -> None:
        """Put it back after work that went well. Where somebody waits for one it is theirs."""
        self._let_go(connection)
        if self._waiting or len(self._table_map) >= self._most_kept or self._pool.is_closing():
            await self._pool.release(connection)
        else:
            self._table_map.append(connection)

    async def drop(self, connection: Any) -> None:
        """Put it back after a fault: the pool looks whether it is still good."""
        self._let_go(connection)
        await self._pool.release(connection)

    def _let_go(self, connection: Any) -> None:
        self._used.discard(connection)
        self.moved += 1

    async def break_off(self) -> None:
        """Close all connections at once, also those in use, and let nobody wait for one."""
        for limit in self._waiting:
            if not limit.expired():
                limit.reschedule(asyncio.get_running_loop().time())
        for connection in (*self._used, *self._table_map):
            with contextlib.suppress(asyncpg.InterfaceError):  # the pool has it by now
                connection.terminate()
        await self._pool.expire_connections()

    async def fetch(self, statement: str, parameters: Sequence[Any]) -> Sequence[Any]:
        """All rows of a statement that is a transaction of its own."""
        connection = await self.take()
        try:
            rows: Sequence[Any] = await connection.fetch(statement, *parameters)
        except asyncio.CancelledError:
            await asyncio.shield(asyncio.ensure_future(self._end(connection)))
            raise
        except BaseException:
            await self.drop(connection)
            raise
        await self.give(connection)
        return rows

    async def _end(self, connection: Any) -> None:
        """Put back what somebody was cancelled on. A statement is prepared without an end of its transaction, which
        comes with its execution: after the one and before the other it stands open, and the pool does not see it."""
        try:
            await connection.execute("SELECT 1")
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError):
            connection.terminate()  # the pool makes another
        finally:
            await self.drop(connection)

    async def close(self) -> None:
        """Let running units end, then disconnect."""
        while self._table_map:
            await self._pool.release(self._table_map.pop())
        await self._pool.close()

    def terminate(self) -> None:
        """Disconnect at once."""
        self._pool.terminate()
