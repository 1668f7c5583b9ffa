"""What no unit may write, whatever the code before it thought: held against its writes at the moment of its commit, in
production too (docs/reliability.md "Assertions").

Each rule looks at nothing but what one unit read and wrote, and so costs microseconds: what it cannot know it lets
pass, and the checks over everything find it (`cambist ledger verify`, `doctor`).
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from .ledger import EntryKind, JournalEntry, Purse, balances_moved, imbalance
from .machine import Moves
from .money import Rub
from .payments.payments import PAYMENT_MOVES, Payment
from .payments.tallies import EVER, Tally
from .refunds.refunds import REFUND_MOVES, Refund, holds_money
from .settlement.settlement import ItemKind, SettlementItem
from .settlement.withdrawals import WITHDRAWAL_MOVES, Withdrawal
from .webhooks.events import Event

Moving = Payment | Refund | Withdrawal
"""What has a status, and a sequence that rises with every event about it."""


class Breach(Exception):
    """A unit would have written what cannot be true. Nothing of it is committed. A slip of the program, or a row that
    somebody altered."""

    def __init__(self, rule: str, where: str) -> None:
        super().__init__(f"{rule}: {where}")
        self.rule = rule


class Change(msgspec.Struct):
    """What a unit makes of one object."""

    before: Any
    """As the unit read it; None: it is new, or was not read."""
    after: Any
    """None: it goes."""
    is_new: bool = False

    @property
    def is_known(self) -> bool:
        """Whether it is known what it was."""
        return self.is_new or self.before is not None


class Written(msgspec.Struct, eq=False):
    """What one unit writes, as far as a rule looks at it."""

    entries: list[JournalEntry] = []
    """New ones."""
    rewritten: list[str] = []
    """Ids of entries that would say something else, or go."""
    balances: dict[str, int] = {}
    """What is added to running balances, by id."""
    changes: dict[str, Change] = {}
    """Of payments, refunds and withdrawals, by id."""
    events: list[Event] = []
    tallies: list[Tally] = []
    """What is added to them."""
    lines: list[SettlementItem] = []
    credited: int = 0
    """Units of USDT that are added to a statement's sum."""

    __repr__ = object.__repr__  # a struct's own would show what is written

    def of(self, kind: type[Any]) -> Iterator[Change]:
        """The changes of objects of a kind."""
        return (each for each in self.changes.values() if type(each.after or each.before) is kind)


def require_true(written: Written) -> None:
    """Raises: Breach, for the first rule that does not hold."""
    for rule, broken in RULES.items():
        where = broken(written)
        if where is not None:
            raise Breach(rule, where)


def _entry(written: Written) -> str | None:
    """Each entry of the journal sums to zero in each currency, and says for ever what it said."""
    if written.rewritten:
        return f"{written.rewritten[0]} is written anew"
    for entry in written.entries:
        fault = imbalance(entry.postings)
        if fault is not None:
            return f"{entry.id}: {fault}"
    return None


def _balance(written: Written) -> str | None:
    """Running balances move by what the unit's entries post, and by nothing else."""
    if not written.balances and not written.entries:
        return None
    off = dict(written.balances)
    for entry in written.entries:
        for row in balances_moved(entry):
            off[row.id] = off.get(row.id, 0) - row.balance
    return next((f"{row_id} by {amount}" for row_id, amount in off.items() if amount), None)


def _payout(written: Written) -> str | None:
    """What a payout takes out of its merchant's reserve, or gives back, is what was reserved for it."""
    for entry in written.entries:
        if entry.kind not in _PAYOUTS or entry.revision != 1:
            continue
        change = written.changes.get(entry.object_id)
        moved = sum(posting.amount for posting in entry.postings if posting.purse is Purse.RESERVED)
        if change is None or change.after is None or moved != _PAYOUTS[entry.kind] * change.after.amount.units:
            return f"{entry.id} moves {moved}"
    return None


