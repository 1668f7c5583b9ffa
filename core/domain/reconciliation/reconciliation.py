"""Reconciliation: a bank's own list of a day, compared with ours, and what was found (docs/reconciliation.md)."""

from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum

import msgspec

from .. import ids
from ..accounts.accounts import Mode
from ..days import MOSCOW
from ..errors import shape_error
from .comparing import Booked, Counted, Difference, Standing, Subject


class ReconciliationStatus(StrEnum):
    """How the comparison of a day stands."""

    RUNNING = "running"
    """Begun. One that was killed goes on when it is asked for again."""
    AGREED = "agreed"
    DIFFERENT = "different"
    FAILED = "failed"
    """The bank gave no list, or not all of it: what was found till then stands, and nothing is said to be gone."""


class Reconciliation(msgspec.Struct, frozen=True, kw_only=True):
    """The comparison of one day with one bank, by the credentials of one owner."""

    id: str
    bank: str
    day: str
    """`2026-11-22`: a day in Moscow."""
    owner: str
    """"": the installation's own credentials."""
    status: ReconciliationStatus
    started_at: datetime
    run: int = 1
    """Counts the runs over this day; one that goes on is the same."""
    judged_until: datetime
    """What began before is compared."""
    finished_at: datetime | None = None
    entries: int = 0
    """Of the bank's list."""
    found: int = 0
    """Differences, at most MOST of them as rows."""
    counted: int | None = None
    """Operations of ours that the bank had to have when the run began; None: an earlier version compared it."""
    failure: str | None = None
    """Why it failed, for operators."""
    version: int = 0


class Discrepancy(msgspec.Struct, frozen=True, kw_only=True):
    """One difference between a bank's list and ours: open until a later comparison finds it gone, or an operator has
    settled it."""

    id: str
    bank: str
    day: str
    owner: str
    difference: Difference
    subject: Subject
    run: int
    """The last run that found it."""
    moment: datetime
    """When the operation began, by whoever knows of it; by both: by the bank."""
    found_at: datetime
    operation: str | None = None
    entry: str | None = None
    """The bank's id; None: the bank has none."""
    of: str | None = None
    object_id: str | None = None
    """Our object; None: we have none."""
    account_id: str | None = None
    our_kopecks: int | None = None
    their_kopecks: int | None = None
    our_fee: int | None = None
    their_fee: int | None = None
    our_standing: Standing | None = None
    their_standing: Standing | None = None
    closed_at: datetime | None = None
    settled: bool = False
    """An operator has said that it is settled; else a later comparison found nothing of it any more."""
    version: int = 0

    @property
    def mode(self) -> Mode:
        return Mode.LIVE


DIFFERENCE = "dif_"

MOST = 1000
"""Rows of one comparison, of each kind of difference. More are counted: something is wrong as a whole then, such as a
shop that another system uses, too."""

LATEST_RUN = timedelta(hours=1)
"""After the end of a day: when its list is compared, so that the margin and what took some time are there."""


def read_day(text: str) -> date:
    """A day, as `2026-11-22`. Raises: Refusal VALIDATION_ERROR."""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        day = date.min
    if day.isoformat() != text or not 2000 <= day.year < 2200:
        raise shape_error("day", "must be a day, such as 2026-11-22")
    return day


def bounds(day: date) -> tuple[datetime, datetime]:
    """When a day begins and ends in Moscow, in UTC."""
    begin = datetime.combine(day, time(), MOSCOW).astimezone(UTC)
    return begin, begin + timedelta(days=1)


def comparable_from(day: date) -> datetime:
    """From when on a day may be compared."""
    return bounds(day)[1] + LATEST_RUN


def last_comparable(now: datetime) -> date:
    """The last day that may be compared."""
    return (now - LATEST_RUN).astimezone(MOSCOW).date() - timedelta(days=1)


def reconciliation_id(bank: str, day: str, owner: str) -> str:
    """The one row of a bank's day and owner; all of a bank follow one another by days."""
    return f"{bank}:{day}:{owner}"


_WHY_LONGEST = 500

GOES_ON = timedelta(days=1)
"""For so long after it failed a comparison goes on where it stood."""


def started(before: Reconciliation | None, bank: str, day: date, owner: str, now: datetime) -> Reconciliation:
    """The comparison as it begins: one that was left running, or failed of late, goes on; any other is made anew."""
    if before is not None and (before.finished_at is None or _goes_on(before, now)):
        return msgspec.structs.replace(before, status=ReconciliationStatus.RUNNING, finished_at=None, failure=None)
    return Reconciliation(
        id=reconciliation_id(bank, day.isoformat(), owner),
        bank=bank,
        day=day.isoformat(),
        owner=owner,
        status=ReconciliationStatus.RUNNING,
        started_at=now,
        run=1 if before is None else before.run + 1,
        judged_until=bounds(day)[0],
        version=0 if before is None else before.version,
    )


def compared(row: Reconciliation, found: int, now: datetime) -> Reconciliation:
    """The comparison that is over; `found`: so many differences are open."""
    status = ReconciliationStatus.DIFFERENT if found else ReconciliationStatus.AGREED
    return msgspec.structs.replace(row, status=status, found=found, finished_at=now, judged_until=_end_of(row))


def failed(row: Reconciliation, why: str, now: datetime) -> Reconciliation:
    """The comparison whose list was not given, or not all of it."""
    return msgspec.structs.replace(row, status=ReconciliationStatus.FAILED, failure=why[:_WHY_LONGEST], finished_at=now)


def _end_of(row: Reconciliation) -> datetime:
    return bounds(date.fromisoformat(row.day))[1]


def _goes_on(before: Reconciliation, now: datetime) -> bool:
    ended = before.finished_at
    return before.status is ReconciliationStatus.FAILED and ended is not None and now - ended < GOES_ON


def discrepancy(
    of: Reconciliation, difference: Difference, ours: Counted | None, theirs: Booked | None, now: datetime
) -> Discrepancy:
    """The row of a difference: the same at every run. What the bank has twice, or alone, is named by the bank's id."""
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
    """The id of what differs, of an operation or of a bank's entry: the same on whichever day and at every run."""
    return ids.derived(DIFFERENCE, of.bank, of.owner, difference, subject, name)


def _named(ours: Counted | None, theirs: Booked | None) -> tuple[Subject, str | None, datetime]:
    if theirs is not None:
        return theirs.subject, theirs.operation, theirs.moment
    if ours is None:
        raise ValueError("a difference is about something")
    return ours.subject, ours.operation, ours.began


def found_again(before: Discrepancy, now_found: Discrepancy) -> Discrepancy:
    """The row of a difference that was found before: open since it was first found. What an operator has settled stays
    so, unless it is another one by now."""
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
    """A later comparison found nothing of it."""
    return msgspec.structs.replace(row, closed_at=now)
