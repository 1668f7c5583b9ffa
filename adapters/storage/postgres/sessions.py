"""How sessions of Postgres are begun, asked and given back."""

from typing import Any

import asyncpg

from ....ports.faults import NotConfigured

STALL_SECONDS = 5
"""After which a server that hangs is asked anew whether it still does."""
SETTINGS = {
    "application_name": "cambist",
    "lock_timeout": "5s",
    # A process that stops in the middle of a unit must not hold its rows for ever.
    "idle_in_transaction_session_timeout": "10s",
}
BY_INDEX = {
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "jit": "off",
}
"""All that units do goes by an index and is planned once. Left to itself Postgres plans it for the small tables of its
last ANALYZE, and then walks ones that have grown: by measurement, twice the work within a minute of a new database."""
DURABLE = "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
"""A commit that returned is on disk, whatever the server's default; a stronger setting is left alone."""


def require_utf8(encoding: str) -> None:
    """Raises NotConfigured for a database that would refuse some texts, or keep them unread."""
    if encoding != "UTF8":
        raise NotConfigured(f"the database's encoding must be UTF8, not {encoding}")


async def prepare(connection: Any) -> None:
    """Make a new connection's commits durable."""
    await connection.execute(DURABLE)


async def ask_by_itself(url: str) -> None:
    """One question on a new connection. Raises: what asyncpg does; TimeoutError."""
    connection = await asyncpg.connect(url, timeout=STALL_SECONDS, command_timeout=STALL_SECONDS)
    try:
        await connection.fetchval("SELECT 1")
    finally:
        connection.terminate()


async def leave(_: Any) -> None:
    """Connections go back to their pool as they are: nothing here changes a session, and asyncpg itself ends
    transactions. Its usual reset is one more round trip for every use."""
