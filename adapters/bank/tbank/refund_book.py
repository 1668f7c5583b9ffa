"""Refund book of one payment, from our notes and T-Bank's data; pure (docs/providers/tbank.md "Refunds").

T-Bank has no idempotency key for refunds and does not list them. It shows only the payment: its status, the remaining
amount, and the last refund's amount and error. Therefore a payment has at most one refund in progress. The book records
the payment's state before the refund is sent, and derives the outcome from the state afterwards. If the outcome cannot
be derived, an operator decides.
"""

from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from ....ports.bank import RefundRequest, RefundState, RefundStatus
from ....ports.faults import OutcomeUnknown, Refused, Unavailable

QUIET = timedelta(hours=2)
"""If T-Bank shows no trace of a refund this long after it was sent without an answer, the refund never arrived. T-Bank
completes accepted refunds within an hour."""
_LONG = timedelta(hours=1)
"""After this time a refund in progress is polled less often."""
_MOST = 100
"""Maximum number of refunds of one payment."""
_SOON = 30.0
"""Seconds until the next poll of a refund in progress, or until another refund of the payment may start."""

PAID = "CONFIRMED"
PART = "PARTIAL_REFUNDED"
ALL = "REFUNDED"
BUSY = frozenset({"REFUNDING", "ASYNC_REFUNDING"})


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """State of a paid payment as T-Bank shows it."""

    status: str
    kopecks: int | None
    """Amount from GetState: the remaining amount, if T-Bank reduces it."""
    last: int | None = None
    """Amount from GetQrState: the last refund."""
    code: str | None = None
    """Error code from GetQrState: why the last refund failed."""

    def left_of(self, paid: int) -> int | None:
        """Return the amount that has not been refunded; None: T-Bank does not show it."""
        if self.status == PAID:
            return paid
        if self.status == ALL:
            return 0
        if self.status == PART and self.kopecks is not None and 0 < self.kopecks < paid:
            return self.kopecks
        return None


class Stage(StrEnum):
    """Progress of a refund, as far as we know it."""

    SENT = "sent"
    """About to be sent, so T-Bank may have it."""
    TAKEN = "taken"
    """T-Bank is processing it."""
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
    """All known refunds of one payment, oldest first. At most one is open."""

    paid: int
    entries: tuple[Entry, ...] = ()
    closed_until: datetime | None = None
    """Until then T-Bank accepts no refund of this payment, because of a limit of the payment system."""

    def entry(self, operation: str) -> Entry | None:
        return next((each for each in self.entries if each.operation == operation), None)

    @property
    def open(self) -> Entry | None:
        return next((each for each in self.entries if each.is_open), None)

    @property
    def gone(self) -> int:
        """Return the kopecks that were certainly refunded."""
        return sum(each.kopecks for each in self.entries if each.stage is Stage.DONE)

    def put(self, entry: Entry) -> "Book":
        """Add the entry, or replace the entry with the same operation."""
        others = tuple(entry if each.operation == entry.operation else each for each in self.entries)
        known = self.entry(entry.operation) is not None
        return msgspec.structs.replace(self, entries=others if known else (*others, entry))

    def drop(self, operation: str) -> "Book":
        """Remove the entry of an operation that was never executed."""
        return msgspec.structs.replace(
            self, entries=tuple(each for each in self.entries if each.operation != operation)
        )


def settled(book: Book, seen: Seen, now: datetime) -> Book:
    """Update the open entry from T-Bank's data: it ended, it is being processed, or it never arrived. If the data do
    not decide, leave it open."""
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
    """Derive how the open refund ended; None: the data do not decide."""
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
    # T-Bank does not reduce the payment's amount, so compare the last refund's amount.
    if entry.stage is Stage.TAKEN or entry.before.status == PAID:
        return Stage.DONE if seen.last in (entry.kopecks, None) else None
    return Stage.DONE if seen.last == entry.kopecks and entry.before.last not in (None, entry.kopecks) else None


def _is_untouched(book: Book, entry: Entry, seen: Seen) -> bool:
    before = entry.before.left_of(book.paid)
    return before is not None and before == seen.left_of(book.paid)


def unexplained(book: Book, seen: Seen) -> int | None:
    """Return the refunded kopecks that no entry explains. Causes are a restored database that lost a refund, or a
    manual refund in the cabinet. None: T-Bank does not show the refunded amount."""
    left = seen.left_of(book.paid)
    if left is not None:
        return book.paid - left - book.gone
    if seen.status == PART and not book.entries and seen.last is not None:
        return seen.last
    return None


def is_busy(book: Book, seen: Seen) -> bool:
    """Report whether a refund is in progress, so that no other one may start."""
    return seen.status in BUSY or book.open is not None


def found(book: Book, request: RefundRequest, seen: Seen, now: datetime) -> tuple[Book, RefundState | None]:
    """Return the refund's state from a `settled` book. None means that the refund never arrived or was refused.

    A refund that waits for another one of its payment is PROCESSING, and is sent once the result is None. A refund
    missing from the book is added as DONE if the unexplained amount equals its amount. Raises: Unavailable if the state
    cannot be derived; an operator checks it in the cabinet.
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
    """Add a new refund to the book, so that it may be sent. The book must be `settled` and not contain it.

    Raises: Refused `amount`; Unavailable if it has to wait; OutcomeUnknown if it may have been sent before.
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
    """Return PROCESSING while another refund of the payment is in progress. Raises: Unavailable if the other refund has
    no foreseeable end, so that an operator may end this one too."""
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
    """Return the final state of a refund, or None while it is open."""
    if entry.stage is Stage.DONE:
        return RefundState(status=RefundStatus.DONE)
    if entry.stage is Stage.FAILED:
        return RefundState(status=RefundStatus.FAILED, failure=entry.failure or "unknown")
    return None