def _move(written: Written) -> str | None:
    """A status follows from the one before as the state tables have it. Of several moves in one unit each had an event
    of its own, and only their ends are known."""
    for each in written.changes.values():
        before, after = each.before, each.after
        if before is None or after is None or before.status is after.status:
            continue
        if after.sequence - before.sequence <= 1 and (before.status, after.status) not in _ALLOWED[type(after)]:
            return f"{after.id} from {before.status} to {after.status}"
    return None


def _event(written: Written) -> str | None:
    """The sequence of an object rises by one with each event about it, which the same unit writes."""
    told: dict[str, list[int]] = {}
    for event in written.events:
        told.setdefault(event.object_id, []).append(event.sequence)
    for object_id, each in written.changes.items():
        if each.after is None or not each.is_known:
            continue
        first = 0 if each.is_new else each.before.sequence
        wanted = list(range(first + 1, each.after.sequence + 1))
        if each.after.sequence < first or sorted(told.get(object_id, ())) != wanted:
            return f"{object_id} at {first}, then {each.after.sequence}, told {told.get(object_id)}"
    return None


def _previous(written: Written) -> str | None:
    """An event of a payment's only move says where it came from."""
    for event in written.events:
        change = written.changes.get(event.object_id)
        if change is None or change.before is None or change.after is None or type(change.after) is not Payment:
            continue
        before, after = change.before, change.after
        if after.sequence - before.sequence != 1 or before.status is after.status:
            continue
        if f'"previous_status":"{before.status}"'.encode() not in event.body:
            return f"{event.id}: {before.id} was {before.status}"
    return None


def _refund(written: Written) -> str | None:
    """What refunds take out of a payment is between nothing and what came, and moves as they do."""
    taken, moved = 0, 0
    is_known = True
    for each in written.of(Payment):
        if each.after is None:
            is_known = False
            continue
        after: Payment = each.after
        if not Rub(0) <= after.refund_taken <= (after.actual_amount or Rub(0)):
            return f"{after.id}: {after.refund_taken} of {after.actual_amount}"
        is_known = is_known and each.is_known
        taken += after.refund_taken.kopecks - (0 if each.before is None else each.before.refund_taken.kopecks)
    for each in written.of(Refund):
        is_known = is_known and each.is_known and each.after is not None
        moved += _held(each.after) - _held(each.before)
    return f"refunds took {moved} kopecks, payments lost {taken}" if is_known and taken != moved else None


def _held(refund: Refund | None) -> int:
    return 0 if refund is None or not holds_money(refund) else refund.amount.kopecks


def _tally(written: Written) -> str | None:
    """Counts of payments move as payments do: none goes below zero, and none counts what is not there."""
    if not written.tallies:
        return None
    off: dict[Any, int] = {}
    for tally in written.tallies:
        place = tally.status, tally.period == EVER
        off[place] = off.get(place, 0) + tally.count
    for each in written.of(Payment):
        if not each.is_known:
            return None
        for payment, by in ((each.before, 1), (each.after, -1)):
            if payment is not None:
                for ever in (False, True):
                    off[payment.status, ever] = off.get((payment.status, ever), 0) + by
    return next((f"{place[0]} by {amount}" for place, amount in off.items() if amount), None)


def _statement(written: Written) -> str | None:
    """A payment is in one statement, at which it is settled in the same unit, and a statement's sum is its lines'."""
    if not written.lines:
        return None
    if sum(line.credit.units for line in written.lines) != written.credited:
        return f"{written.lines[0].settlement_id}: its lines are not {written.credited}"
    for line in written.lines:
        change = written.changes.get(line.payment_id)
        if line.kind is not ItemKind.PAYMENT or change is None or not change.is_known:
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
_PAYOUTS = {EntryKind.PAYOUT_RESERVED: 1, EntryKind.PAYOUT_SENT: -1, EntryKind.PAYOUT_RELEASED: -1}

RULES: Mapping[str, Callable[[Written], str | None]] = {
    "journal_entry": _entry,
    "running_balance": _balance,
    "payout": _payout,
    "status": _move,
    "event_sequence": _event,
    "previous_status": _previous,
    "refund": _refund,
    "tally": _tally,
    "statement": _statement,
}
"""By the name that operators are told: where each is broken, in ids and amounts; None: it holds."""
