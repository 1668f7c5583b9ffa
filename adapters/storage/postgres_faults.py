"""What asyncpg raises, in the words of ports/faults.py."""

from collections.abc import Iterator
from contextlib import contextmanager

import asyncpg

from ...ports.faults import Unavailable

_AWAY = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    # What asyncpg raises when the server's farewell came between two statements of a transaction.
    asyncpg.InternalClientError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.PostgresSystemError,
    asyncpg.LockNotAvailableError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.TransactionRollbackError,
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    TimeoutError,
    OSError,
)


def _translate(fault: Exception) -> Exception | None:
    match fault:
        case asyncpg.DataError() | asyncpg.ProgramLimitExceededError() | asyncpg.IntegrityConstraintViolationError():
            # Without the server's words, which quote the value, or the whole row.
            return ValueError(f"Postgres refused a value: {type(fault).__name__}")
        case _ if isinstance(fault, _AWAY):
            return Unavailable(f"Postgres did not answer: {type(fault).__name__}: {fault}")
        case _:
            return None


@contextmanager
def translated() -> Iterator[None]:
    """Raise what happens inside in the words of ports/faults.py."""
    try:
        yield
    except Exception as fault:
        known = _translate(fault)
        if known is None:
            raise
        # A cause's own text may quote values of the row (Postgres' DETAIL); only an outage's cause says nothing of it.
        raise known from (fault if isinstance(known, Unavailable) else None)
