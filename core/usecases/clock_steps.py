"""The machine's clock was set: what is due by it is put right (storages that go by the machine's clock).

While the clock was ahead, jobs and webhooks were given times that it then had. Set back, it leaves them in its future:
silence for as long as it was ahead. A clock that is set forward makes nothing late; its leases end early, and whoever
holds them renews them at once.
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
from .jobs import LEASE
from .standing import STANDING
from .test_clock import find_test_clock
from .units import retrying
from .webhooks.results import set_timer

STEP = timedelta(seconds=2)
"""Smaller changes of the clock are none: nothing is late by more than that for them."""

_REACH = timedelta(hours=1)
"""As long as the longest pause after which the same is tried again. What is due later than so after the highest moment
that the clock showed was set before it went wrong, and stays."""
REPEATS = (1.0, 3.0, 6.0, 10.0, 15.0, 30.0)
"""Seconds after which it is looked again: what was under way when the clock was set may end by what it showed before.
Webhooks take 10 s at most, calls of providers 20 s."""
_BATCH = 200

log = logging.getLogger("cambist.clock")


class SetBack(msgspec.Struct, frozen=True):
    """The clock was set back."""

    by: timedelta
    seen: datetime
    """The highest moment that it showed before."""
    again: bool = False
    """All was put right once; what is due up to that moment was written since."""

    def put_right(self, due: datetime, now: datetime) -> datetime:
        """When it is due that was to be at `due`. What would be due by now is; what comes within the reach was most
        likely written while the clock was ahead, and looked at too early does no harm."""
        if due <= now or due > self.seen + _REACH or (self.again and due <= self.seen - STEP):
            return due
        return now if due <= self.seen else max(due - self.by, now)

    def candidates(self, now: datetime) -> AtLeast | Between:
        """The due times that are looked at."""
        return Between(max(self.seen - STEP, now), self.seen + _REACH) if self.again else AtLeast(now)

    def and_before(self, other: "SetBack | None") -> "SetBack":
        """Both, where the other one is not put right yet."""
        return self if other is None else SetBack(by=self.by + other.by, seen=max(self.seen, other.seen))


class ClockWatch:
    """Notices that the machine's clock was set, by what no one sets: the time since some fixed moment."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began = self._beginning()

    def look(self) -> timedelta:
        """By how much it was set since the last look, forward or back; zero for less than STEP."""
        began = self._beginning()
        step, self._began = began - self._began, began
        return step if abs(step) >= STEP else timedelta(0)

    def _beginning(self) -> datetime:
        """What the clock would have shown at the fixed moment."""
        return self._clock.now() - timedelta(seconds=self._clock.monotonic())


async def found_set_back(ports: Ports) -> SetBack | None:
    """Whether it was set back while nobody looked, by what is stored: a job that was written in the future, or taken
    before it was due. For the start."""
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
    """Have jobs, webhooks and probes due when they would be, had the clock never been ahead; how many were not.

    May be broken off and done again. Raises: what the storage does.
    """
    # The webhooks first: timers look at them.
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
    """The job as it is to be; None where it is so, or in somebody's hands. Its test clock is so far `ahead`."""
    longest = now + timedelta(seconds=LEASE)
    if job.leased_until is not None and now < job.leased_until <= longest:
        return None
    # Taken before it was due, and left by whoever had it in hand when the clock was set.
    is_left = job.leased_until is not None and job.leased_until <= now
    due, created_at = min(job.due, now) if is_left else step.put_right(job.due, now), job.created_at
    if created_at - ahead > now + STEP:  # of the time when the clock was ahead, so it is told exactly
        due, created_at = min(due, max(job.due - step.by, now)), created_at - step.by
    if job.id in STANDING:
        due = min(due, max(STANDING[job.id](ports).due, now))
    lease = None if job.leased_until is None or job.leased_until > longest else job.leased_until
    moment = None if job.moment is None else due + ahead
    after = msgspec.structs.replace(job, due=due, created_at=created_at, moment=moment, leased_until=lease)
    return None if after == job else after


async def _webhooks(ports: Ports, step: SetBack) -> int:
    """Webhooks that are to be sent again, and probes of receivers that did not answer, go by their account's time."""
    # Those of accounts that are ahead lie beyond what is looked at later; they are looked at once.
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
    # A timer that rang by the clock of before is gone, and what it rang for is not due yet.
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
    """How far the job's test clock is ahead of the machine's time; None while that is being changed, which puts its
    jobs right by itself."""
    account = None if job.world is None else await unit[Account].get(job.world)
    clock = None if account is None else account.clock
    if clock is None:
        return timedelta(0)
    return None if clock.is_advancing else clock.ahead


async def _ahead(unit: Unit, account_id: str, mode: Mode) -> timedelta:
    """How far the account's own time is ahead of the machine's."""
    account = await unit[Account].get(account_id) if mode is Mode.TEST else None
    return timedelta(0) if account is None or account.clock is None else account.clock.ahead
