"""Nightly comparisons: a job that selects what to compare, and a job for each bank, owner and day
(docs/reconciliation.md "The nightly comparison").

Simulators move no money, so they are compared only on request (`cambist reconcile`).
"""

from datetime import UTC, date, datetime, time, timedelta

from ....ports.bundle import Ports
from ....ports.faults import NotConfigured
from ....ports.jobs import Job
from ....ports.reporting import ReportingBank
from ....ports.storage import Between, Unit
from ...domain.accounts.accounts import Mode
from ...domain.days import MOSCOW
from ...domain.errors import Refusal
from ...domain.reconciliation.reconciliation import (
    Discrepancy,
    Reconciliation,
    ReconciliationStatus,
    last_comparable,
    reconciliation_id,
)
from ..common.schedule import FollowUp, pause_after, reschedule_at
from ..common.units import retrying, unit_of_work

NIGHTLY = "reconcile.nightly"
"""Id of the recurring job that starts the night's comparisons."""
COMPARE = FollowUp("reconcile.day")
"""The job of one comparison; it ends with the comparison."""

_AT = time(4)
"""Time in Moscow at which banks have booked all of yesterday."""
_BACK = timedelta(days=7)
"""Period in which skipped days, and days with open differences, are compared again."""
_LATE = timedelta(days=30)
"""Period in which a day is compared again if an outcome or a report arrived after its comparison."""
_STRETCHES = 8
"""Time spans of the list that one run of the job compares, so that other jobs get their share of the worker."""
_TRIES = 12
"""Runs of a job whose bank gives no list, before it waits for the next night."""
_KEPT = timedelta(days=400)
_BATCH = 200


def first_night(ports: Ports) -> Job:
    """Return the recurring job; a worker writes it at start (recurring_jobs.py)."""
    now = ports.clock.now()
    return Job(id=NIGHTLY, kind=NIGHTLY, argument="", due=_next_night(now), created_at=now)


def _next_night(now: datetime) -> datetime:
    here = now.astimezone(MOSCOW)
    at = datetime.combine(here.date(), _AT, MOSCOW)
    return (at if at > here else at + timedelta(days=1)).astimezone(UTC)


async def begin_night(ports: Ports, job: Job) -> None:
    """Plan all comparisons that are due: yesterday, skipped days, days with open differences, and days with late
    outcomes.
    """
    now = ports.clock.now()
    last = last_comparable(now)
    for bank in ports.banks.of_mode(Mode.LIVE):
        if isinstance(bank, ReportingBank) and not bank.capabilities.simulated:
            for owner in bank.owners():
                for day in await _days(ports, bank, owner, last):
                    await _have_compared(ports, reconciliation_id(bank.name, day.isoformat(), owner), now)
    await _forget_old(ports, now)
    await reschedule_at(ports, job, _next_night(now), anew=True)


async def _days(ports: Ports, bank: ReportingBank, owner: str, last: date) -> list[date]:
    """Return the days to compare; never days before the very first comparison."""
    first, back = last - _LATE, last - _BACK
    name = bank.name
    span = Between(reconciliation_id(name, first.isoformat(), ""), reconciliation_id(name, last.isoformat(), "") + "~")
    async with ports.storage.unit() as unit:
        rows = await unit[Reconciliation].find(id=span, owner=owner, limit=_BATCH)
        by_day = {row.day: row for row in rows}
        opened = {
            day
            for number in range(_BACK.days)
            for day in [(back + timedelta(days=number)).isoformat()]
            if await unit[Discrepancy].total(day=day, bank=name, owner=owner, closed_at=None)
        }
    oldest = date.fromisoformat(min(by_day)) if by_day else last
    recent = [back + timedelta(days=number) for number in range(_BACK.days + 1)]
    due = {
        day
        for day in recent
        if day >= oldest and (day == last or day.isoformat() in opened or _is_left(by_day.get(day.isoformat())))
    }
    from .reconciliation import ended_late  # Import here: only installations whose bank gives lists compare anything.

    compared = [row for day, row in by_day.items() if date.fromisoformat(day) not in due]
    return sorted({*due, *await ended_late(ports, bank, owner, compared)})


def _is_left(row: Reconciliation | None) -> bool:
    return row is None or row.status in (ReconciliationStatus.RUNNING, ReconciliationStatus.FAILED)


@unit_of_work(again_on=("jobs_id",))
async def _have_compared(_: Ports, unit: Unit, name: str, now: datetime) -> None:
    await COMPARE.keep(unit, name, now, now)


async def compare_day(ports: Ports, job: Job) -> None:
    """Compare some time spans of one day (the job of a comparison). A bank that gives no list is asked again after
    growing pauses, and again the next night; meanwhile operators see that the day could not be compared.
    """
    name, day, owner = job.argument.split(":", 2)
    due: datetime | None = None
    try:
        bank = ports.banks.named(name)
    except NotConfigured:
        bank = None
    if isinstance(bank, ReportingBank) and owner in bank.owners():
        from .reconciliation import reconcile_owner  # Import here, as in `_days`.

        try:
            row = await reconcile_owner(ports, bank, owner, date.fromisoformat(day), stretches=_STRETCHES)
        except Refusal:
            # Another process runs this comparison. Check later how it ended.
            due = ports.clock.now() + pause_after(job.attempts)
        else:
            due = _comes_back(row, job, ports.clock.now())
            if due is not None and row.status is ReconciliationStatus.RUNNING:
                await reschedule_at(ports, job, due, anew=True)
                return
    await reschedule_at(ports, job, due)


def _comes_back(row: Reconciliation, job: Job, now: datetime) -> datetime | None:
    if row.status is ReconciliationStatus.RUNNING:
        return now
    if row.status is ReconciliationStatus.FAILED and job.attempts < _TRIES:
        return now + pause_after(job.attempts)
    return None


async def _forget_old(ports: Ports, now: datetime) -> None:
    """Delete comparisons and closed differences older than 400 days."""
    before = now - _KEPT

    async def work(unit: Unit) -> bool:
        rows = await unit[Reconciliation].find(
            started_at=Between(None, before), order="started_at", limit=_BATCH, readable=True
        )
        closed = await unit[Discrepancy].find(
            closed_at=Between(None, before), order="closed_at", limit=_BATCH, readable=True
        )
        for row in rows:
            unit[Reconciliation].remove(row)
        for each in closed:
            unit[Discrepancy].remove(each)
        return len(rows) == _BATCH or len(closed) == _BATCH

    while await retrying(ports.storage, work):
        pass
