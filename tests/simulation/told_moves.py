"""What a merchant was told of a payment's moves: each of them, once, in their order (docs/webhooks.md)."""

from collections.abc import Callable, Sequence

from tests.simulation.receivers import Told

_MOVE = "payment.status_changed"


def judge_moves(wrong: Callable[[str], None], told: Sequence[Told], payment_id: str, status: str) -> set[str]:
    """Each move is told by one event, without a gap, and the last of them says how it stands. Returns what it was told
    to have been."""
    before, passed = "pending", set()
    for number, each in enumerate(told, 1):
        if each.sequence != number:
            wrong(f"{payment_id}: event {number} is missing; {each.sequence} was told")
            return passed
        if each.event != _MOVE:
            continue
        if each.body.get("previous_status") != before:
            wrong(f"{payment_id}: told {each.body['status']} after {each.body['previous_status']}, at {before}")
        before = each.body["status"]
        passed.add(before)
    if before != status:
        wrong(f"{payment_id} is {status}, and {before} was told last")
    return passed
