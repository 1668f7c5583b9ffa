"""Attempts to send suspended money back. Each attempt is a separate operation at the bank, because a bank answers a
known operation as before (docs/payments.md "Money that cannot count"; ARCHITECTURE.md "Three outcomes")."""

from .. import ids
from ..payments.suspense import SUSPENSE, Suspense

MOST_TRIES = 10
"""Attempts for one sum; if all fail, people must settle it."""


def return_operation(suspense: Suspense, attempt: int) -> str:
    """Return the bank's operation id of an attempt (docs/adapters.md "Operation ids"). It contains the payment, and
    distinguishes the payment's suspended sums."""
    return ids.operation(SUSPENSE, suspense.payment_id, ids.tail(suspense.id, attempt))


def present_operation(suspense: Suspense) -> str:
    """Return the bank's operation id of the present attempt, requested or not."""
    return suspense.operation or return_operation(suspense, suspense.attempt)


def returning_payment(operation: str) -> str | None:
    """Return the payment whose suspended money an operation returns; None for ids that are not from
    `return_operation`."""
    found = ids.read_operation(SUSPENSE, operation)
    return None if found is None else f"{ids.PAYMENT}{found[0]}"


def attempt_of(suspense: Suspense, operation: str) -> int | None:
    """Return the attempt number of an operation from `return_operation` for this money; None: it is for other money."""
    found = ids.read_operation(SUSPENSE, operation)
    return None if found is None else ids.tail_number(suspense.id, found[1])
