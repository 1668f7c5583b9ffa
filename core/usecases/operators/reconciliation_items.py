"""Action items of reconciliation: differences between a bank's list and ours, and lists that could not be compared
(docs/reconciliation.md)."""

from ....ports.bundle import Ports
from ....ports.storage import Unit
from ...domain.accounts.accounts import Mode
from ...domain.money import Rub
from ...domain.reconciliation.comparing import Difference
from ...domain.reconciliation.reconciliation import Discrepancy, Reconciliation, ReconciliationStatus
from .action_item import ActionItem, first

_BRIEF = {
    Difference.MISSING: "is not in the bank's list",
    Difference.EXTRA: "is in the bank's list alone",
    Difference.AMOUNT: "has another amount in the bank's list",
    Difference.FEE: "has another fee in the bank's list",
    Difference.STATE: "has another state in the bank's list",
}


async def differences(_ports: Ports, unit: Unit) -> list[ActionItem]:
    """Return the open differences, oldest first."""
    return [
        ActionItem(
            kind="difference",
            of="difference",
            object_id=row.id,
            text=f"{row.bank}, {row.day}: {told(row)}",
            since=row.found_at,
            account_id=row.account_id,
            mode=row.mode,
            brief=f"{row.subject} {_BRIEF[row.difference]} of {row.day}",
        )
        for row in await first(unit, Discrepancy, "found_at", closed_at=None)
    ]


async def not_compared(_ports: Ports, unit: Unit) -> list[ActionItem]:
    """Return the days for which a bank gave no list, or only part of it."""
    found = await first(unit, Reconciliation, "finished_at", status=ReconciliationStatus.FAILED)
    return [
        ActionItem(
            kind="reconciliation",
            of="reconciliation",
            object_id=row.id,
            text=f"could not be compared: {row.failure}; cambist reconcile --day {row.day} --bank {row.bank}",
            since=row.finished_at,
            mode=Mode.LIVE,
            brief="could not be compared with the bank's list",
        )
        for row in found
    ]


def told(row: Discrepancy) -> str:
    """Describe a difference in a few words, with both sides."""
    ours, theirs = _rub(row.our_kopecks), _rub(row.their_kopecks)
    match row.difference:
        case Difference.MISSING:
            return f"{row.subject} of {ours} is not in the bank's list"
        case Difference.EXTRA:
            return f"{row.subject} of {theirs} is in the bank's list alone"
        case Difference.AMOUNT:
            return f"{row.subject} of {ours} is of {theirs} in the bank's list"
        case Difference.FEE:
            return f"fee of {_rub(row.our_fee)} is of {_rub(row.their_fee)} in the bank's list"
        case Difference.STATE:
            return f"{row.subject} of {ours} is {row.our_standing} here, {row.their_standing} in the bank's list"


def _rub(kopecks: int | None) -> str:
    return "an unknown sum" if kopecks is None else f"{Rub(kopecks)} RUB"
