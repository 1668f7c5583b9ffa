"""What went back of one payment, by our notes and by what T-Bank shows; pure (docs/providers/tbank.md "Refunds").

T-Bank knows no key of ours for a refund, and lists none. All it shows is the payment: its status, what is left of it,
and the last refund's amount and error. So of one payment one refund is under way at a time, it is noted with what was
to be seen before it was sent, and its end is read off what is to be seen after. What cannot be told stays with an
operator.
"""

from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from ....ports.bank import RefundRequest, RefundState, RefundStatus
from ....ports.faults import OutcomeUnknown, Refused, Unavailable

QUIET = timedelta(hours=2)
"""Once nothing is to be seen of a refund for so long after it was sent without an answer, it never arrived. T-Bank ends
what it has taken within an hour."""
_LONG = timedelta(hours=1)
"""After so long a refund under way is asked for ever more seldom."""
_MOST = 100
"""Refunds of one payment."""
_SOON = 30.0
"""Seconds after which a refund under way is asked for, and another one of its payment may begin."""

PAID = "CONFIRMED"
PART = "PARTIAL_REFUNDED"
ALL = "REFUNDED"
BUSY = frozenset({"REFUNDING", "ASYNC_REFUNDING"})


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What T-Bank shows of a payment that was paid."""

    status: str
    kopecks: int | None
    """GetState's amount: what is left, as far as T-Bank lowers it."""
    last: int | None = None
    """GetQrState's amount: of the last refund."""
    code: str | None = None
    """GetQrState's: why the last refund failed."""

    def left_of(self, paid: int) -> int | None:
        """How much of what was paid is still there; None: that cannot be told."""
        if self.status == PAID:
            return paid
        if self.status == ALL:
            return 0
        if self.status == PART and self.kopecks is not None and 0 < self.kopecks < paid:
            return self.kopecks
        return None


