"""One world: a database, several API and worker processes over it, banks, a chain, merchants and payers; all of it in
one deterministic event loop. `live(plan)` lets it live and judges what became of it."""

import asyncio
import gc
import logging
import traceback
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from cambist.adapters.storage.memory.memory import MemoryStorage
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.payments.payments import Payment
from cambist.frontends.app.compose import Adapters, App, open_app
from cambist.frontends.settings.settings import Settings, VaultKeys
from cambist.ports.bundle import Ports
from cambist.ports.clock import Clock
from cambist.ports.faults import Unreadable
from cambist.ports.jobs import Job
from cambist.ports.notifier import WebhookRequest
from cambist.ports.storage import R
from tests.app_pool import LentApp
from tests.simulation import checkers
from tests.simulation.beginning import begin_wishes, keep_office, make_merchants
from tests.simulation.clocks import Sandbox
from tests.simulation.deposits import OwnDeposits
from tests.simulation.endpoints import FurtherEndpoint
from tests.simulation.exchanges import Desk
from tests.simulation.explorer import OwnExplorer
from tests.simulation.files import FilesLink, OwnFiles
from tests.simulation.kyc import Registry
from tests.simulation.links import (
    BankLink,
    DepositsLink,
    ExplorerLink,
    FindingWalletLink,
    MarketLink,
    PostLink,
    VerifierLink,
    WalletLink,
)
from tests.simulation.loop import SimLoop
from tests.simulation.memberships import Club
from tests.simulation.merchants import Merchant
from tests.simulation.network import (
    BEGINNING,
    HttpAnswer,
    Network,
    NoAnswer,
    ProcessClock,
    ProviderWay,
    Trace,
    woken_up,
)
from tests.simulation.notifications import NotificationPost
from tests.simulation.operators import operate
from tests.simulation.outside import OwnChain, OwnMarket
from tests.simulation.plan import ENDS, FAULTS_END, Plan
from tests.simulation.problems import strike
from tests.simulation.processes import Process
from tests.simulation.proofs import Till
from tests.simulation.receivers import Receiver
from tests.simulation.remittances import RemittingBank
from tests.simulation.sameness import database_digest
from tests.simulation.storage import Database
from tests.simulation.strands import WORLD, Strand
from tests.simulation.surroundings import Hearing, Pace, no_threads, own_chance, own_pace, unlisted_tasks
from tests.simulation.verifier import OwnVerifier
from tests.simulation.vigil import Spins, Vigil
from tests.simulation.weather import Chance

BANKS = ("north", "south")
_SETTINGS = Settings(
    data_dir=Path("/nonexistent/cambist-simulation"),
    database_url="memory://",
    base_url="https://pay.example",
    allow_live_simulators=True,
    vault=VaultKeys(keys={1: bytes(32)}, current=1, pepper=bytes(32)),
)
COUNTED = (
    *("crashes", "requests", "webhooks", "payments", "refunds", "payouts", "subscriptions", "charges"),
    *("exchanges", "applicants", "rotations", "endpoints", "handovers", "rehearsals", "leaps", "passed over"),
    "journeys",
    "twice at once",
)
MOODS = ("refuses_invoices", "fails_refunds", "reverses_refunds", "fails_charges", "fails_remittances")
"""Fields of a plan that decide how banks behave."""
_INLINE = "LocalFiles.clean.<locals>.work"
"""Looks into a folder that is not there."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a world."""

    plan: Plan
    faults: tuple[str, ...]
    """Faults found; empty if none."""
    digest: str
    """The same for the same plan, always."""
    steps: int
    hours: float
    counts: dict[str, int]
    lines: tuple[str, ...] = ()
    is_alike: bool = False
    """Whether the result was copied from the world of the step before (parting.py)."""
    database: str = ""
    """A digest of the rows at the end, the same for the same plan."""


Parts = Callable[["World", Process], None]
"""Has worlds part where a process can be killed (parting.py)."""


