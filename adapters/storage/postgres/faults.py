"""Translation of asyncpg's errors to those of ports/faults.py."""

from contextlib import AbstractContextManager
from types import TracebackType

import asyncpg

from ....ports.faults import Unavailable
from ...postgres_away import away

_AWAY = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    # asyncpg raises this when the server closed the connection between two statements of a transaction.
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
            # Leave out the server's message, which quotes the value or the whole row.
            return ValueError(f"Postgres refused a value: {type(fault).__name__}")
        case _ if isinstance(fault, _AWAY):
            return away(fault)
        case _:
            return None


class _Translated:
    """Context manager shared by all statements.

    It is stateless, and no generator, because every statement passes through it.
    """

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None) -> None:
        known = _translate(fault) if isinstance(fault, Exception) else None
        if known is not None:
            # The text of a cause may quote values of the row (Postgres' DETAIL). Only the cause of an outage never
            # does.
            raise known from (fault if isinstance(known, Unavailable) else None)


_TRANSLATED = _Translated()


def translated() -> AbstractContextManager[None]:
    """Return a context that translates errors inside it to those of ports/faults.py."""
    return _TRANSLATED