class Stage(StrEnum):
    """How far a refund is, by what we know."""

    SENT = "sent"
    """It was about to be sent: T-Bank may have it."""
    TAKEN = "taken"
    """T-Bank has it under way."""
    DONE = "done"
    FAILED = "failed"


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One refund."""

    operation: str
    kopecks: int
    sent_at: datetime
    before: Seen
    stage: Stage = Stage.SENT
    failure: str | None = None

    @property
    def is_open(self) -> bool:
        return self.stage in (Stage.SENT, Stage.TAKEN)


class Book(msgspec.Struct, frozen=True, kw_only=True):
    """All refunds of one payment that we know of, the first first. One at most is open."""

    paid: int
    entries: tuple[Entry, ...] = ()
    closed_until: datetime | None = None
    """Until then T-Bank takes no refund of this payment: a limit of the payment system."""

    def entry(self, operation: str) -> Entry | None:
        return next((each for each in self.entries if each.operation == operation), None)

    @property
    def open(self) -> Entry | None:
        return next((each for each in self.entries if each.is_open), None)

    @property
    def gone(self) -> int:
        """Kopecks that went back for certain."""
        return sum(each.kopecks for each in self.entries if each.stage is Stage.DONE)

    def put(self, entry: Entry) -> "Book":
        """The book with this entry, new or in place of the one of its operation."""
        others = tuple(entry if each.operation == entry.operation else each for each in self.entries)
        known = self.entry(entry.operation) is not None
        return msgspec.structs.replace(self, entries=others if known else (*others, entry))

    def drop(self, operation: str) -> "Book":
        """The book without an operation that never came to anything."""
        return msgspec.structs.replace(
            self, entries=tuple(each for each in self.entries if each.operation != operation)
        )


def settled(book: Book, seen: Seen, now: datetime) -> Book:
    """The book after a look: what is open has ended, or never arrived, as far as that can be told."""
    entry = book.open
    if entry is None:
        return book
    if seen.status in BUSY:
        return book.put(msgspec.structs.replace(entry, stage=Stage.TAKEN))
    stage = _end(book, entry, seen)
    if stage is Stage.FAILED:
        return book.put(msgspec.structs.replace(entry, stage=stage, failure=seen.code or "unknown"))
    if stage is not None:
        return book.put(msgspec.structs.replace(entry, stage=stage))
    never_came = entry.stage is Stage.SENT and now >= entry.sent_at + QUIET and _is_untouched(book, entry, seen)
    return book.drop(entry.operation) if never_came else book


def _end(book: Book, entry: Entry, seen: Seen) -> Stage | None:
    """How an open refund ended, or None where nothing says so."""
    if seen.status == ALL:
        return Stage.DONE if book.gone + entry.kopecks == book.paid else None
    before, after = entry.before.left_of(book.paid), seen.left_of(book.paid)
    if before is not None and after is not None:
        if before - after == entry.kopecks:
            return Stage.DONE
        has_failed = seen.code is not None and (entry.stage is Stage.TAKEN or seen.code != entry.before.code)
        return Stage.FAILED if before == after and has_failed else None
    if seen.status != PART or seen.code is not None:
        return None
    # T-Bank does not lower the amount: only the last refund's own is left to go by.
    if entry.stage is Stage.TAKEN or entry.before.status == PAID:
        return Stage.DONE if seen.last in (entry.kopecks, None) else None
    return Stage.DONE if seen.last == entry.kopecks and entry.before.last not in (None, entry.kopecks) else None


def _is_untouched(book: Book, entry: Entry, seen: Seen) -> bool:
    before = entry.before.left_of(book.paid)
    return before is not None and before == seen.left_of(book.paid)


def unexplained(book: Book, seen: Seen) -> int | None:
    """Kopecks that went back without our knowing why: a refund that a restored database forgot, or one by hand in the
    cabinet. None: T-Bank does not show how much."""
    left = seen.left_of(book.paid)
    if left is not None:
        return book.paid - left - book.gone
    if seen.status == PART and not book.entries and seen.last is not None:
        return seen.last
    return None


def is_busy(book: Book, seen: Seen) -> bool:
    """Whether a refund is under way, so that no other one may begin."""
    return seen.status in BUSY or book.open is not None


def found(book: Book, request: RefundRequest, seen: Seen, now: datetime) -> tuple[Book, RefundState | None]:
    """How a refund stands, in a book that is `settled`; None: it never arrived, or was refused. One that waits for
    another one of its payment is PROCESSING, and is sent once it is None. One that the book forgot is taken over where
    all that is unexplained is just its amount.

    Raises: Unavailable where that cannot be told; an operator learns it from the cabinet.
    """
    entry = book.entry(request.operation)
    if entry is not None:
        return book, _state(entry, seen, now)
    if is_busy(book, seen):
        return book, _waiting(book, seen, now)
    extra = unexplained(book, seen)
    if extra == 0:
        return book, None
    if extra is None or extra != request.amount_kopecks:
        raise Unavailable("tbank: more or less went back than is known here, so nobody can tell of this refund")
    taken_over = Entry(operation=request.operation, kopecks=extra, sent_at=now, before=seen, stage=Stage.DONE)
    return book.put(taken_over), RefundState(status=RefundStatus.DONE)


def begun(book: Book, request: RefundRequest, seen: Seen, now: datetime) -> Book:
    """The book with a new refund, which may then be sent; the book is `settled`, and does not have it.

    Raises: Refused `amount`; Unavailable where it has to wait; OutcomeUnknown where it may have been sent before.
    """
    if is_busy(book, seen):
        raise Unavailable("tbank: another refund of the payment is under way", retry_after=_SOON)
    left, extra = seen.left_of(book.paid), unexplained(book, seen)
    if left is None or extra != 0:
        raise OutcomeUnknown("tbank: more or less went back than is known here: it may be this refund")
    if not 0 < request.amount_kopecks <= left:
        raise Refused("tbank: more than is left of the payment", reason="amount")
    if book.closed_until is not None and now < book.closed_until:
        wait = (book.closed_until - now).total_seconds()
        raise Unavailable("tbank: the payment system's limit of refunds", retry_after=wait)
    if len(book.entries) >= _MOST:
        raise Refused("tbank: too many refunds of one payment", reason="amount")
    return book.put(Entry(operation=request.operation, kopecks=request.amount_kopecks, sent_at=now, before=seen))


def _waiting(book: Book, seen: Seen, now: datetime) -> RefundState:
    """Raises: Unavailable where nobody can tell when the other one ends, so that an operator may end this one, too."""
    other = book.open
    if other is None or (now >= other.sent_at + QUIET and seen.status not in BUSY):
        raise Unavailable("tbank: another refund of the payment has no end", retry_after=_SOON)
    is_new = now < other.sent_at + _LONG
    return RefundState(status=RefundStatus.PROCESSING, check_after=2 * _SOON if is_new else _LONG.total_seconds())


def _state(entry: Entry, seen: Seen, now: datetime) -> RefundState:
    if entry.stage is Stage.TAKEN and seen.status not in BUSY:
        raise Unavailable("tbank: a refund that was taken shows no end")
    if entry.stage is Stage.SENT and now >= entry.sent_at + QUIET:
        raise Unavailable("tbank: what became of a refund without an answer cannot be told")
    wait = _SOON if now < entry.sent_at + _LONG else _LONG.total_seconds()
    return ended(entry) or RefundState(status=RefundStatus.PROCESSING, check_after=wait)


def ended(entry: Entry) -> RefundState | None:
    """The end of a refund, where the book has it."""
    if entry.stage is Stage.DONE:
        return RefundState(status=RefundStatus.DONE)
    if entry.stage is Stage.FAILED:
        return RefundState(status=RefundStatus.FAILED, failure=entry.failure or "unknown")
    return None