class World:
    """Everything that a plan creates."""

    def __init__(self, plan: Plan, *, keeps: bool, parts: Parts | None = None) -> None:
        seed = f"world/{plan.seed}"
        self.plan = plan
        self.parts = parts
        self.chance = Chance(seed)
        self.loop = SimLoop(seed, shuffled=plan.shuffled)
        self.loop.inline.add(_INLINE)
        self.trace = Trace(self.loop, keeps=keeps)
        self.network = Network(self.loop, plan, self.chance, self.trace)
        self.counts: dict[str, int] = dict.fromkeys(COUNTED, 0)
        self.faults: list[str] = []
        self.wrong: asyncio.Future[None] = self.loop.create_future()
        """Done as soon as something is."""
        self._strands = 0
        self._apps: list[LentApp] = []
        clock = ProcessClock(self.loop, 0.0)
        self.clock: Clock = clock
        self.now: Callable[[], datetime] = clock.now
        self.beginning = BEGINNING
        self.database_clock = ProcessClock(self.loop, 0.0)
        self.database = Database(self.database_clock, self._wake_up, self.fault)
        soon = self.network.soon
        self.post = NotificationPost(self)
        told = self.post.notify
        self.banks = {name: RemittingBank(name, clock.now, soon, self.chance.of(name), told) for name in BANKS}
        for bank in self.banks.values():
            for mood in MOODS:
                setattr(bank, mood, getattr(plan, mood))
        self.chain = OwnChain("tron", clock.now, soon, self.chance.of("tron"), self.network.strikes)
        self.chain.signs_for = plan.signs_for
        self.deposits = OwnDeposits("deposits", clock.now, soon, self.chance.of("deposits"), self.network.strikes)
        self.explorer = OwnExplorer("explorer", clock.now, soon, self.chance.of("explorer"), self.network.strikes)
        self.verifier = OwnVerifier("verifier", clock.now, soon, self.chance.of("verifier"), told)
        self.files = OwnFiles()
        self.market = OwnMarket("market", clock.now, self.chance.of("market"))
        skews = dict(zip(plan.processes, plan.skews, strict=False))
        self.processes = {name: Process(self, name, skews.get(name, 0.0)) for name in plan.processes}
        self.merchants: list[Merchant] = []
        self.clubs: list[Club] = []
        self.desks: list[Desk] = []
        self.registries: list[Registry] = []
        self.sandboxes: list[Sandbox] = []
        self.tills: list[Till] = []
        self.endpoints: list[FurtherEndpoint] = []
        self.receivers: dict[str, Receiver] = {}
        self.abroad = MemoryStorage(clock)
        """The other cell of journeys."""
        self.vigil = Vigil(self)
        self.pace = Pace(self.loop, seldom=plan.seldom)
        self.spins = Spins(self)
        self.office: Ports

    def next_strand(self) -> int:
        self._strands += 1
        return self._strands

    def fault(self, what: str) -> None:
        """Report a fault."""
        self.trace.tell(f"WRONG: {what}")
        self.faults.append(what)
        if not self.wrong.done():
            self.wrong.set_result(None)

    def lend(self, ports: Ports) -> LentApp:
        """An HTTP face for an API process."""
        app = LentApp(ports)
        self._apps.append(app)
        return app

    @asynccontextmanager
    async def app(self, clock: Any, ids: Any, way: ProviderWay, opened: Any) -> AsyncIterator[App]:
        """An app of one process."""
        adapters = Adapters(
            banks={Mode.LIVE: [BankLink(bank, way) for bank in self.banks.values()]},
            rates=[MarketLink(self.market, way)],
            payouts=(FindingWalletLink if self.plan.wallet_finds else WalletLink)(self.chain, way),
            deposits=DepositsLink(self.deposits, way),
            chain=ExplorerLink(self.explorer, way),
            kyc=VerifierLink(self.verifier, way),
            files=FilesLink(self.files, way),
            storage=opened,
        )
        settings = msgspec.structs.replace(_SETTINGS, cell="c1") if self.plan.journeys else _SETTINGS
        async with open_app(settings, clock=clock, ids=ids, notifier=PostLink(way), adapters=adapters) as app:
            yield app

    # --- what passes between the parts -----------------------------------------------------------------------------

    async def _wake_up(self, jobs: Any) -> None:
        """Hints of a commit, to all workers."""
        hints: list[Job] = list(jobs)
        self.trace.tell(f"commit of {woken_up(hints)}")
        # An advance of a test clock runs the due work of many days within one second.
        if live := [job for job in hints if job.world is None]:
            self.spins.note(woken_up(live))
        for process in self.processes.values():
            if process.serves or process.name in self.network.apart or self.network.strikes("wake_up_lost"):
                continue
            hint = partial(self._hint, process, hints)
            if not self.network.strikes("wake_up_late"):
                self.network.soon(self.network.pause(0.002), hint)
                continue
            # Late, or on time and once more.
            chance = self.network.chance.of("wake_up_late")
            self.network.soon(chance.uniform(0.5, 9.0), hint)
            if chance.random() < 0.3:
                self.network.soon(self.network.pause(0.002), hint)

    def _hint(self, process: Process, hints: list[Job]) -> None:
        if process.wake_up is not None and process.strand is not None:
            self.loop.spawn(process.strand, process.wake_up(hints))

    async def read(self, kind: type[R], record_id: str) -> R | None:
        """Return the current record, as for a page. If it is unreadable, wait until it can be read."""
        while True:
            try:
                return await self.office.storage.get(kind, record_id)
            except Unreadable:
                await self.network.sleep(60.0)

    async def pay(self, payment_id: str, kopecks: int, *, when_asked: bool = False) -> None:
        """Let a payer pay the amount in the window, if any. `when_asked`: the payer is impatient, and pays again at
        each of the next three polls of the bank."""
        payment = await self.read(Payment, payment_id)
        if payment is None or payment.bank_reference is None:
            return
        bank, _, operation = payment.bank_reference.partition(":")
        if when_asked:
            self.banks[bank].paying_again[operation] = [kopecks] * 3
            return
        self.trace.tell(f"{kopecks} for {operation} at {bank}: {self.banks[bank].pay(operation, kopecks)}")

    def begin(self, work: Coroutine[Any, Any, Any]) -> Any:
        """A task of the world, whose failing fails the world."""
        task = self.loop.spawn(WORLD, work)

        def ended(done: Any) -> None:
            if not done.cancelled() and done.exception() is not None:
                self.fault(f"the world itself: {done.exception()!r}")
                logging.getLogger("simulation").error("the world itself", exc_info=done.exception())

        task.add_done_callback(ended)
        return task

    async def request(self, method: str, path: str, headers: Any, body: bytes) -> HttpAnswer:
        """A request to any API process that a balancer knows. Raises: NoAnswer."""
        up = [process for process in self.processes.values() if process.serves and process.is_up]
        self.counts["requests"] += 1
        if not up:
            raise NoAnswer
        process = self.network.chance.of("balancer").choice(up)
        if process.name in self.network.apart:
            await self.network.sleep(5.0)
            raise NoAnswer
        return await process.answer(method, path, headers, body)

    def post_to(self, webhook: WebhookRequest) -> int:
        """Count the webhook as posted to its receiver, and return the number of the receiver."""
        receiver = self.receivers[webhook.url]
        receiver.posted[webhook.headers["X-Webhook-Id"]] += 1
        return receiver.number

    def deliver(self, webhook: WebhookRequest) -> tuple[int, str]:
        """Hand a webhook to its receiver."""
        self.counts["webhooks"] += 1
        return self.receivers[webhook.url].take(webhook, self.now()), ""

    # --- its life --------------------------------------------------------------------------------------------------

    async def live(self) -> None:
        """Run from the first evening to the end."""
        strand = Strand("office", self.next_strand())
        opened = self.loop.create_future()
        office = self.loop.spawn(strand, keep_office(self, opened))
        self.office = await opened
        await make_merchants(self)
        self.pace.begin()
        for process in self.processes.values():
            process.start()
        await begin_wishes(self)
        for blow in self.plan.blows:
            self.network.soon(blow.at, partial(strike, self, blow))
        self.begin(operate(self))
        self.begin(self.vigil.watch())
        await self.network.sleep(FAULTS_END - self.loop.time())
        self.trace.tell("faults stop")
        for process in self.processes.values():
            self._calm(process)
        self.database_clock.skew = 0.0
        self.database.mend_spoilt()
        self.pace.calm()
        await self.network.sleep(ENDS - self.loop.time())
        self.trace.tell("the end")
        await checkers.judge(self, strand)
        del office

    def _calm(self, process: Process) -> None:
        process.skew = 0.0
        if process.clock is not None:
            process.clock.skew = 0.0

    def close(self) -> None:
        """Let everything go."""
        self.loop.dismiss()
        for app in self._apps:
            app.give_back()


