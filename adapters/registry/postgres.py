"""Process registry based on Postgres advisory locks, for the processes of all machines.

A lock belongs to a session, so it is released once the server knows that the process is gone: at once when the process
dies, after about 25 seconds when its machine does. A pooler that shares a session between clients (pgbouncer in
transaction mode) would break this, so the URL leads past such a pooler.
"""

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Callable, Sequence
from typing import Any

import asyncpg

from ...ports.faults import Unavailable
from ...ports.registry import Role
from ..postgres_away import away
from ..postgres_sessions import ANSWERS_WITHIN, connect

_CLASS = 0x63616D62
"""`camb` in ASCII: the first number of all these locks. The second one is that of the schema and the role, because a
database may have the schemas of several installations."""
_POLL = 5.0
"""Seconds between two checks of the session."""
_GIVEN_UP_AFTER = 6
"""Number of consecutive checks that find the lock taken before the process gives up. The server may still hold our own
previous session."""
_SETTINGS = {
    # Detect a lost machine soon, instead of after two hours.
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
}
_OTHERS = """
SELECT coalesce(activity.application_name, 'a process') FROM pg_locks AS locks
LEFT JOIN pg_stat_activity AS activity ON activity.pid = locks.pid
WHERE locks.locktype = 'advisory' AND locks.objsubid = 2 AND locks.granted
AND locks.database = (SELECT oid FROM pg_database WHERE datname = current_database())
AND locks.classid::bigint = $1 AND locks.objid::bigint = hashtext(current_schema() || $2)::bigint & 4294967295
AND locks.pid <> pg_backend_pid() ORDER BY 1
"""
_AWAY = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, TimeoutError)

log = logging.getLogger("cambist.registry")


class PostgresRegistry:
    """Implement the port ProcessRegistry, on a connection of its own."""

    def __init__(self, url: str, *, revision: str = "", look: float = _POLL) -> None:
        """Connect at the first use. `revision` is the schema revision of this program; other processes can read it."""
        self._url = url
        self._made_for = f" for schema {revision}" if revision else ""
        self._look = look
        self._entered: dict[Role, bool] = {}
        self._connection: Any = None
        self._holds = False
        """Whether the session holds the locks of all entered roles."""
        self._watching: asyncio.Task[None] | None = None
        self._tell: Callable[[], None] = lambda: None
        self._asking = asyncio.Lock()
        """A connection runs one query at a time."""

    async def enter(self, role: Role, *, alone: bool) -> bool:
        """Take the lock of the role. Raises: Unavailable."""
        if role in self._entered:
            return True
        if not await self._lock(role, alone=alone):
            return False
        self._entered[role] = alone
        self._holds = True
        self._watching = self._watching or asyncio.create_task(self._watch())
        return True

    def when_lost(self, tell: Callable[[], None]) -> None:
        """Set the callback for a lost registration. It is called at most once."""
        self._tell = tell

    async def others(self, role: Role) -> Sequence[str]:
        """Return the names of other sessions that hold the role's lock. Raises: Unavailable."""
        return [row[0] for row in await self._ask("fetch", _OTHERS, _CLASS, role.value)]

    async def close(self) -> None:
        """End the session, which releases its locks."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
        await self._disconnect()

    async def _watch(self) -> None:
        """Check the session regularly. If it was lost, take the same locks in a new one."""
        taken = 0
        while taken < _GIVEN_UP_AFTER:
            await asyncio.sleep(self._look)
            try:
                taken = 0 if await self._stands() else taken + 1
            except Exception as fault:  # noqa: BLE001 - any error: if this loop ended, a loss would go unnoticed
                log.warning("the process registry is away: %s", fault)
        log.critical("another process took this one's place in the registry while the database was away")
        self._tell()

    async def _stands(self) -> bool:
        """Check the session, or take its locks again. Raises: Unavailable."""
        if self._holds:
            with contextlib.suppress(Unavailable):
                await self._ask("fetchval", "SELECT 1")
                return True
        for role, alone in self._entered.items():
            if not await self._lock(role, alone=alone):
                return False
        self._holds = True
        log.warning("the process registry is back")
        return True

    async def _lock(self, role: Role, *, alone: bool) -> bool:
        function = "pg_try_advisory_lock" if alone else "pg_try_advisory_lock_shared"
        found: bool = await self._ask(
            "fetchval", f"SELECT {function}($1, hashtext(current_schema() || $2))", _CLASS, role.value
        )
        return found

    async def _ask(self, how: str, statement: str, *values: int | str) -> Any:
        """Run a query. Raises: Unavailable, after which the session is gone."""
        async with self._asking:
            try:
                if self._connection is None:
                    name = f"cambist process {os.getpid()}{self._made_for} on {socket.gethostname()}"[:63]
                    self._connection = await connect(self._url, {**_SETTINGS, "application_name": name})
                return await getattr(self._connection, how)(statement, *values, timeout=ANSWERS_WITHIN)
            except _AWAY as fault:
                await self._disconnect()
                raise away(fault) from fault

    async def _disconnect(self) -> None:
        connection, self._connection, self._holds = self._connection, None, False
        if connection is None:
            return
        try:
            await connection.close(timeout=ANSWERS_WITHIN)
        except _AWAY:
            connection.terminate()
