"""What to say of a Postgres that does not do what it is asked: for storage and registry, which connect to it."""

from ..ports.faults import Unavailable

_NO_DATABASE = "3D000"
_NOT_LET_IN = frozenset({"28000", "28P01"})
"""SQLSTATE of its manual's appendix A: by these a server is there, and what was asked for, or who asks, is wrong."""


def away(fault: Exception) -> Unavailable:
    """The fault of asyncpg, or of the network, as one of ours. Raise it from the fault."""
    state = getattr(fault, "sqlstate", None)
    if state == _NO_DATABASE:
        return Unavailable(f"Postgres answers, but {fault}: make it with createdb, or name another one")
    if state in _NOT_LET_IN:
        return Unavailable(f"Postgres answers, but does not let us in: {fault}")
    return Unavailable(f"Postgres did not answer: {type(fault).__name__}: {fault}")
