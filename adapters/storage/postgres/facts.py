"""Facts about a Postgres server that `cambist doctor` reads before anything opens the database."""

from collections.abc import Mapping
from typing import Any

from ...postgres_sessions import asking, is_shared
from .marks import place_of
from .migrate import postgres_current
from .sessions import UNITS
from .standby import waiting_for_standby

_ASKED = (
    "server_encoding",
    "fsync",
    "full_page_writes",
    "synchronous_commit",
    "synchronous_standby_names",
    "max_connections",
    "transaction_read_only",
)
_SETTINGS = """
SELECT name, CASE name WHEN 'transaction_read_only' THEN setting ELSE reset_val END
FROM pg_settings WHERE name = ANY($1)
"""
"""`reset_val` is the initial value in a new session."""


async def postgres_facts(url: str) -> tuple[str, str | None, Mapping[str, str]]:
    """Return the server's version, the schema's revision, and the server's settings.

    The settings have five more entries. `lost_settings` names the settings of our session that did not persist.
    `waiting_for_standby` is the number of sessions whose commit waits for a standby. `shared_sessions` says whether
    two connections share one session. `connections` is the number of open connections. `location` is
    the location of the database, empty if the server hides it. Raises: Unavailable.
    """
    async with asking(url, UNITS) as connection:
        version: str = await connection.fetchval("SHOW server_version")
        revision = await postgres_current(connection)
        rows = await connection.fetch(_SETTINGS, list(_ASKED))
        open_ones = await connection.fetchval(
            "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
        )
        lost = [name for name, wanted in UNITS.items() if await _present(connection, name) != wanted]
        if await _present(connection, "synchronous_commit") not in ("on", "remote_apply"):
            lost.append("synchronous_commit")
        shared = await is_shared(connection, url)
        found = {
            "connections": str(open_ones),
            "location": await place_of(connection) or "",
            "waiting_for_standby": str(await waiting_for_standby(url)),
            "lost_settings": ", ".join(lost),
            "shared_sessions": "on" if shared else "off",
        }
        return version, revision, {**{row[0]: row[1] for row in rows}, **found}


async def _present(connection: Any, name: str) -> str | None:
    found: str | None = await connection.fetchval("SELECT current_setting($1, true)", name)
    return found
