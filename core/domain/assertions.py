"""Invariants that no unit may violate, whatever the code before it did: checked against its writes at the moment of its
commit, in production too (docs/reliability.md "Assertions").

Each rule uses only what one unit read and wrote, and so costs microseconds. If a rule lacks data it passes; the checks
over the whole database find such cases (`cambist ledger verify`, `doctor`).
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from .ledger import BalanceType, EntryKind, JournalEntry, balances_moved, imbalance
from .machine import Moves
from .payments.payments import PAYMENT_MOVES, Payment
from .payments.tallies import EVER, Tally
from .refunds.refunds import REFUND_MOVES, Refund, holds_money
from .settlement.settlement import ItemKind, SettlementItem
from .settlement.withdrawals import WITHDRAWAL_MOVES, Withdrawal
from .webhooks.events import Event

Moving = Payment | Refund | Withdrawal
"""Records with a status, and a sequence that rises with every event."""


class Breach(Exception):
    """A unit would have violated an invariant. Nothing of it is committed. The cause is a bug, or a row that somebody
    altered."""

    def __init__(self, rule: str, where: str) -> None:
        super().__init__(f"{rule}: {where}")
        self.rule = rule


class Change(msgspec.Struct):
    """A unit's change of one object."""

    before: Any
    """The record as the unit read it; None: it is new, or was not read."""
    after: Any
    """None: it is deleted."""
    is_new: bool = False
    version: int = 0
    """Version against which it is written."""


class Written(msgspec.Struct, eq=False):
    """Writes of one unit, as far as the rules use them."""

    body_of: Callable[[Event], bytes]
    """Decrypts the payload of a new event."""
    entries: list[JournalEntry] = []
    """New entries."""
    rewritten: list[str] = []
    """Ids of entries that would be changed or deleted."""
    balances: dict[str, int] = {}
    """Increments of running balances, by id."""
    standing: dict[str, int] = {}
    """Committed balances of the ledger accounts that the unit lowers and that must not go below zero, by the prefix of
    their rows' ids."""
    changes: dict[str, Change] = {}
    """Changes of payments, refunds and withdrawals, by id."""
    events: list[Event] = []
    tallies: list[Tally] = []
    """Increments of the tallies."""
    lines: list[SettlementItem] = []
    credited: int = 0
    """Increment of a statement's sum, in units of USDT."""

    __repr__ = object.__repr__  # the default repr of a struct would show its content


def breach_of(written: Written) -> Breach | None:
    """Return the first violated rule; None if all hold."""
    if len(written.changes) == 1 and not written.events and not written.entries and _moves_nothing(written):
        return None
    if written.entries or written.balances or written.rewritten:
        ledger = _first(_OF_LEDGER, written)
        if ledger is not None:
            return ledger
    if written.changes:
        objects = _first(_OF_OBJECTS, written)
        if objects is not None:
            return objects
    if written.tallies or written.lines:
        return _first(_OF_SUMS, written)
    return None


def _moves_nothing(written: Written) -> bool:
    """Return whether the unit is trivial: a new payment, counted once for its day and once for all days, or a change of
    a payment in fields that no rule uses. Most units are, and this is much faster than the rules."""
    if written.balances or written.rewritten or written.lines:
        return False
    [change] = written.changes.values()
    before, after, counted = change.before, change.after, written.tallies
    if type(after) is not Payment:
        return False
    if before is not None:
        taken = after.refund_taken.kopecks == before.refund_taken.kopecks == 0
        return taken and not counted and after.status is before.status and after.sequence == before.sequence
    if after.sequence or after.refund_taken.kopecks or len(counted) != 2:
        return False
    of_day, ever = counted
    counts_one = of_day.count == ever.count == 1 and of_day.status is ever.status is after.status
    return counts_one and ever.period == EVER != of_day.period


def _first(rules: "Mapping[str, Rule]", written: Written) -> Breach | None:
    for rule, broken in rules.items():
        where = broken(written)
        if where is not None:
            return Breach(rule, where)
    return None


