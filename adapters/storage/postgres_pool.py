"""Connections that rest in our hands between two statements.

To take one from asyncpg's pool and to put it back costs more CPU than a lookup by id itself (it starts a task and a
timer each way): in one run, 94 us of CPU for a lookup on a held connection, 215 with the pool around it. So a few stay
out of the pool, which still makes them, bounds them and lets others wait.
"""

from collections.abc import Sequence
from typing import Any

ACQUIRE_SECONDS = 10
_KEPT = 8
"""More go back to the pool, which closes those that nobody needs for some minutes."""


class Connections:
    """What of a pool is in use or kept. For one event loop."""

    def __init__(self, pool: Any) -> None:
        self._pool = pool
        self._kept: list[Any] = []
        self._waiting = 0

    async def take(self) -> Any:
        """A connection that was not closed meanwhile. Raises: what asyncpg does; TimeoutError."""
        while self._kept:
            connection = self._kept.pop()
            if not connection.is_closed():
                return connection
            await self._pool.release(connection)
        self._waiting += 1
        try:
            return await self._pool.acquire(timeout=ACQUIRE_SECONDS)
        finally:
            self._waiting -= 1

    async def give(self, connection: Any) -> None:
        """Put it back after work that went well. Where somebody waits for one it is theirs."""
        if self._waiting or len(self._kept) >= _KEPT or self._pool.is_closing():
            await self._pool.release(connection)
        else:
            self._kept.append(connection)

    async def drop(self, connection: Any) -> None:
        """Put it back after a fault: the pool looks whether it is still good."""
        await self._pool.release(connection)

    async def fetch(self, statement: str, parameters: Sequence[Any]) -> Sequence[Any]:
        """All rows of a statement that is a transaction of its own."""
        connection = await self.take()
        try:
            rows: Sequence[Any] = await connection.fetch(statement, *parameters)
        except BaseException:
            await self.drop(connection)
            raise
        await self.give(connection)
        return rows

    async def close(self) -> None:
        """Let running units end, then disconnect."""
        while self._kept:
            await self._pool.release(self._kept.pop())
        await self._pool.close()

    def terminate(self) -> None:
        """Disconnect at once."""
        self._pool.terminate()
