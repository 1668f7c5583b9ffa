"""Finding out that commits wait for a synchronous standby that is gone.

The primary answers reads all the while. A commit that waits is on the primary only, and if the primary dies it is lost.
So nothing is read or acknowledged then: requests are refused until a commit is confirmed again. As a standby receives
the log in order, one confirmed commit confirms all before it.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from contextvars import Context

import asyncpg

from ....ports.faults import Unavailable
from ...postgres_sessions import asking, connect
from .gate import Gate

CONFIRM = """
SELECT pg_logical_emit_message(true, 'cambist', '')
WHERE current_setting('synchronous_standby_names') <> '' AND NOT pg_is_in_recovery()
"""
"""A commit that changes no row and returns once the synchronous standbys have it. Without standbys it does nothing."""
EVERY = 1.0
"""Seconds between two such commits."""
ANSWERS_WITHIN = 2.0
"""Seconds that one may take before we look for its reason."""
REASON = "commits wait for a synchronous standby that does not answer"

_WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"

log = logging.getLogger("cambist.storage")

Ask = Callable[[], Awaitable[None]]


class Standby:
    """Shuts the gate while commits wait for a standby.

    `commit` carries out CONFIRM on a connection of the pool, `commit_apart` on one of its own; `waiting` counts the
    sessions that wait for a standby. A commit that is slow for another reason shuts nothing.
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
        """Begin. In a context of its own: the task belongs to no request."""
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
        # Only a server that takes its time is of interest here. All faults are somebody else's.
        with contextlib.suppress(TimeoutError, Unavailable, asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
            async with asyncio.timeout(self._within):
                await commit()
            return True
        return False


async def commit_apart(url: str) -> None:
    """CONFIRM on a new connection. Raises: what asyncpg does; TimeoutError."""
    connection = await connect(url, within=ANSWERS_WITHIN)
    try:
        await connection.execute(CONFIRM)
    finally:
        connection.terminate()


async def waiting_for_standby(url: str) -> int:
    """How many sessions wait for a standby; 0 where the server gives no answer."""
    with contextlib.suppress(Unavailable):
        async with asking(url, command_timeout=ANSWERS_WITHIN) as connection:
            found: int = await connection.fetchval(_WAITING)
            return found
    return 0
