"""Detection of commits that wait for a synchronous standby that is gone.

The primary still answers reads. A waiting commit is on the primary only, and is lost if the primary dies. So
nothing may be read or acknowledged: requests are refused until a commit is confirmed again. A standby receives the
log in order, so one confirmed commit confirms all before it.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from contextvars import Context
from typing import Any

import asyncpg

from ....ports.faults import Unavailable
from ...postgres_sessions import asking, connect
from .gate import Gate

CONFIRM = """
SELECT pg_logical_emit_message(true, 'cambist', '')
WHERE current_setting('synchronous_standby_names') <> '' AND NOT pg_is_in_recovery()
"""
"""Commit that changes no row and returns once the synchronous standbys have it. Without standbys it does nothing."""
EVERY = 1.0
"""Seconds between two such commits."""
ANSWERS_WITHIN = 2.0
"""Seconds that a commit may take before we check its reason."""
REASON = "commits wait for a synchronous standby that does not answer"

_WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"

log = logging.getLogger("cambist.storage")

Ask = Callable[[], Awaitable[None]]


class Standby:
    """Watcher that shuts the gate while commits wait for a standby.

    `commit` runs CONFIRM on a connection of the pool, and `commit_apart` on its own connection. `waiting` counts
    the sessions that wait for a standby. A commit that is slow for another reason shuts nothing.
    """

    def __init__(
        self,
        gate: Gate,
        commit: Ask,
        commit_apart: Ask,
        waiting: Callable[[], Awaitable[int]],
        *,
        every: float = EVERY,
        answers_within: float = ANSWERS_WITHIN,
    ) -> None:
        self._gate = gate
        self._commit = commit
        self._commit_apart = commit_apart
        self._waiting = waiting
        self._every = every
        self._within = answers_within
        self._task: asyncio.Task[None] | None = None

    def watch(self) -> None:
        """Start watching, in a new context, because the task belongs to no request."""
        self._task = asyncio.get_running_loop().create_task(self._watch(), context=Context())

    async def end(self) -> None:
        """Stop watching."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(self._every)
            try:
                await self._look()
            except Exception:
                log.exception("whether commits reach the standby could not be found out")

    async def _look(self) -> None:
        if self._gate.is_shut or await self._is_confirmed(self._commit) or not await self._waiting():
            return
        await self._gate.shut(REASON)
        try:
            while not await self._is_confirmed(self._commit_apart):  # noqa: ASYNC110 - the server sends no event
                await asyncio.sleep(self._every)
        finally:
            self._gate.open(REASON)

    async def _is_confirmed(self, commit: Ask) -> bool:
        # Only a slow server matters here. All other faults are handled elsewhere.
        with contextlib.suppress(TimeoutError, Unavailable, asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
            async with asyncio.timeout(self._within):
                await commit()
            return True
        return False


class NotReplicated(ConnectionError):
    """Somebody ended a commit's wait for its synchronous standby. Postgres reports such a commit as done, although a
    failover would lose it."""


def is_wait_ended(message: Any) -> bool:
    """Return whether a message of the server says so. Its text depends on the server's language."""
    return getattr(message, "server_source_function", None) == "SyncRepWaitForLSN"


async def confirm(connection: Any) -> None:
    """Run CONFIRM. Raises: NotReplicated; asyncpg's errors; TimeoutError."""
    ended: list[Any] = []

    def note(_: Any, message: Any) -> None:
        if is_wait_ended(message):
            ended.append(message)

    connection.add_log_listener(note)
    try:
        await connection.execute(CONFIRM)
    finally:
        connection.remove_log_listener(note)
    if ended:
        raise NotReplicated("the wait for the synchronous standby was cancelled")


async def commit_apart(url: str) -> None:
    """Run CONFIRM on a new connection. Raises: NotReplicated; asyncpg's errors; TimeoutError."""
    connection = await connect(url, within=ANSWERS_WITHIN)
    try:
        await confirm(connection)
    finally:
        connection.terminate()


async def waiting_for_standby(url: str) -> int:
    """Return how many sessions wait for a standby; 0 if the server does not answer."""
    with contextlib.suppress(Unavailable):
        async with asking(url, command_timeout=ANSWERS_WITHIN) as connection:
            found: int = await connection.fetchval(_WAITING)
            return found
    return 0
