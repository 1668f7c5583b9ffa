"""Settings of the storage's sessions in Postgres."""

from typing import Any

from ....ports.faults import NotConfigured
from ...postgres_away import SHARED
from ...postgres_sessions import connect

STALL_SECONDS = 5
"""Seconds after which a hanging server is checked again."""
UNITS = {
    "lock_timeout": "5s",
    # A process that stops in the middle of a unit must not lock its rows forever.
    "idle_in_transaction_session_timeout": "10s",
    # The client sets its own limits. A limit of the server would end the wait for a synchronous standby, and Postgres
    # would then report the commit as done.
    "statement_timeout": "0",
    # All statements of units use an index and are planned once. By default Postgres plans them for the small tables of
    # its last ANALYZE, and then scans tables that have grown: measured as twice the work within a minute of a new
    # database.
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "jit": "off",
}
"""Settings of sessions that write units."""
READS = {
    "lock_timeout": "5s",
    "idle_in_transaction_session_timeout": "10s",
    "default_transaction_read_only": "on",
}
"""Settings of sessions for longer reads."""


def require_utf8(encoding: str) -> None:
    """Raise NotConfigured for a database encoding that cannot store or return every text."""
    if encoding != "UTF8":
        raise NotConfigured(f"the database's encoding must be UTF8, not {encoding}")


def require_own_session(*, shared: bool) -> None:
    """Raise NotConfigured if clients share sessions, because settings and prepared statements would get lost."""
    if shared:
        raise NotConfigured(SHARED)


async def ask_by_itself(url: str) -> None:
    """Run one query on a new connection. Raises: asyncpg's errors; TimeoutError."""
    connection = await connect(url, within=STALL_SECONDS, command_timeout=STALL_SECONDS, session=False)
    try:
        await connection.execute("SELECT 1")
    finally:
        connection.terminate()


async def leave(_: Any) -> None:
    """Return a connection to its pool unchanged.

    No code here changes a session, and asyncpg itself ends transactions. Its usual reset costs one more round trip
    for every use.
    """
