"""What a bank booked beside what we count, told apart purely: so that every case is one row of a test
(docs/reconciliation.md "What is a difference").

Both lists come in the order of time, a stretch after the other, and neither is kept whole: a `Sweep` holds ours as long
as the bank's entry of it may still come.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

MARGIN = timedelta(minutes=30)
"""By how much the two may differ about when an operation began: clocks, and a creation that took some tries. So what
began at 23:59:59 is found in the bank's next day."""


class Subject(StrEnum):
    """What an operation at a bank moves."""

    PAYMENT = "payment"
    REFUND = "refund"
    PAYOUT = "payout"


class Standing(StrEnum):
    """How one side sees an operation."""

    OPEN = "open"
    DONE = "done"
    """The money moved."""
    FAILED = "failed"
    """It did not, or is back."""
    UNDONE = "undone"
    """Ours alone: it moved and came back, or the bank said both. Banks keep it as either."""


class Difference(StrEnum):
    """In what the two differ."""

    MISSING = "missing"
    """We count it, and the bank's list has not got it."""
    EXTRA = "extra"
    """The bank booked it, and we know nothing of it."""
    AMOUNT = "amount"
    FEE = "fee"
    STATE = "state"


class Booked(msgspec.Struct, frozen=True, kw_only=True):
    """An operation as the bank's list has it."""

    id: str
    subject: Subject
    standing: Standing
    moment: datetime
    """When the bank took it up."""
    kopecks: int
    operation: str | None = None
    reference: str | None = None
    """As it was given out, where one operation may have two payments there."""
    fee: int | None = None


class Counted(msgspec.Struct, frozen=True, kw_only=True):
    """An operation as we count it."""

    operation: str
    subject: Subject
    standing: Standing
    began: datetime
    """From when on the bank may have been asked for it."""
    ended: datetime | None = None
    """When we heard that the money had moved."""
    kopecks: int | None = None
    """What came, or went; None: the bank could not say how much."""
    fee: int | None = None
    """What the provider kept of it, where it said so."""
    reference: str | None = None
    """Of a payment: the bank's, as it was given out."""
    owner: str = ""
    """Whose credentials it went by."""
    of: str = ""
    """The kind of our object: `payment`, `refund`, `exchange`, `suspense`."""
    object_id: str = ""
    account_id: str | None = None
    is_compared: bool = True
    """Else it is of test mode: nobody compares that."""

    @property
    def is_counted(self) -> bool:
        """The bank must have it."""
        return self.standing in (Standing.DONE, Standing.UNDONE)

    @property
    def latest(self) -> datetime:
        """The latest moment at which the bank may have taken it up."""
        return self.began if self.ended is None else max(self.began, self.ended)


_D, _O, _F, _U = Standing.DONE, Standing.OPEN, Standing.FAILED, Standing.UNDONE

_AGREED = frozenset(((_D, _D), (_O, _O), (_F, _F), (_U, _D), (_U, _F)))
"""Ours and theirs."""


def differences(ours: Counted | None, theirs: Booked | None) -> tuple[Difference, ...]:
    """In what both differ about one operation; empty: in nothing that matters. Of an amount, a fee and a bank's id that
    one side does not tell nothing is said."""
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
    """The bank has another one under our operation: the one that we know has another reference."""
    is_second = None not in (ours.reference, theirs.reference) and ours.reference != theirs.reference
    return is_second or theirs.subject is not ours.subject


def _moves_money(theirs: Booked) -> bool:
    return theirs.standing is _D or (theirs.standing is _O and theirs.subject is not Subject.PAYMENT)


def matters(theirs: Booked) -> bool:
    """Whether it is worth asking what we know of an entry that is none of those that we count. An open payment waits
    for a payer and a failed one is nothing to anybody; what is open of the others leaves by itself."""
    return theirs.subject is not Subject.PAYMENT or theirs.standing is _D


def _agree(ours: Counted, theirs: Booked) -> bool:
    if theirs.subject is Subject.PAYMENT and theirs.standing is not _D:
        return not ours.is_counted
    return (ours.standing, theirs.standing) in _AGREED


class _Held:
    """One of ours, and the bank's entry of it once it came."""

    __slots__ = ("booked", "counted")

    def __init__(self, counted: Counted, booked: str | None) -> None:
        self.counted = counted
        self.booked = booked


class Sweep:
    """Ours of some hours, to be found in the bank's list: what began in `[begin, end)` is judged, what lies before and
    after only helps to find.

    It is given ours of a stretch of time (`hold`), then the bank's entries of that stretch (`match`), and tells then
    what the bank's list lacks (`lacking`). Its memory is that of a stretch and two margins.
    """

    def __init__(self, begin: datetime, end: datetime) -> None:
        self._begin = begin
        self._end = end
        self._held: dict[str, _Held] = {}
        self._ahead: dict[str, str] = {}
        """Entries that came long before ours was held, by operation."""

    def __len__(self) -> int:
        return len(self._held)

    def hold(self, counted: Iterable[Counted]) -> None:
        """Have these ready. One that is held already is left as it is."""
        for each in counted:
            if each.operation not in self._held:
                self._held[each.operation] = _Held(each, self._ahead.pop(each.operation, None))

    def match(self, booked: Booked) -> Counted | None:
        """Ours of an entry, where it is held by this name; a second entry of one operation is nobody's."""
        held = None if booked.operation is None else self._held.get(booked.operation)
        if held is None or held.booked not in (None, booked.id) or _is_another(held.counted, booked):
            return None
        held.booked = booked.id
        return held.counted

    def is_second(self, operation: str, entry: str) -> bool:
        """Whether another entry has come for an operation of ours."""
        held = self._held.get(operation)
        return (self._ahead.get(operation) if held is None else held.booked) not in (None, entry)

    def found(self, operation: str, entry: str) -> None:
        """An entry that found nothing is of this operation of ours all the same, by another name or at another time:
        held or not yet held, it is not missed."""
        held = self._held.get(operation)
        if held is None:
            self._ahead.setdefault(operation, entry)
        elif held.booked is None:
            held.booked = entry

    def lacking(self, listed_until: datetime | None) -> list[Counted]:
        """What should have been listed by now and was not; it is held no longer, nor is what was found. `listed_until`:
        how far the bank's list was read; None: there is no more of it."""
        gone = [
            operation
            for operation, held in self._held.items()
            if listed_until is None or held.counted.latest + MARGIN <= listed_until
        ]
        over = [self._held.pop(operation) for operation in gone]
        return [each.counted for each in over if each.booked is None and self._is_judged(each.counted)]

    def waits(self) -> bool:
        """Whether something is held that is to be found yet."""
        return any(self._is_wanted(held) for held in self._held.values())

    def judged_until(self, listed_until: datetime) -> datetime:
        """Everything that began before is judged: from here on the comparison may go on, if it is stopped now."""
        wanted = (held.counted.began for held in self._held.values() if self._is_wanted(held))
        return max(self._begin, min((listed_until - MARGIN, self._end, *wanted)))

    def _is_wanted(self, held: _Held) -> bool:
        return held.booked is None and self._is_judged(held.counted)

    def _is_judged(self, counted: Counted) -> bool:
        return counted.is_counted and self._begin <= counted.began < self._end
