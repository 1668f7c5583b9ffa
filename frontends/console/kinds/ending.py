"""Lets an operator decide the outcome of an operation that its bank no longer knows: a refund, a return, or a payout
(docs/operations.md "What needs a person")."""

from collections.abc import Callable
from typing import Any

from ....core.domain.operators.guarded import Guarded
from ....core.usecases.operators.unanswered import OUTCOMES, end_unanswered
from .kinds import Change, ConsoleAction, Doing, Entry, Tells

_MEANS = {"done": "it went: the money is where it was sent", "failed": "it never goes: the money is where it was"}


def ending(operation_of: Callable[[Any], str | None], tells: Tells) -> ConsoleAction:
    """Return the action. `operation_of` returns the operation that may be at the bank, or None. The service refuses the
    action while it still works on the operation or the bank knows it."""

    async def run(doing: Doing) -> str:
        operation, outcome = operation_of(doing.record) or "", doing.given["outcome"]
        await end_unanswered(doing.ports, operation, outcome)
        return f"Noted: {_MEANS[outcome]}."

    def changes(record: Any) -> list[Change]:
        return [
            Change("operation", operation_of(record) or "-", "over, as the bank's own records show"),
            Change("the bank", "knows nothing of it", "is asked once more first"),
        ]

    return ConsoleAction(
        name="operation.end",
        title="End as the bank's records show",
        key="e",
        allowed=lambda record: operation_of(record) is not None,
        entries=(Entry(name="outcome", label="The bank's records say", choices=OUTCOMES, default=OUTCOMES[0]),),
        changes=changes,
        follows=lambda record, given: [
            *changes(record),
            Change("what became of it", "not known", _MEANS.get(given.get("outcome", ""), "-")),
        ],
        run=run,
        tells=tells,
        by_two=lambda *_: Guarded.OPERATIONS,
    )
