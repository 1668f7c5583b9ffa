"""Watches while nothing is in the way: then no job is in two hands, and nothing that is due waits.

Most of what a world checks is checked at its end, when all has healed. What is late, or done by two at once, and comes
right by itself is seen only while it lasts.
"""

from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from cambist.core.domain.webhooks.breaker import Breaker, endpoint_id
from cambist.core.domain.webhooks.events import Delivery, DeliveryStatus
from cambist.ports.jobs import Job
from tests.simulation.plan import EVENING, MORNING

if TYPE_CHECKING:
    from tests.simulation.world import World

EVERY = 10.0
"""Seconds between two looks."""
PROMPT = 60.0
"""Seconds after which what is due is late. A worker that was told nothing looks every 8 s."""
HEALS = 90.0
"""Seconds after a trouble in which its traces are gone: a lease of a worker that died, a claim that was lost."""
_LARGE = 5.0
"""Seconds by which clocks may be off for times to be compared."""


SPINS = 40
"""Commits in one second that write the very same jobs, which no work needs."""


class Vigil:
    """One world's."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._calm_from = 0.0
        self._seen: dict[str, float] = {}
        """Since when something waits."""
        self._told: set[str] = set()

    def troubled(self, seconds: float = 0.0) -> None:
        """Something befalls the world, for so long."""
        self._calm_from = max(self._calm_from, self._world.loop.time() + seconds + HEALS)

    async def watch(self) -> None:
        """Look now and then, while there is much to do."""
        world = self._world
        for began, ended in (EVENING, MORNING):
            await world.network.sleep(max(0.0, began - world.loop.time()))
            while world.loop.time() < ended:
                await world.network.sleep(EVERY)
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
            await self._judge_letters()
        await self._judge_jobs()

    def _judge_hands(self) -> None:
        """A job is in one worker's hands."""
        held: dict[Any, str] = {}
        for process in self._world.processes.values():
            for job in [] if process.worker is None else process.worker._jobs():
                mark = job.id, job.created_at
                other = held.setdefault(mark, process.name)
                if other != process.name:
                    self._tell(f"job {job.id} is in the hands of {other} and of {process.name}")

    async def _judge_jobs(self) -> None:
        """What is due is begun."""
        now = self._world.now()
        async with self._world.office.storage.unit() as unit:
            found = await unit[Job].find(limit=10_000)
        for job in found:
            # One whose worker lost the database on the way is free again when its lease ends, and no sooner.
            free_since = job.due if job.leased_until is None else max(job.due, job.leased_until)
            if free_since < now - timedelta(seconds=PROMPT):
                self._late(f"job {job.id}")

    async def _judge_letters(self) -> None:
        """What a receiver that does well was never told, it is told."""
        weather = self._world.plan.weather
        if weather.webhook_lost or weather.webhook_unanswered or weather.webhook_refused or weather.webhook_late:
            return
        waiting: dict[str, str] = {}
        async with self._world.office.storage.unit() as unit:
            for each in await unit[Delivery].find(status=DeliveryStatus.PENDING, attempts=0, limit=10_000):
                breaker = await unit[Breaker].get(endpoint_id(each.account_id, each.mode))
                if breaker is None or not breaker.failures:
                    waiting[each.id] = each.type
        for name in waiting:
            self._late(f"event {name}")
        for name in [name for name in self._seen if name.startswith("event ") and name[6:] not in waiting]:
            del self._seen[name]

    def _late(self, what: str) -> None:
        since = self._seen.setdefault(what, self._world.loop.time())
        waited = self._world.loop.time() - since
        if what.startswith("job ") or waited > PROMPT:
            self._tell(f"{what} is due and waits, though nothing is in its way")

    def _tell(self, what: str) -> None:
        if what not in self._told:
            self._told.add(what)
            self._world.fault(what)


class Spins:
    """Notices who commits the same again and again, without a pause: it comes to nothing, and looks well at the end."""

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
