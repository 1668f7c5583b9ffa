"""Postgres errors as faults of ports/faults.py, for the storage and the registry."""

from ..ports.faults import Unavailable

_NO_DATABASE = "3D000"
_NOT_LET_IN = frozenset({"28000", "28P01"})
"""SQLSTATE codes (Postgres manual, appendix A) of a server that answers, but rejects the database or the login."""
_PROTOCOL = "08P01"
_STATEMENT_OF_ANOTHER = frozenset({"42P05", "26000"})
"""The session finds a prepared statement that it did not prepare, or misses its own."""
SHARED = (
    "a pooler before Postgres gives one session to several clients (transaction mode): name the server itself in "
    "CAMBIST_DATABASE_DIRECT_URL, or pool by session (PgBouncer: pool_mode = session)"
)


def away(fault: Exception) -> Unavailable:
    """Convert an error of asyncpg or the network to one of our faults. The caller raises it from the error."""
    state = getattr(fault, "sqlstate", None)
    # Further lines are hints to programmers, and details that may quote a row.
    said = str(fault).partition("\n")[0]
    if state in _STATEMENT_OF_ANOTHER:
        return Unavailable(SHARED)
    if state == _NO_DATABASE:
        return Unavailable(f"Postgres answers, but {said}: make it with createdb, or name another one")
    if state in _NOT_LET_IN:
        return Unavailable(f"Postgres answers, but does not let us in: {said}")
    if state == _PROTOCOL:
        return Unavailable(f"Postgres, or a pooler before it, refuses the connection: {said}")
    if isinstance(fault, ValueError):  # asyncpg raises it for unusable parameters
        return Unavailable(f"the database's URL cannot be used: {said}")
    return Unavailable(f"Postgres did not answer: {type(fault).__name__}: {said}")