def _entry(written: Written) -> str | None:
    """Check that each journal entry sums to zero in each currency, and that none is rewritten."""
    if written.rewritten:
        return f"{written.rewritten[0]} is written anew"
    for entry in written.entries:
        fault = imbalance(entry.postings)
        if fault is not None:
            return f"{entry.id}: {fault}"
    return None


def _balance(written: Written) -> str | None:
    """Check that running balances change exactly by the postings of the unit's entries."""
    off = dict(written.balances)
    for entry in written.entries:
        for row in balances_moved(entry):
            off[row.id] = off.get(row.id, 0) - row.balance
    return next((f"{row_id} by {amount}" for row_id, amount in off.items() if amount), None)


def lowered(written: Written) -> dict[str, int]:
    """Return by how much the unit lowers ledger accounts that must not go below zero, by the prefix of their rows' ids.

    Deleting test data reverses receipts and refunds in any order, and is exempt.
    """
    if not written.balances or any(entry.kind is EntryKind.SANDBOX_CLEARED for entry in written.entries):
        return {}
    moved: dict[str, int] = {}
    for row_id, amount in written.balances.items():
        account = row_id.rpartition(":")[0]
        if account.endswith(NEVER_BELOW):
            moved[account] = moved.get(account, 0) + amount
    return {account: amount for account, amount in moved.items() if amount < 0}


def _below_zero(written: Written) -> str | None:
    """Check that settlements take no more than merchants' payments brought, and payouts no more than was reserved."""
    for account, amount in lowered(written).items() if written.standing else ():
        if written.standing.get(account, 0) + amount < 0:
            return f"{account} at {written.standing.get(account, 0)} by {amount}"
    return None


def _payout(written: Written) -> str | None:
    """Check that a payout takes from its merchant's reserve, or returns, exactly the amount reserved for it."""
    for entry in written.entries:
        if entry.kind not in _PAYOUTS or entry.revision != 1:
            continue
        change = written.changes.get(entry.object_id)
        moved = sum(posting.amount for posting in entry.postings if posting.balance_type is BalanceType.RESERVED)
        if change is None or change.after is None or moved != _PAYOUTS[entry.kind] * change.after.amount.units:
            return f"{entry.id} moves {moved}"
    return None


def _move(written: Written) -> str | None:
    """Check that a status follows from the previous one by the state tables. If one unit makes several moves, each has
    its own event, and only the first and last status are known."""
    for each in written.changes.values():
        before, after = each.before, each.after
        if before is None or after is None or before.status is after.status:
            continue
        if after.sequence - before.sequence <= 1 and (before.status, after.status) not in _ALLOWED[type(after)]:
            return f"{after.id} from {before.status} to {after.status}"
    return None


def _event(written: Written) -> str | None:
    """Check that an object's sequence rises by one with each event about it, and that the same unit writes the
    event."""
    for object_id, each in written.changes.items():
        if each.after is None or not (each.is_new or each.before is not None):
            continue
        first, last = 0 if each.is_new else each.before.sequence, each.after.sequence
        if first == last and not written.events:
            continue
        told = sorted(event.sequence for event in written.events if event.object_id == object_id)
        if last < first or told != list(range(first + 1, last + 1)):
            return f"{object_id} at {first}, then {last}, told {told}"
    return None


def _previous(written: Written) -> str | None:
    """Check that the event of a payment's only move contains the previous status."""
    for event in written.events:
        change = written.changes.get(event.object_id)
        if change is None or change.before is None or change.after is None or type(change.after) is not Payment:
            continue
        before, after = change.before, change.after
        if after.sequence - before.sequence != 1 or before.status is after.status:
            continue
        if f'"previous_status":"{before.status}"'.encode() not in written.body_of(event):
            return f"{event.id}: {before.id} was {before.status}"
    return None


