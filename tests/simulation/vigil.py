"""Checks during fault-free periods: no job has two workers, and due work does not wait.

Most checks of a world run at its end, after recovery. Delays and double work that heal by themselves are visible only
while they last.
"""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from cambist.core.domain.webhooks.breaker import Breaker, endpoint_id
from cambist.core.domain.webhooks.delivery import FAST_BACKOFF
from cambist.core.domain.webhooks.events import Delivery, DeliveryStatus
from cambist.frontends.worker.loop import TAKE_UP
from cambist.ports.jobs import Job
from cambist.ports.storage import AtMost
from tests.simulation.plan import EVENING, MORNING

if TYPE_CHECKING:
    from tests.simulation.world import World

EVERY = 10.0
"""Seconds between two checks; three times as long in quiet worlds (plan.py: seldom)."""
PROMPT = 60.0
"""Seconds after which due work counts as late. A worker without a wake-up polls every 8 s."""
HEALS = 90.0
"""Seconds after a problem in which its traces are gone: a lease of a worker that died, a claim that was lost."""
_LARGE = 5.0
"""Seconds by which clocks may be off for times to be compared."""


SPINS = 40
"""Commits in one second that write the very same jobs, which no work needs."""


class Vigil:
    """The checks of one world while it runs."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._calm_from = 0.0
        self._seen: dict[str, float] = {}
        """Since when something waits."""
        self._passed: dict[tuple[str, int], datetime] = {}
        """When a job of a test clock, at a version, was first seen to be late."""
        self._told: set[str] = set()

    def troubled(self, seconds: float = 0.0) -> None:
        """Record that a fault affects the world for so long."""
        self._calm_from = max(self._calm_from, self._world.loop.time() + seconds + HEALS)

    async def watch(self) -> None:
        """Check at intervals, while work is done."""
        world = self._world
        for began, ended in (EVENING, MORNING):
            await world.network.sleep(max(0.0, began - world.loop.time()))
            while world.loop.time() < ended:
                await world.network.sleep(3 * EVERY if world.plan.seldom else EVERY)
                if self._is_calm:
                    await self._look()
                else:
                    self._seen.clear()

    @property
    def _is_calm(self) -> bool:
        world = self._world
        off = [abs(process.skew) for process in world.processes.values()]
        return world.loop.time() >= self._calm_from and max(off) <= _LARGE and not world.network.away

    async def _look(self) -> None:
        weather = self._world.plan.weather
        if not (weather.storage_lost or weather.storage_unanswered or weather.storage_late):
            self._judge_hands()
            self._judge_waiting({**await self._letters(), **self._unread()})
        await self._judge_jobs()

    def _judge_hands(self) -> None:
        """Check that a job has one worker. A job rescheduled between two claims counts as new work."""
        held: dict[Any, str] = {}
        for process in self._world.processes.values():
            for job in [] if process.worker is None else process.worker._jobs():
                other = held.setdefault((job.id, job.created_at, job.version), process.name)
                if other != process.name:
                    self._tell(f"job {job.id} is in the hands of {other} and of {process.name}, alike")
        for (job_id, created_at, version), name in held.items():
            other = held.get((job_id, created_at, version - 1), name)
            if other != name:
                self._tell(f"job {job_id} is in the hands of {other} and of {name}")

    async def _judge_jobs(self) -> None:
        """Check that due jobs start."""
        now = self._world.now()
        late = AtMost(now - timedelta(seconds=PROMPT))
        async with self._world.office.storage.unit() as unit:
            found = await unit[Job].find(due=late, limit=10_000, readable=True)
        passed: dict[tuple[str, int], datetime] = {}
        put_back = self._world.database.damage.put_back
        for job in found:
            # If the worker lost the database, its job is free only after the lease ends.
            free_since = job.due if job.leased_until is None else max(job.due, job.leased_until)
            # An unreadable job is back only after a process takes it up.
            free_since = max(free_since, put_back.get(job.id, free_since))
            if job.world is not None:
                # Its clock may just have jumped over it.
                key = job.id, job.version
                passed[key] = self._passed.get(key, now)
                free_since = max(free_since, passed[key])
            if free_since < now - timedelta(seconds=PROMPT):
                self._tell(f"job {job.id} is due and waits, though nothing is in its way")
        self._passed = passed

    def _judge_waiting(self, waiting: Mapping[str, float]) -> None:
        """Check that nothing waits much longer than its pause, in seconds."""
        for name, pause in waiting.items():
            self._late(name, pause)
        for name in [name for name in self._seen if name not in waiting]:
            del self._seen[name]

    def _unread(self) -> dict[str, float]:
        """Rows that are readable again: the next polling worker handles them."""
        return {f"{record_id} of {table}": TAKE_UP for table, record_id in self._world.database.damage.readable_again()}

    async def _letters(self) -> dict[str, float]:
        """Return the pending deliveries to healthy receivers, first attempts and retries."""
        world = self._world
        waiting: dict[str, float] = {}
        hang = {merchant.account.account_id for merchant in world.merchants if self._hangs(merchant.number)}
        async with world.office.storage.unit() as unit:
            for each in await unit[Delivery].find(status=DeliveryStatus.PENDING, limit=10_000, readable=True):
                breaker = await unit[Breaker].get(endpoint_id(each.account_id, each.mode))
                is_open = breaker is not None and breaker.is_open
                is_slow = each.attempts > len(FAST_BACKOFF)
                if not (is_open or is_slow or each.account_id in hang or each.event_id in world.database.spoilt):
                    backoff = FAST_BACKOFF[each.attempts - 1].total_seconds() if each.attempts else 0.0
                    waiting[f"event {each.id}, after {each.attempts} attempts,"] = backoff
        return waiting

    def _hangs(self, number: int) -> bool:
        return number in self._world.plan.victims or f"receiver {number}" in self._world.network.hanging

    def _late(self, what: str, pause: float) -> None:
        """`what` waits; `pause`: so long it may, and a little more."""
        since = self._seen.setdefault(what, self._world.loop.time())
        if self._world.loop.time() - since > pause + PROMPT:
            self._tell(f"{what} waits, though nothing is in its way")

    def _tell(self, what: str) -> None:
        if what not in self._told:
            self._told.add(what)
            self._world.fault(what)


class Spins:
    """Detects a program that commits the same change again and again without a pause: nothing results, and the end
    looks correct."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._second = 0
        self._same: Counter[str] = Counter()

    def note(self, hints: str) -> None:
        """A commit that wrote these jobs."""
        second = int(self._world.loop.time())
        if second != self._second:
            self._second = second
            self._same.clear()
        self._same[hints] += 1
        if self._same[hints] == SPINS:
            self._world.fault(f"{SPINS} commits in a second of {hints}")
