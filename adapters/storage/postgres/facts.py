"""What can be asked of a Postgres before anything opens its database: for whoever looks why it does not open."""

from collections.abc import Mapping

from ...postgres_away import away
from .migrate import postgres_current

_ANSWERS_WITHIN = 5
_ASKED = (
    "server_encoding",
    "fsync",
    "full_page_writes",
    "synchronous_commit",
    "max_connections",
    "transaction_read_only",
)


async def postgres_facts(url: str) -> tuple[str, str | None, Mapping[str, str]]:
    """The server's version, the schema's revision, and how the server is set. Raises: Unavailable."""
    import asyncpg  # here: SQLite alone needs no Postgres driver

    try:
        connection = await asyncpg.connect(url, timeout=_ANSWERS_WITHIN, command_timeout=_ANSWERS_WITHIN)
        try:
            version: str = await connection.fetchval("SHOW server_version")
            revision = await postgres_current(connection)
            rows = await connection.fetch("SELECT name, setting FROM pg_settings WHERE name = ANY($1)", list(_ASKED))
            held = await connection.fetchval(
                "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
            )
            return version, revision, {**{row[0]: row[1] for row in rows}, "connections": str(held)}
        finally:
            await connection.close(timeout=_ANSWERS_WITHIN)
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError) as fault:
        raise away(fault) from fault