def _refund(written: Written) -> str | None:
    """Check that the amount taken by refunds is between zero and the received amount, and changes together with the
    refunds."""
    taken, moved = 0, 0
    is_known = True
    for each in written.changes.values():
        before, after = each.before, each.after
        kind = type(after)
        if kind is Payment:
            left = after.refund_taken.kopecks
            if left < 0 or (left and left > (0 if after.actual_amount is None else after.actual_amount.kopecks)):
                return f"{after.id}: {after.refund_taken} of {after.actual_amount}"
            taken += left - (0 if before is None else before.refund_taken.kopecks)
        elif kind is Refund:
            moved += _held(after) - _held(before)
        elif after is None:
            return None
        is_known = is_known and (each.is_new or before is not None)
    return f"refunds took {moved} kopecks, payments lost {taken}" if is_known and taken != moved else None


def _held(refund: Refund | None) -> int:
    return 0 if refund is None or not holds_money(refund) else refund.amount.kopecks


def _tally(written: Written) -> str | None:
    """Check that the counts of payments change exactly with the payments."""
    of_days: dict[str, int] = {}
    ever: dict[str, int] = {}
    for tally in written.tallies:
        counts, status = ever if tally.period == EVER else of_days, str(tally.status)
        counts[status] = counts.get(status, 0) + tally.count
    for each in written.changes.values() if of_days or ever else ():
        if type(each.after or each.before) is not Payment:
            continue
        if not (each.is_new or each.before is not None):
            return None
        for payment, by in ((each.before, 1), (each.after, -1)):
            if payment is not None:
                status = str(payment.status)  # the hash of an enumeration member takes several times as long
                ever[status] = ever.get(status, 0) + by
                of_days[status] = of_days.get(status, 0) + by
    off = (*ever.items(), *of_days.items())
    return next((f"{status} by {amount}" for status, amount in off if amount), None)


def _statement(written: Written) -> str | None:
    """Check that a payment is in only one statement and is settled in the same unit, and that a statement's sum is the
    sum of its lines."""
    if not written.lines:
        return None
    if sum(line.credit.units for line in written.lines) != written.credited:
        return f"{written.lines[0].settlement_id}: its lines are not {written.credited}"
    for line in written.lines:
        change = written.changes.get(line.payment_id)
        if line.kind is not ItemKind.PAYMENT or change is None or not (change.is_new or change.before is not None):
            continue
        former = None if change.before is None else change.before.settlement_id
        if change.after is None or change.after.settlement_id != line.settlement_id or former is not None:
            return f"{line.id}: {line.payment_id} was in {former}"
    return None


def _pairs(moves: Moves[Any, Any]) -> frozenset[tuple[Any, Any]]:
    return frozenset((row.before, row.after) for row in moves.rows)


_ALLOWED: Mapping[Any, frozenset[tuple[Any, Any]]] = {
    Payment: _pairs(PAYMENT_MOVES),
    Refund: _pairs(REFUND_MOVES),
    Withdrawal: _pairs(WITHDRAWAL_MOVES),
}
NEVER_BELOW = tuple(f":{balance_type}" for balance_type in (BalanceType.PENDING, BalanceType.RESERVED))
"""Ledger accounts that never go below zero, as suffixes of ids. The rows of each begin with its id and a colon."""
_PAYOUTS = {EntryKind.PAYOUT_RESERVED: 1, EntryKind.PAYOUT_SENT: -1, EntryKind.PAYOUT_RELEASED: -1}

Rule = Callable[[Written], str | None]
"""Return where the rule is violated, in ids and amounts; None: it holds."""

_OF_LEDGER: Mapping[str, Rule] = {
    "journal_entry": _entry,
    "running_balance": _balance,
    "payout": _payout,
    "below_zero": _below_zero,
}
_OF_OBJECTS: Mapping[str, Rule] = {
    "status": _move,
    "event_sequence": _event,
    "previous_status": _previous,
    "refund": _refund,
}
_OF_SUMS: Mapping[str, Rule] = {"tally": _tally, "statement": _statement}
RULES: Mapping[str, Rule] = {**_OF_LEDGER, **_OF_OBJECTS, **_OF_SUMS}
"""All rules, under the names shown to operators."""
