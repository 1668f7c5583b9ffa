"""Correction of due times after the machine's clock was set back, for storages that use this clock.

While the clock was ahead, jobs and webhooks got due times from it. After it is set back, these times are in the future,
and nothing would run for as long as the clock was ahead. Setting a clock forward makes nothing late: leases end early,
and their workers renew them at once.
"""

import logging
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import msgspec

from ...ports.bundle import Ports
from ...ports.clock import Clock
from ...ports.jobs import Job
from ...ports.storage import AtLeast, AtMost, Between, Unit
from ..domain.accounts.accounts import Account, Mode
from ..domain.webhooks.breaker import Breaker
from ..domain.webhooks.delivery import AT_ONCE
from ..domain.webhooks.endpoints import EndpointKey
from ..domain.webhooks.events import Delivery, DeliveryStatus, EndpointDelivery
from .common.account_time import find_test_clock
from .common.units import retrying
from .jobs import LEASE
from .recurring_jobs import RECURRING_JOBS
from .webhooks.results import set_timer

STEP = timedelta(seconds=2)
"""Smallest clock change that is corrected. A smaller one delays nothing by more than this."""

_REACH = timedelta(hours=1)
"""Length of the longest retry pause. A due time later than this after the highest moment that the clock showed was set
before the clock went wrong, and stays."""
REPEATS = (1.0, 3.0, 6.0, 10.0, 15.0, 30.0)
"""Seconds after which the correction runs again, because work in flight may end with times from the old clock. Webhooks
take at most 10 s, provider calls 20 s."""
_BATCH = 200

log = logging.getLogger("cambist.clock")


class SetBack(msgspec.Struct, frozen=True):
    """A clock that was set back."""

    by: timedelta
    seen: datetime
    """Highest moment that the clock showed before."""
    again: bool = False
    """A correction has already run. Only later writes with due times up to that moment are left."""

    def put_right(self, due: datetime, now: datetime) -> datetime:
        """Return the corrected due time. Work due up to now stays due. A due time within the reach was most likely
        written while the clock was ahead, and running it too early does no harm."""
        if due <= now or due > self.seen + _REACH or (self.again and due <= self.seen - STEP):
            return due
        return now if due <= self.seen else max(due - self.by, now)

    def candidates(self, now: datetime) -> AtLeast | Between:
        """Return the due times to check."""
        return Between(max(self.seen - STEP, now), self.seen + _REACH) if self.again else AtLeast(now)

    def and_before(self, other: "SetBack | None") -> "SetBack":
        """Return this step combined with an earlier uncorrected one."""
        return self if other is None else SetBack(by=self.by + other.by, seen=max(self.seen, other.seen))


class ClockWatch:
    """Detects changes of the machine's clock by comparing it with the monotonic clock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began = self._beginning()

    def look(self) -> timedelta:
        """Return the change since the last call, forward or back. Zero for less than STEP."""
        began = self._beginning()
        step, self._began = began - self._began, began
        return step if abs(step) >= STEP else timedelta(0)

    def _beginning(self) -> datetime:
        """Return the wall time at the monotonic clock's zero."""
        return self._clock.now() - timedelta(seconds=self._clock.monotonic())


async def found_set_back(ports: Ports) -> SetBack | None:
    """Return the step if the clock was set back while no process ran. Signs of it are a job created in the future, and
    a job claimed before it was due. For the start of a process."""
    now = await ports.storage.now()
    seen = now
    written: dict[str, Any] = {"created_at": AtLeast(now + STEP)}
    taken: dict[str, Any] = {"due": AtLeast(now + STEP), "leased_until": AtMost(now + timedelta(seconds=LEASE))}
    for which in (written, taken):
        async for batch in ports.storage.scan(Job, batch=_BATCH, **which):
            async with ports.storage.unit() as unit:
                for job in batch:
                    ahead = await _ahead_of(unit, job)
                    if ahead is not None:
                        seen = max(seen, job.created_at - ahead, job.due if which is taken else seen)
    return SetBack(by=seen - now, seen=seen) if seen - now >= STEP else None


async def put_right(ports: Ports, step: SetBack) -> int:
    """Set jobs, webhooks and probes to the due times that they would have had with a correct clock. Return how many
    changed.

    It may be interrupted and repeated. Raises: exceptions of the storage.
    """
    # Webhooks come first, because timers read their due times.
    changed = await _webhooks(ports, step) + await _jobs(ports, step)
    if changed or not step.again:
        log.warning("the clock was set back by %s: %d jobs and webhooks are due accordingly", step.by, changed)
    return changed


async def _jobs(ports: Ports, step: SetBack) -> int:
    now = await ports.storage.now()
    later: dict[str, Any] = {"due": step.candidates(now)}
    held_long: dict[str, Any] = {"leased_until": AtLeast(now + timedelta(seconds=LEASE))}
    left: dict[str, Any] = {"due": AtLeast(now), "leased_until": AtMost(now)}
    changed = 0
    for which in (later, held_long, left):
        async for batch in ports.storage.scan(Job, batch=_BATCH, **which):
            changed += await retrying(ports.storage, partial(_do_in_time, ports, step, [job.id for job in batch]))
    return changed


