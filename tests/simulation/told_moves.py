"""Check that a merchant got each status change of a payment once and in order (docs/webhooks.md)."""

from collections.abc import Callable, Collection, Sequence

from tests.simulation.receivers import Told

_MOVE = "payment.status_changed"


def judge_moves(
    wrong: Callable[[str], None], told: Sequence[Told], payment_id: str, status: str, lost: Collection[int] = ()
) -> set[str]:
    """Each move is told by one event, without a gap, and the last of them says how it stands. `lost`: the numbers of
    events that were given up. Returns what it was told to have been."""
    before: str | None = "pending"
    number, passed = 0, set[str]()
    for each in told:
        number += 1
        while number in lost:
            number, before = number + 1, None
        if each.sequence != number:
            wrong(f"{payment_id}: event {number} is missing; {each.sequence} was told")
            return passed
        if each.event != _MOVE:
            continue
        if before is not None and each.body.get("previous_status") != before:
            wrong(f"{payment_id}: told {each.body['status']} after {each.body['previous_status']}, at {before}")
        before = str(each.body["status"])
        passed.add(before)
    if number + 1 not in lost and before not in (status, None):
        wrong(f"{payment_id} is {status}, and {before} was told last")
    return passed
