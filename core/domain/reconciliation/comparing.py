"""Comparison of a bank's list with our records: pure functions, so that every case is one row of a test
(docs/reconciliation.md "Kinds of differences").

Both lists arrive in the order of time, in chunks, and neither is in memory as a whole: a `Sweep` keeps our operations
only as long as the bank's entry may still follow.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

MARGIN = timedelta(minutes=30)
"""Largest difference between the two about the beginning of an operation: clocks, and a creation that took several
tries. So an operation that began at 23:59:59 is found in the bank's next day."""


class Subject(StrEnum):
    """Kind of a bank operation."""

    PAYMENT = "payment"
    REFUND = "refund"
    PAYOUT = "payout"


class Standing(StrEnum):
    """State of an operation on one side."""

    OPEN = "open"
    DONE = "done"
    """The money moved."""
    FAILED = "failed"
    """The money did not move, or came back."""
    UNDONE = "undone"
    """Ours only: the money moved and came back, or the bank reported both. Banks list it either way."""


class Difference(StrEnum):
    """Kind of a difference."""

    MISSING = "missing"
    """We count it, and the bank's list does not contain it."""
    EXTRA = "extra"
    """The bank booked it, and we do not know it."""
    AMOUNT = "amount"
    FEE = "fee"
    STATE = "state"


class Booked(msgspec.Struct, frozen=True, kw_only=True):
    """An operation in the bank's list."""

    id: str
    subject: Subject
    standing: Standing
    moment: datetime
    """When the bank accepted it."""
    kopecks: int
    operation: str | None = None
    reference: str | None = None
    """The reference that the bank returned, if it can have two payments for one operation."""
    fee: int | None = None


class Counted(msgspec.Struct, frozen=True, kw_only=True):
    """An operation in our records."""

    operation: str
    subject: Subject
    standing: Standing
    began: datetime
    """From when on the bank may have the request."""
    ended: datetime | None = None
    """When we learned that the money had moved."""
    kopecks: int | None = None
    """Amount received or sent; None: the bank did not report it."""
    fee: int | None = None
    """The provider's fee, if reported."""
    reference: str | None = None
    """For a payment: the reference that the bank returned."""
    owner: str = ""
    """Owner of the credentials."""
    of: str = ""
    """Kind of our object: `payment`, `refund`, `exchange`, `suspense`."""
    object_id: str = ""
    account_id: str | None = None
    is_compared: bool = True
    """False for test mode, which is not compared."""

    @property
    def is_counted(self) -> bool:
        """Whether the bank must list it."""
        return self.standing in (Standing.DONE, Standing.UNDONE)

    @property
    def latest(self) -> datetime:
        """The latest moment at which the bank may have accepted it."""
        return self.began if self.ended is None else max(self.began, self.ended)


_D, _O, _F, _U = Standing.DONE, Standing.OPEN, Standing.FAILED, Standing.UNDONE

_AGREED = frozenset(((_D, _D), (_O, _O), (_F, _F), (_U, _D), (_U, _F)))
"""Pairs of our standing and the bank's."""


def differences(ours: Counted | None, theirs: Booked | None) -> tuple[Difference, ...]:
    """Return the differences about one operation; empty if none matters. An amount, a fee or a reference that one side
    does not state is not compared."""
    if ours is not None and not ours.is_compared:
        return ()
    if theirs is None:
        return (Difference.MISSING,) if ours is not None and ours.is_counted else ()
    if ours is None or _is_another(ours, theirs):
        return (Difference.EXTRA,) if _moves_money(theirs) else ()
    if not _agree(ours, theirs):
        return (Difference.STATE,)
    if theirs.standing is not _D:
        return ()
    return tuple(
        difference
        for difference, mine, other in (
            (Difference.AMOUNT, ours.kopecks, theirs.kopecks),
            (Difference.FEE, ours.fee, theirs.fee),
        )
        if mine is not None and other is not None and mine != other
    )


def _is_another(ours: Counted, theirs: Booked) -> bool:
    """Return whether the bank's entry is another payment under our operation: ours has a different reference."""
    is_second = None not in (ours.reference, theirs.reference) and ours.reference != theirs.reference
    return is_second or theirs.subject is not ours.subject


