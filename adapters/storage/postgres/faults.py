"""What asyncpg raises, in the words of ports/faults.py."""

from contextlib import AbstractContextManager
from types import TracebackType

import asyncpg

from ....ports.faults import Unavailable
from ...postgres_away import away

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
            return away(fault)
        case _:
            return None


class _Translated:
    """Every question to the database passes here, so it is no generator, and one for all: it remembers nothing."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None) -> None:
        known = _translate(fault) if isinstance(fault, Exception) else None
        if known is not None:
            # A cause's own text may quote values of the row (Postgres' DETAIL); only an outage's cause says nothing
            # of it.
            raise known from (fault if isinstance(known, Unavailable) else None)


_TRANSLATED = _Translated()


def translated() -> AbstractContextManager[None]:
    """Raise what happens inside in the words of ports/faults.py."""
    return _TRANSLATED
