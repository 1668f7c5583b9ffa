"""The comparisons of each night, by jobs: one that says what is to be compared, and one for each bank, owner and day
(docs/reconciliation.md "By itself, each night").

Simulators move no money: they are compared when somebody asks for it (`cambist reconcile`).
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
from ..schedule import FollowUp, pause_after, reschedule_at
from ..units import retrying

NIGHTLY = "reconcile.nightly"
"""The standing job."""
COMPARE = FollowUp("reconcile.day")
"""The job of one comparison; it goes once that is over."""

_AT = time(4)
"""In Moscow: what its banks booked of yesterday is there by then."""
_BACK = timedelta(days=7)
"""So far back days are made up for that no worker has compared, and compared again that have open differences."""
_LATE = timedelta(days=30)
"""So far back days are compared again of which something ended, or was heard of, after their comparison."""
_STRETCHES = 8
"""Of a comparison in one run of its job, so that other work has its turn."""
_TRIES = 12
"""Runs of a job whose bank gives no list, until the next night."""
_KEPT = timedelta(days=400)
_BATCH = 200


def first_night(ports: Ports) -> Job:
    """The standing job; a worker writes it when it starts (standing.py)."""
    now = ports.clock.now()
    return Job(id=NIGHTLY, kind=NIGHTLY, argument="", due=_next_night(now), created_at=now)


def _next_night(now: datetime) -> datetime:
    here = now.astimezone(MOSCOW)
    at = datetime.combine(here.date(), _AT, MOSCOW)
    return (at if at > here else at + timedelta(days=1)).astimezone(UTC)


async def begin_night(ports: Ports, job: Job) -> None:
    """Have everything compared that is due: the day that is over, days that were left out, days with open differences,
    and days of which something ended late."""
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
    """Days before the first comparison of all are nobody's concern."""
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
    from .reconciliation import ended_late  # here: only where a bank gives lists anything is compared

    compared = [row for day, row in by_day.items() if date.fromisoformat(day) not in due]
    return sorted({*due, *await ended_late(ports, bank, owner, compared)})


def _is_left(row: Reconciliation | None) -> bool:
    return row is None or row.status in (ReconciliationStatus.RUNNING, ReconciliationStatus.FAILED)


async def _have_compared(ports: Ports, name: str, now: datetime) -> None:
    async def work(unit: Unit) -> None:
        await COMPARE.keep(unit, name, now, now)

    await retrying(ports.storage, work, again_on=("jobs_id",))


async def compare_day(ports: Ports, job: Job) -> None:
    """The job of one comparison: some stretches of it. A bank that gives no list is asked again after growing pauses,
    and the next night; meanwhile operators see that the day could not be compared."""
    name, day, owner = job.argument.split(":", 2)
    due: datetime | None = None
    try:
        bank = ports.banks.named(name)
    except NotConfigured:
        bank = None
    if isinstance(bank, ReportingBank) and owner in bank.owners():
        from .reconciliation import reconcile_owner  # here: only where a bank gives lists anything is compared

        try:
            row = await reconcile_owner(ports, bank, owner, date.fromisoformat(day), stretches=_STRETCHES)
        except Refusal:
            # Somebody else has it in hand: his end is seen then.
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
    """Comparisons and closed differences of more than a year ago."""
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
