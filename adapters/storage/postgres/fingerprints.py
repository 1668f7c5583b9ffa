"""Location of a Postgres database, which tells a copy from the original: cluster, timeline and table."""

import asyncpg

from ....ports.fingerprints import Fingerprints
from ...postgres_sessions import asking

_WHERE = """
SELECT (SELECT system_identifier FROM pg_control_system()),
CASE WHEN pg_is_in_recovery() THEN NULL ELSE left(pg_walfile_name(pg_current_wal_lsn()), 8) END,
to_regclass('installations')::oid
"""
_UNTOLD = (asyncpg.InsufficientPrivilegeError, asyncpg.FeatureNotSupportedError, asyncpg.UndefinedFunctionError)
"""Errors of hosted services that hide the inside of the server."""


class PostgresFingerprints:
    """Implementation of the port Beside. Nothing is stored beside the database: its location alone identifies it."""

    keeps = False

    def __init__(self, url: str) -> None:
        """Remember the URL. Each read makes its own connection."""
        self._url = url

    async def place(self) -> str | None:
        """Return the location; None if the server hides it or is a replica.

        Restoring a dump creates the table again, another cluster has another identifier, and a base backup or a
        promoted replica starts a timeline. Raises: Unavailable.
        """
        async with asking(self._url) as connection:
            try:
                system, timeline, table = await connection.fetchrow(_WHERE)
            except _UNTOLD:
                return None
        return None if timeline is None else f"system {system} timeline {timeline} table {table}"

    async def read(self) -> Fingerprints | None:
        """Return None, because nothing is stored."""
        return None

    async def write(self, marks: Fingerprints) -> None:
        """Do nothing."""