async def _do_in_time(ports: Ports, step: SetBack, ids: list[str], unit: Unit) -> int:
    now = await ports.storage.now()
    changed = 0
    for job_id in ids:
        job = await unit[Job].get(job_id)
        ahead = None if job is None else await _ahead_of(unit, job)
        after = None if job is None or ahead is None else _of_now(ports, step, job, ahead, now)
        if after is not None:
            unit[Job].save(after)
            changed += 1
    return changed


def _of_now(ports: Ports, step: SetBack, job: Job, ahead: timedelta, now: datetime) -> Job | None:
    """Return the corrected job. None when it is correct, or a worker has it. `ahead`: offset of the job's test
    clock."""
    longest = now + timedelta(seconds=LEASE)
    if job.leased_until is not None and now < job.leased_until <= longest:
        return None
    # A worker claimed the job before it was due, and left it when the clock was set.
    is_left = job.leased_until is not None and job.leased_until <= now
    due, created_at = min(job.due, now) if is_left else step.put_right(job.due, now), job.created_at
    if created_at - ahead > now + STEP:  # created while the clock was ahead, so the correction is exact
        due, created_at = min(due, max(job.due - step.by, now)), created_at - step.by
    if job.id in RECURRING_JOBS:
        due = min(due, max(RECURRING_JOBS[job.id](ports).due, now))
    lease = None if job.leased_until is None or job.leased_until > longest else job.leased_until
    moment = None if job.moment is None else due + ahead
    after = msgspec.structs.replace(job, due=due, created_at=created_at, moment=moment, leased_until=lease)
    return None if after == job else after


async def _webhooks(ports: Ports, step: SetBack) -> int:
    """Correct retries of webhooks and probes of receivers, which use their account's time."""
    # Later runs do not reach the due times of accounts with a test clock ahead. These are checked once.
    later = step.candidates(await ports.storage.now())
    changed = 0
    for kind in (Delivery, EndpointDelivery):
        async for webhooks in ports.storage.scan(kind, batch=_BATCH, status=DeliveryStatus.PENDING, due=later):
            ids = [each.id for each in webhooks]
            work = partial(_send_in_time, ports, step, kind, ids)
            changed += await retrying(ports.storage, work, again_on=("jobs_id",))
    async for endpoints in ports.storage.scan(Breaker, batch=_BATCH, next_probe_at=later):
        changed += await retrying(ports.storage, partial(_probe_in_time, ports, step, [each.id for each in endpoints]))
    return changed


async def _send_in_time(ports: Ports, step: SetBack, kind: type[Delivery], ids: list[str], unit: Unit) -> int:
    changed, first = 0, dict[EndpointKey, datetime]()
    for delivery_id in ids:
        delivery = await unit[kind].get(delivery_id)
        if delivery is None or delivery.due is None or delivery.due <= AT_ONCE:
            continue
        ahead = await _ahead(unit, delivery.account_id, delivery.mode)
        now = await ports.storage.now() + ahead
        due = step.put_right(delivery.due - ahead, now - ahead) + ahead
        if due != delivery.due:
            unit[kind].save(msgspec.structs.replace(delivery, due=due))
            changed += 1
            if due > now:
                endpoint = EndpointKey.to(delivery)
                first[endpoint] = min(due, first.get(endpoint, due))
    # The timer that ran by the old clock is gone, although its deliveries are not due yet.
    for endpoint, due in first.items():
        with ports.clock.entered(await find_test_clock(unit, endpoint.account_id, endpoint.mode)):
            await set_timer(ports, unit, endpoint, due)
    return changed


async def _probe_in_time(ports: Ports, step: SetBack, ids: list[str], unit: Unit) -> int:
    changed = 0
    for endpoint in ids:
        breaker = await unit[Breaker].get(endpoint)
        if breaker is None or breaker.next_probe_at is None:
            continue
        ahead = await _ahead(unit, breaker.account_id, breaker.mode)
        probe_at = step.put_right(breaker.next_probe_at - ahead, await ports.storage.now()) + ahead
        if probe_at != breaker.next_probe_at:
            unit[Breaker].save(msgspec.structs.replace(breaker, next_probe_at=probe_at))
            changed += 1
    return changed


async def _ahead_of(unit: Unit, job: Job) -> timedelta | None:
    """Return the offset of the job's test clock. None while that clock is being advanced, because the advance corrects
    its jobs."""
    account = None if job.world is None else await unit[Account].get(job.world)
    clock = None if account is None else account.clock
    if clock is None:
        return timedelta(0)
    return None if clock.is_advancing else clock.ahead


async def _ahead(unit: Unit, account_id: str, mode: Mode) -> timedelta:
    """Return the offset of the account's own time."""
    account = await unit[Account].get(account_id) if mode is Mode.TEST else None
    return timedelta(0) if account is None or account.clock is None else account.clock.ahead
