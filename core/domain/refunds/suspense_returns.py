"""Sending money in suspense back, attempt by attempt. Each is an operation of its own at the bank, because a bank
answers one that it knows as it did before (docs/payments.md "Money that cannot count";
ARCHITECTURE.md "Three ends")."""

from .. import ids
from ..payments.suspense import SUSPENSE, Suspense

MOST_TRIES = 10
"""Attempts for one sum; what goes back no way by then is for people to settle."""


def return_operation(suspense: Suspense, attempt: int) -> str:
    """The bank's operation of an attempt (docs/adapters.md "Operation ids"). It names the payment, and tells apart what
    came for it."""
    return ids.operation(SUSPENSE, suspense.payment_id, ids.tail(suspense.id, attempt))


def former_operation(suspense_id: str, attempt: int) -> str:
    """How earlier versions called it: the first is named like the money itself."""
    return suspense_id if attempt == 1 else f"{suspense_id}#{attempt}"


def present_operation(suspense: Suspense) -> str:
    """What the bank knows the present attempt by, or will."""
    if suspense.operation is not None:
        return suspense.operation
    if suspense.sending_since is not None:
        return former_operation(suspense.id, suspense.attempt)
    return return_operation(suspense, suspense.attempt)


def returning_payment(operation: str) -> str | None:
    """The payment whose suspended money an operation sends back; None for what `return_operation` never makes."""
    found = ids.read_operation(SUSPENSE, operation)
    return None if found is None else f"{ids.PAYMENT}{found[0]}"


def attempt_of(suspense: Suspense, operation: str) -> int | None:
    """Which attempt to send this money back an operation of `return_operation` is; None: none of it."""
    found = ids.read_operation(SUSPENSE, operation)
    return None if found is None else ids.tail_number(suspense.id, found[1])


def returned_money(operation: str) -> tuple[tuple[str, int], ...]:
    """Which money an operation of an earlier version may send back, at which attempt: the likeliest first. There is
    another reading only where the operation ends as those of further attempts do, because a bank's transfer id may end
    so, too."""
    money, mark, number = operation.rpartition("#")
    further = {str(attempt): attempt for attempt in range(2, MOST_TRIES + 1)}
    return ((operation, 1), (money, further[number])) if mark and number in further else ((operation, 1),)
