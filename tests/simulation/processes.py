"""The processes of the service in a world: each opens an app of its own over the one database, serves or works, is
killed between any two steps, and is started again by its supervisor."""

from typing import TYPE_CHECKING, Any

from cambist.frontends.app.compose import App
from cambist.frontends.app.notification_addresses import begin_receiving
from cambist.frontends.worker.loop import Worker
from cambist.ports.faults import Fault
from cambist.ports.storage import Storage
from tests.app_pool import LentApp
from tests.simulation.network import (
    HttpAnswer,
    NoAnswer,
    ProcessClock,
    ProcessIds,
    ProviderWay,
    StorageLine,
    through_asgi,
)
from tests.simulation.storage import FarStorage
from tests.simulation.strands import Strand

if TYPE_CHECKING:
    from tests.simulation.world import World


class Process:
    """One process of the service, through all its lives."""

    def __init__(self, world: "World", name: str, skew: float) -> None:
        self._world = world
        self.name = name
        self.skew = skew
        self.serves = name.startswith("api")
        self.lives = 0
        self.strand: Strand | None = None
        self.app: App | None = None
        self.asgi: LentApp | None = None
        self.wake_up: Any = None
        self.worker: Worker | None = None
        self.clock: ProcessClock | None = None
        self.pending: dict[int, Any] = {}
        """Requests that are under way here."""

    @property
    def is_up(self) -> bool:
        """Whether a balancer would send requests here. It does not notice yet that a process is frozen."""
        return self.asgi is not None

    def start(self) -> None:
        """Begin a new life."""
        world = self._world
        self.lives += 1
        self.strand = Strand(self.name, world.next_strand())
        self.strand.on_fuse = self.crash
        self.clock = ProcessClock(world.loop, self.skew)
        world.trace.tell(f"{self.name} starts")
        world.pace.started()
        task = world.loop.spawn(self.strand, self._live(self.clock))
        task.add_done_callback(lambda done: self._ended(done))

    async def _live(self, clock: ProcessClock) -> None:
        world, network = self._world, self._world.network
        way = ProviderWay(network, self.name, world.deliver, world.post_to)
        ids = ProcessIds(clock, world.chance.of(f"ids/{self.name}/{self.lives}"))
        line = StorageLine(network, self.name)
        async with world.app(clock, ids, way, lambda wake_up: self._opened(wake_up, line)) as app:
            await begin_receiving(app.settings, app.ports)
            self.app = app
            if self.serves:
                self.asgi = world.lend(app.ports)
                await world.loop.create_future()
            else:
                self.worker = Worker(app.ports, at_once=world.plan.slots, webhooks=world.plan.permits)
                await self.worker.work()

    async def _opened(self, wake_up: Any, line: StorageLine) -> Storage:
        self.wake_up = wake_up
        return FarStorage(self._world.database, line, lambda _: None, by_own_clock=self._world.plan.machine)

    def _ended(self, task: Any) -> None:
        """It ended by itself, so its supervisor restarts it."""
        fault = None if task.cancelled() else task.exception()
        self._world.trace.tell(f"{self.name} ended: {type(fault).__name__}")
        if fault is not None and not isinstance(fault, Fault):
            self._world.fault(f"a process ended by itself: {fault!r}")
        self._gone()
        self._world.network.soon(2.0, self.start)

    def crash(self, after: float | None = None) -> None:
        """Kill it between two steps; it is started again."""
        if self.strand is None:
            return
        self._world.trace.tell(f"{self.name} is killed")
        self._world.loop.kill(self.strand)
        self._world.counts["crashes"] += 1
        self._gone()
        self._world.network.soon(after if after is not None else self.restarts_after, self.start)

    restarts_after = 1.0

    def _gone(self) -> None:
        self.strand, self.app, self.asgi, self.wake_up, self.worker = None, None, None, None, None
        self._world.vigil.troubled()
        for pending in list(self.pending.values()):
            if not pending.done():
                pending.set_exception(NoAnswer())
        self.pending.clear()

    async def answer(self, method: str, path: str, headers: Any, body: bytes) -> HttpAnswer:
        """Let the process answer a request. Raises: NoAnswer if it dies meanwhile."""
        loop, asgi, strand = self._world.loop, self.asgi, self.strand
        if asgi is None or strand is None:
            raise NoAnswer
        answered = loop.create_future()
        number = loop.next_serial()
        self.pending[number] = answered

        async def work() -> None:
            answer = await through_asgi(asgi, method, path, headers, body)
            if not answered.done():
                answered.set_result(answer)

        task = loop.spawn(strand, work())

        def ended(done: Any) -> None:
            if not done.cancelled() and done.exception() is not None and not answered.done():
                answered.set_exception(done.exception())

        task.add_done_callback(ended)
        try:
            found: HttpAnswer = await answered
        finally:
            self.pending.pop(number, None)
        return found
