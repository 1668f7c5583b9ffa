"""Reconciliation: comparison of a bank's list of one day with our records, and its results (docs/reconciliation.md)."""

from datetime import date, datetime, timedelta
from enum import StrEnum

import msgspec

from .. import ids
from ..accounts.accounts import Mode
from ..days import MOSCOW, moscow_day
from ..errors import shape_error
from .comparing import Booked, Counted, Difference, Standing, Subject


class ReconciliationStatus(StrEnum):
    """State of a day's comparison."""

    RUNNING = "running"
    """Started. If it was killed, the next request continues it."""
    AGREED = "agreed"
    DIFFERENT = "different"
    FAILED = "failed"
    """The bank gave no list, or only a part of it: earlier findings remain, and none is reported as gone."""


class Reconciliation(msgspec.Struct, frozen=True, kw_only=True):
    """The comparison of one day with one bank, by the credentials of one owner."""

    id: str
    bank: str
    day: str
    """`2026-11-22`: a day in Moscow."""
    owner: str
    """The empty string means the installation's own credentials."""
    status: ReconciliationStatus
    started_at: datetime
    run: int = 1
    """Number of the run over this day; continuing a run does not change it."""
    judged_until: datetime
    """Everything that began earlier has been compared."""
    finished_at: datetime | None = None
    entries: int = 0
    """Number of entries in the bank's list."""
    found: int = 0
    """Number of differences; at most MOST of them have rows."""
    counted: int | None = None
    """Number of our operations that the bank had to list when the run began; None until it is counted."""
    failure: str | None = None
    """Why it failed, for operators."""
    version: int = 0


class Discrepancy(msgspec.Struct, frozen=True, kw_only=True):
    """One difference between a bank's list and our records: open until a later comparison no longer finds it, or an
    operator settles it."""

    id: str
    bank: str
    day: str
    owner: str
    difference: Difference
    subject: Subject
    run: int
    """The last run that found it."""
    moment: datetime
    """When the operation began, according to the side that knows it; if both do, to the bank."""
    found_at: datetime
    operation: str | None = None
    entry: str | None = None
    """The bank's id; None: the bank does not have it."""
    of: str | None = None
    object_id: str | None = None
    """Our object; None: we do not have it."""
    account_id: str | None = None
    our_kopecks: int | None = None
    their_kopecks: int | None = None
    our_fee: int | None = None
    their_fee: int | None = None
    our_standing: Standing | None = None
    their_standing: Standing | None = None
    closed_at: datetime | None = None
    settled: bool = False
    """Whether an operator settled it; otherwise a later comparison no longer found it."""
    version: int = 0

    @property
    def mode(self) -> Mode:
        return Mode.LIVE


DIFFERENCE = "dif_"

MOST = 1000
"""Limit of rows of one comparison for each kind of difference. More are only counted: they mean a general problem, such
as a shop that another system uses, too."""

LATEST_RUN = timedelta(hours=1)
"""Time between the end of a day and its comparison, so that the margin has passed and slow operations have ended."""


def read_day(text: str) -> date:
    """Parse a day, such as `2026-11-22`. Raises: Refusal VALIDATION_ERROR."""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        day = date.min
    if day.isoformat() != text or not 2000 <= day.year < 2200:
        raise shape_error("day", "must be a day, such as 2026-11-22")
    return day


def comparable_from(day: date) -> datetime:
    """Return from when on a day may be compared."""
    return moscow_day(day)[1] + LATEST_RUN


def last_comparable(now: datetime) -> date:
    """Return the last day that may be compared."""
    return (now - LATEST_RUN).astimezone(MOSCOW).date() - timedelta(days=1)


def reconciliation_id(bank: str, day: str, owner: str) -> str:
    """Return the id of the row of a bank, day and owner; the rows of a bank are ordered by day."""
    return f"{bank}:{day}:{owner}"


_WHY_LONGEST = 500

GOES_ON = timedelta(days=1)
"""How long after its failure a comparison continues where it stopped."""


