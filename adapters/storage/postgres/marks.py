"""Where a Postgres database lies, as far as that tells a copy of it: which cluster, which timeline, which table."""

import asyncpg

from ....ports.marks import Marks
from ...postgres_sessions import asking

_WHERE = """
SELECT (SELECT system_identifier FROM pg_control_system()),
CASE WHEN pg_is_in_recovery() THEN NULL ELSE left(pg_walfile_name(pg_current_wal_lsn()), 8) END,
to_regclass('installations')::oid
"""
_UNTOLD = (asyncpg.InsufficientPrivilegeError, asyncpg.FeatureNotSupportedError, asyncpg.UndefinedFunctionError)
"""What services say that keep the inside of the server to themselves."""


class PostgresMarks:
    """Fills the port Beside. Nothing is kept beside the database: its place alone tells."""

    keeps = False

    def __init__(self, url: str) -> None:
        """Connects for each look."""
        self._url = url

    async def place(self) -> str | None:
        """A dump that is restored makes the table anew, another cluster has another identifier, and a base backup or a
        replica that is promoted begins a timeline. None where the server does not tell, or is a replica.

        Raises: Unavailable.
        """
        async with asking(self._url) as connection:
            try:
                system, timeline, table = await connection.fetchrow(_WHERE)
            except _UNTOLD:
                return None
        return None if timeline is None else f"system {system} timeline {timeline} table {table}"

    async def read(self) -> Marks | None:
        """None."""
        return None

    async def write(self, marks: Marks) -> None:
        """Keeps nothing."""