def _moves_money(theirs: Booked) -> bool:
    return theirs.standing is _D or (theirs.standing is _O and theirs.subject is not Subject.PAYMENT)


def matters(theirs: Booked) -> bool:
    """Return whether an entry without a counted operation needs a look-up in our records. An open payment waits for a
    payer and a failed one concerns nobody; open operations of other kinds pay out without anybody's action."""
    return theirs.subject is not Subject.PAYMENT or theirs.standing is _D


def _agree(ours: Counted, theirs: Booked) -> bool:
    if theirs.subject is Subject.PAYMENT and theirs.standing is not _D:
        return not ours.is_counted
    return (ours.standing, theirs.standing) in _AGREED


class _Held:
    """One of our operations, with the bank's entry if it was found."""

    __slots__ = ("booked", "counted")

    def __init__(self, counted: Counted, booked: str | None) -> None:
        self.counted = counted
        self.booked = booked


class Sweep:
    """Matches our operations of some hours with the bank's list. Operations that began in `[begin, end)` are judged;
    earlier and later ones only help to match.

    The caller adds our operations of a period (`hold`), then the bank's entries of that period (`match`), and then
    reads the operations that the bank's list lacks (`lacking`). Memory is limited to one period and two margins.
    """

    def __init__(self, begin: datetime, end: datetime) -> None:
        self._begin = begin
        self._end = end
        self._held: dict[str, _Held] = {}
        self._ahead: dict[str, str] = {}
        """Entries that came long before our operation was added, by operation."""

    def __len__(self) -> int:
        return len(self._held)

    def hold(self, counted: Iterable[Counted]) -> None:
        """Add operations. An operation that was added before stays unchanged."""
        for each in counted:
            if each.operation not in self._held:
                self._held[each.operation] = _Held(each, self._ahead.pop(each.operation, None))

    def match(self, booked: Booked) -> Counted | None:
        """Return our operation of an entry, if it was added under this id; a second entry of one operation matches
        nothing."""
        held = None if booked.operation is None else self._held.get(booked.operation)
        if held is None or held.booked not in (None, booked.id) or _is_another(held.counted, booked):
            return None
        held.booked = booked.id
        return held.counted

    def is_second(self, operation: str, entry: str) -> bool:
        """Return whether a different entry has already been matched with our operation."""
        held = self._held.get(operation)
        return (self._ahead.get(operation) if held is None else held.booked) not in (None, entry)

    def found(self, operation: str, entry: str) -> None:
        """Record that an unmatched entry belongs to our operation, under another id or at another time: the operation,
        added already or later, does not count as missing."""
        held = self._held.get(operation)
        if held is None:
            self._ahead.setdefault(operation, entry)
        elif held.booked is None:
            held.booked = entry

    def lacking(self, listed_until: datetime | None) -> list[Counted]:
        """Remove the operations that should have been listed by now, and return the missing ones. `listed_until`: how
        far the bank's list was read; None: to its end."""
        # The list has ended, or passed these by the margin: their entries cannot come any more.
        gone = [
            operation
            for operation, held in self._held.items()
            if listed_until is None or held.counted.latest + MARGIN <= listed_until
        ]
        over = [self._held.pop(operation) for operation in gone]
        return [each.counted for each in over if each.booked is None and self._is_judged(each.counted)]

    def waits(self) -> bool:
        """Return whether an operation still waits for its entry."""
        return any(self._is_wanted(held) for held in self._held.values())

    def judged_until(self, listed_until: datetime) -> datetime:
        """Return the moment before which everything is judged: an interrupted comparison can resume there."""
        # The oldest unmatched operation stops it: a resumed run must see that one again.
        wanted = (held.counted.began for held in self._held.values() if self._is_wanted(held))
        return max(self._begin, min((listed_until - MARGIN, self._end, *wanted)))

    def _is_wanted(self, held: _Held) -> bool:
        return held.booked is None and self._is_judged(held.counted)

    def _is_judged(self, counted: Counted) -> bool:
        return counted.is_counted and self._begin <= counted.began < self._end
