"""Connections that we keep between two statements instead of returning them to asyncpg's pool.

Taking one from that pool and returning it costs more CPU than a lookup by id itself, because it starts a task and a
timer each way. In one run a lookup took 94 us of CPU on a kept connection, and 215 with the pool around it. The
pool still makes the connections, limits their number and queues waiting requests.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any

import asyncpg

from .gate import Gate
from .standby import NotReplicated, is_wait_ended

ACQUIRE_SECONDS = 10
_KEPT = 8
"""Connections kept at most. The others return to the pool, which closes connections that stay idle for some minutes."""


class Connections:
    """Connections of a pool that are in use or kept (at most `mapped` are kept). For one event loop."""

    def __init__(self, pool: Any, gate: Gate, *, mapped: int = _KEPT) -> None:
        self._pool = pool
        self._gate = gate
        self._most_kept = mapped
        self._table_map: list[Any] = []
        self._used: set[Any] = set()
        self._waiting: set[asyncio.Timeout] = set()
        self._unreplicated: set[Any] = set()
        self.moved = 0
        """Number of connections taken or returned so far."""

    @property
    def is_waited_for(self) -> bool:
        """Whether a request waits for a connection, or for an answer on one."""
        return bool(self._used or self._waiting)

    async def take(self) -> Any:
        """Take an open connection.

        Raises: asyncpg's errors; TimeoutError; Unavailable at once while the gate is shut.
        """
        self._gate.refuse()
        while self._table_map:
            connection = self._table_map.pop()
            if not connection.is_closed():
                break
            await self._release(connection)
        else:
            connection = await self._acquired()
        self._used.add(connection)
        self.moved += 1
        return connection

    async def _acquired(self) -> Any:
        async with asyncio.timeout(None) as limit:
            self._waiting.add(limit)
            try:
                connection = await self._pool.acquire(timeout=ACQUIRE_SECONDS)
            finally:
                self._waiting.discard(limit)
        connection.add_log_listener(self._note)
        return connection

    def _note(self, connection: Any, message: Any) -> None:
        """Receive a message of the server. It is called before the statement that it belongs to returns."""
        if is_wait_ended(message):
            self._unreplicated.add(connection)

    def require_replicated(self, connection: Any) -> None:
        """Raise NotReplicated if the last commit on this connection did not wait for its standby."""
        if connection in self._unreplicated:
            self._unreplicated.discard(connection)
            raise NotReplicated("the wait for the synchronous standby was cancelled")

    async def give(self, connection: Any) -> None:
        """Return a connection after successful work. It goes back to the pool if a request waits for one."""
        self._let_go(connection)
        if self._waiting or len(self._table_map) >= self._most_kept or self._pool.is_closing():
            await self._release(connection)
        else:
            self._table_map.append(connection)

    async def drop(self, connection: Any) -> None:
        """Return a connection after a fault. The pool checks whether it still works."""
        self._let_go(connection)
        await self._release(connection)

    async def _release(self, connection: Any) -> None:
        self._unreplicated.discard(connection)
        with contextlib.suppress(asyncpg.InterfaceError):  # it is closed
            connection.remove_log_listener(self._note)
        await self._pool.release(connection)

    def _let_go(self, connection: Any) -> None:
        self._used.discard(connection)
        self.moved += 1

    async def break_off(self) -> None:
        """Close all connections at once, including those in use, and fail the requests that wait for one."""
        for limit in self._waiting:
            if not limit.expired():
                limit.reschedule(asyncio.get_running_loop().time())
        for connection in (*self._used, *self._table_map):
            with contextlib.suppress(asyncpg.InterfaceError):  # it is back in the pool by now
                connection.terminate()
        await self._pool.expire_connections()

    async def fetch(self, statement: str, parameters: Sequence[Any]) -> Sequence[Any]:
        """Return all rows of a statement that is its own transaction."""
        connection = await self.take()
        try:
            rows: Sequence[Any] = await connection.fetch(statement, *parameters)
            self.require_replicated(connection)
        except asyncio.CancelledError:
            await asyncio.shield(asyncio.ensure_future(self._end(connection)))
            raise
        except BaseException:
            await self.drop(connection)
            raise
        await self.give(connection)
        return rows

    async def _end(self, connection: Any) -> None:
        """Return a connection whose statement was cancelled.

        Preparing a statement opens a transaction, and executing it ends the transaction. Cancelled in between, the
        transaction stays open, and the pool does not notice. Running a statement here ends it.
        """
        try:
            await connection.execute("SELECT 1")
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError):
            connection.terminate()  # the pool makes another
        finally:
            await self.drop(connection)

    async def close(self) -> None:
        """Release the kept connections, then close the pool after running work ends."""
        while self._table_map:
            await self._release(self._table_map.pop())
        await self._pool.close()

    def terminate(self) -> None:
        """Disconnect at once."""
        self._pool.terminate()
