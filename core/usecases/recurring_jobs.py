"""Recurring jobs, which always exist and reschedule themselves. Without them no payment is settled and no row is
chained or deleted. Nothing else would show their absence, because a missing job is never late."""

import contextlib
import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, time, timedelta

from ...ports.bundle import Ports
from ...ports.faults import Conflict
from ...ports.jobs import Job
from ..domain.days import MOSCOW
from .accounts.request_pruning import PRUNE, first_pruning
from .common.schedule import FollowUp
from .ledger.ledger import EXTEND_CHAINS, first_extension
from .person_events import is_notifying
from .reconciliation.nightly import NIGHTLY, first_night
from .retention import RETAIN, first_retention
from .settlement.settlement import DAILY, first_settlement
from .webhooks.feed import TIDY, first_tidying

EXPIRE = "sandbox.expire"
"""Deletes old test data (sandbox/expiry.py)."""

DAILY_SUMS = "person.daily"
"""Starts the daily sums of accounts (people/notifying.py). It exists where people can be reached."""
DAILY_REPORTS = "report.daily"
"""Makes the registers of days that are over (reports/writing.py)."""
_REPORTS_AT = time(0, 20)
"""Time in Moscow. An entry that is written later belongs to the next day's register."""
DAILY_HEADS = "report.heads"
"""Signs the heads of days (reports/proofs.py)."""
_HEADS_AT = time(2)
"""Time in Moscow: the registers of the day are written by then."""
_DAILY_AT = time(8)
"""Time in Moscow: the hourly job has listed all movements of yesterday by then."""

RECURRING_JOBS: dict[str, Callable[[Ports], Job]] = {
    RETAIN: lambda ports: first_retention(ports.clock.now()),
    TIDY: first_tidying,
    EXTEND_CHAINS: first_extension,
    DAILY: first_settlement,
    NIGHTLY: first_night,
    PRUNE: first_pruning,
    DAILY_HEADS: lambda ports: Job(
        id=DAILY_HEADS, kind=DAILY_HEADS, argument="", due=ports.clock.now(), created_at=ports.clock.now()
    ),
    DAILY_REPORTS: lambda ports: Job(
        id=DAILY_REPORTS, kind=DAILY_REPORTS, argument="", due=ports.clock.now(), created_at=ports.clock.now()
    ),
    EXPIRE: lambda ports: Job(id=EXPIRE, kind=EXPIRE, argument="", due=ports.clock.now(), created_at=ports.clock.now()),
}
"""Functions that create a missing job, by its id."""

TELL_ALARMS = FollowUp("alarm.tell")
"""Sends alarms to one recipient (alarms/telling.py). A channel's job is recurring; a merchant's job exists only while
it is needed."""

log = logging.getLogger("cambist.jobs")


def next_daily_sums(now: datetime) -> datetime:
    """Return when the next daily sums start."""
    return _next(now, _DAILY_AT)


def next_daily_reports(now: datetime) -> datetime:
    """Return when the next days are closed."""
    return _next(now, _REPORTS_AT)


def next_daily_heads(now: datetime) -> datetime:
    """Return when the next heads are signed."""
    return _next(now, _HEADS_AT)


def _next(now: datetime, time_of_day: time) -> datetime:
    here = now.astimezone(MOSCOW)
    at = datetime.combine(here.date(), time_of_day, MOSCOW)
    return (at if at > here else at + timedelta(days=1)).astimezone(UTC)


def _first_daily_sums(ports: Ports) -> Job:
    now = ports.clock.now()
    return Job(id=DAILY_SUMS, kind=DAILY_SUMS, argument="", due=next_daily_sums(now), created_at=now)


def recurring_jobs(ports: Ports) -> Mapping[str, Callable[[Ports], Job]]:
    """Return all recurring jobs of this installation, including one for each alarm channel."""

    def telling(channel: str) -> Callable[[Ports], Job]:
        return lambda ports: TELL_ALARMS.first(channel, ports.clock.now(), ports.clock.now())

    daily = {DAILY_SUMS: _first_daily_sums} if is_notifying(ports) else {}
    return RECURRING_JOBS | daily | {TELL_ALARMS.id_of(channel): telling(channel) for channel in ports.alarms.channels}


async def start_recurring_jobs(ports: Ports) -> None:
    """Write the missing recurring jobs.

    Each is written by itself, so a failure does not stop the others. Raises: the first exception.
    """
    faults = []
    for job_id, make in recurring_jobs(ports).items():
        try:
            await _stand(ports, job_id, make)
        except Exception as fault:  # noqa: BLE001 - raised below
            faults.append(fault)
    if faults:
        raise faults[0]


async def _stand(ports: Ports, job_id: str, make: Callable[[Ports], Job]) -> None:
    async with ports.storage.unit() as unit:
        if await unit[Job].get(job_id) is None:
            unit[Job].add(make(ports))
            with contextlib.suppress(Conflict):  # another worker did at the same time
                await unit.commit()
                log.info("the recurring job %s is there now", job_id)


async def missing_recurring_jobs(ports: Ports) -> tuple[str, ...]:
    """Return the ids of the missing recurring jobs."""
    async with ports.storage.unit() as unit:
        return tuple([job_id for job_id in recurring_jobs(ports) if await unit[Job].get(job_id) is None])
