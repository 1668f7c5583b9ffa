"""Faults of Postgres in the words of ports/faults.py, for the storage and the registry."""

from ..ports.faults import Unavailable

_NO_DATABASE = "3D000"
_NOT_LET_IN = frozenset({"28000", "28P01"})
"""SQLSTATE codes of the manual's appendix A. With these the server answers, and the database or the login is wrong."""
_PROTOCOL = "08P01"
_STATEMENT_OF_ANOTHER = frozenset({"42P05", "26000"})
"""A prepared statement is there that the session did not prepare, or one is gone that it did."""
SHARED = (
    "a pooler before Postgres gives one session to several clients (transaction mode): pool by session "
    "(PgBouncer: pool_mode = session), or name the server itself"
)


def away(fault: Exception) -> Unavailable:
    """Return the fault of asyncpg, or of the network, as one of ours. Raise it from the fault."""
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
    if isinstance(fault, ValueError):  # asyncpg's own word for parameters that it cannot use
        return Unavailable(f"the database's URL cannot be used: {said}")
    return Unavailable(f"Postgres did not answer: {type(fault).__name__}: {said}")