def started(
    before: Reconciliation | None, bank: str, day: date, owner: str, now: datetime, *, afresh: bool = False
) -> Reconciliation:
    """Return the comparison at its start: a run that is still open, or failed recently, continues; otherwise, and with
    `afresh`, a new one."""
    if before is not None and not afresh and (before.finished_at is None or _goes_on(before, now)):
        return msgspec.structs.replace(before, status=ReconciliationStatus.RUNNING, finished_at=None, failure=None)
    return Reconciliation(
        id=reconciliation_id(bank, day.isoformat(), owner),
        bank=bank,
        day=day.isoformat(),
        owner=owner,
        status=ReconciliationStatus.RUNNING,
        started_at=now,
        run=1 if before is None else before.run + 1,
        judged_until=moscow_day(day)[0],
        version=0 if before is None else before.version,
    )


def compared(row: Reconciliation, found: int, now: datetime) -> Reconciliation:
    """Return the finished comparison; `found` is the number of open differences."""
    status = ReconciliationStatus.DIFFERENT if found else ReconciliationStatus.AGREED
    return msgspec.structs.replace(row, status=status, found=found, finished_at=now, judged_until=_end_of(row))


def failed(row: Reconciliation, why: str, now: datetime) -> Reconciliation:
    """Return the comparison as failed, because the list was not available or incomplete."""
    return msgspec.structs.replace(row, status=ReconciliationStatus.FAILED, failure=why[:_WHY_LONGEST], finished_at=now)


def _end_of(row: Reconciliation) -> datetime:
    return moscow_day(date.fromisoformat(row.day))[1]


def _goes_on(before: Reconciliation, now: datetime) -> bool:
    ended = before.finished_at
    return before.status is ReconciliationStatus.FAILED and ended is not None and now - ended < GOES_ON


def discrepancy(
    of: Reconciliation, difference: Difference, ours: Counted | None, theirs: Booked | None, now: datetime
) -> Discrepancy:
    """Return the row of a difference, the same in every run. An entry that only the bank has, or has twice, is
    identified by the bank's id."""
    subject, operation, moment = _named(ours, theirs)
    is_theirs = theirs is not None and (difference is Difference.EXTRA or operation is None)
    name = theirs.id if theirs is not None and is_theirs else operation
    mine = None if difference is Difference.EXTRA else ours
    return Discrepancy(
        id=difference_id(of, difference, subject, name or ""),
        bank=of.bank,
        day=of.day,
        owner=of.owner,
        difference=difference,
        subject=subject,
        run=of.run,
        moment=moment,
        found_at=now,
        operation=operation,
        entry=None if theirs is None else theirs.id,
        of=None if ours is None else ours.of,
        object_id=None if ours is None else ours.object_id,
        account_id=None if ours is None else ours.account_id,
        our_kopecks=None if mine is None else mine.kopecks,
        their_kopecks=None if theirs is None else theirs.kopecks,
        our_fee=None if mine is None else mine.fee,
        their_fee=None if theirs is None else theirs.fee,
        our_standing=None if mine is None else mine.standing,
        their_standing=None if theirs is None else theirs.standing,
    )


def difference_id(of: Reconciliation, difference: Difference, subject: Subject, name: str) -> str:
    """Return the id of a difference about an operation or a bank's entry: the same on every day and in every run."""
    return ids.derived(DIFFERENCE, of.bank, of.owner, difference, subject, name)


def _named(ours: Counted | None, theirs: Booked | None) -> tuple[Subject, str | None, datetime]:
    if theirs is not None:
        return theirs.subject, theirs.operation, theirs.moment
    if ours is None:
        raise ValueError("a difference is about something")
    return ours.subject, ours.operation, ours.began


def found_again(before: Discrepancy, now_found: Discrepancy) -> Discrepancy:
    """Return the row of a difference that was found before: open since it was first found. If an operator settled it,
    it stays settled, unless its facts changed."""
    is_same = _facts(before) == _facts(now_found)
    stays = before.settled and is_same
    return msgspec.structs.replace(
        now_found,
        found_at=before.found_at if before.closed_at is None or stays else now_found.found_at,
        closed_at=before.closed_at if stays else None,
        settled=stays,
        version=before.version,
    )


def _facts(of: Discrepancy) -> tuple[object, ...]:
    return (
        *(of.entry, of.object_id, of.our_kopecks, of.their_kopecks, of.our_fee, of.their_fee),
        *(of.our_standing, of.their_standing),
    )


def gone(row: Discrepancy, now: datetime) -> Discrepancy:
    """Return the row closed, because a later comparison did not find it."""
    return msgspec.structs.replace(row, closed_at=now)
