"""Settings of the storage's sessions in Postgres."""

from typing import Any

from ....ports.faults import NotConfigured
from ...postgres_away import SHARED
from ...postgres_sessions import connect

STALL_SECONDS = 5
"""After which a server that hangs is asked anew whether it still does."""
UNITS = {
    "lock_timeout": "5s",
    # A process that stops in the middle of a unit must not hold its rows for ever.
    "idle_in_transaction_session_timeout": "10s",
    # The client sets its own limits. One of the server's would end the wait for a synchronous standby, and Postgres
    # would then report the commit as done.
    "statement_timeout": "0",
    # All that units do goes by an index and is planned once. Left to itself Postgres plans it for the small tables of
    # its last ANALYZE, and then walks ones that have grown: by measurement, twice the work within a minute of a new
    # database.
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "jit": "off",
}
"""Of sessions that carry out units."""
READS = {
    "lock_timeout": "5s",
    "idle_in_transaction_session_timeout": "10s",
    "default_transaction_read_only": "on",
}
"""Of sessions for longer reads."""


def require_utf8(encoding: str) -> None:
    """Raises NotConfigured for a database that would refuse some texts, or keep them unread."""
    if encoding != "UTF8":
        raise NotConfigured(f"the database's encoding must be UTF8, not {encoding}")


def require_own_session(*, shared: bool) -> None:
    """Raises NotConfigured where sessions are given to several clients: settings and prepared statements get lost."""
    if shared:
        raise NotConfigured(SHARED)


async def ask_by_itself(url: str) -> None:
    """Ask one question on a new connection. Raises: what asyncpg does; TimeoutError."""
    connection = await connect(url, within=STALL_SECONDS, command_timeout=STALL_SECONDS)
    try:
        await connection.fetchval("SELECT 1")
    finally:
        connection.terminate()


async def leave(_: Any) -> None:
    """Connections go back to their pool as they are: nothing here changes a session, and asyncpg itself ends
    transactions. Its usual reset is one more round trip for every use."""