async def _until_wrong(world: World) -> None:
    living = asyncio.ensure_future(world.live())
    await asyncio.wait((living, world.wrong), return_when=asyncio.FIRST_COMPLETED)
    if living.done():
        living.result()


def live(plan: Plan, *, keeps: bool = False, until_wrong: bool = False, parts: Parts | None = None) -> Outcome:
    """Let a world live by its plan. `keeps`: its trace, line by line; `until_wrong`: no longer than until something is,
    where it matters only whether."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        with own_chance(plan.seed), own_pace(), no_threads(), unlisted_tasks():
            world = World(plan, keeps=keeps, parts=parts)
            heard = Hearing(world.fault)
            try:
                with heard:
                    world.loop.run_until_complete(_until_wrong(world) if until_wrong else world.live())
            except Exception as broken:  # noqa: BLE001 - whatever ended the world is told with how to replay it
                where = traceback.extract_tb(broken.__traceback__)[-1]
                world.fault(f"{type(broken).__name__} at {where.name}:{where.lineno}: {broken}"[:2000])
            world.faults += [f"asked for {what}" for what in world.loop.refused]
            outcome = Outcome(
                plan=plan,
                faults=tuple(world.faults),
                digest=world.trace.digest,
                steps=world.loop.steps,
                hours=world.loop.time() / 3600,
                counts=world.counts,
                lines=tuple(world.trace.lines),
                database=database_digest(world.database),
            )
            with heard:
                world.close()
            return outcome
    finally:
        if collecting:
            gc.enable()
            gc.collect()
