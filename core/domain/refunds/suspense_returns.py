"""Sending money in suspense back, attempt by attempt. Each is an operation of its own at the bank, because a bank
answers one that it knows as it did before (docs/payments.md "Money that cannot count";
ARCHITECTURE.md "Three ends")."""

MOST_TRIES = 10
"""Attempts for one sum; what goes back no way by then is for people to settle."""


def return_operation(suspense_id: str, attempt: int) -> str:
    """The bank's operation of an attempt. The first is named like the money itself."""
    return suspense_id if attempt == 1 else f"{suspense_id}#{attempt}"


def returned_money(operation: str) -> tuple[tuple[str, int], ...]:
    """Which money an operation may send back, at which attempt: the likeliest first. There is another reading only
    where the operation ends as those of further attempts do, because a bank's transfer id may end so, too."""
    money, mark, number = operation.rpartition("#")
    further = {str(attempt): attempt for attempt in range(2, MOST_TRIES + 1)}
    return ((operation, 1), (money, further[number])) if mark and number in further else ((operation, 1),)
