"""A made-up operation at a made-up provider, for tests of the engine: an errand that a carrier runs. The record of an
errand is stored as a page of an operation log that belongs to no other subject."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple

import msgspec

from cambist.core.usecases.common.schedule import FollowUp
from cambist.core.usecases.jobs import LEASE, Ended, run
from cambist.core.usecases.operations import engine
from cambist.core.usecases.operations.operation import Followed, Looked, Want
from cambist.ports.bundle import Ports
from cambist.ports.faults import Fault, NotSupported, Refused
from cambist.ports.jobs import Job
from cambist.ports.notes import ProviderNote
from cambist.ports.storage import Unit
from tests.apps import TestApp
from tests.crash_points import CrashPoint, Killed

ID = "errand:1"
OVER = ("failed", "given up", "lost")
PAUSE = timedelta(seconds=10)


class Page(msgspec.Struct, frozen=True):
    """Stored record of an errand."""

    status: str = "planned"
    attempt: int = 1
    effects: tuple[str, ...] = ()
    """Effects of the errand, in order."""


class Errand(NamedTuple):
    note: ProviderNote
    page: Page
    attempt: int
    """Number of the attempt concerned."""


class Carrier:
    """A provider whose calls go as the test says, and blow a fuse."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.knows: dict[str, str] = {}
        """Status of each operation at the provider."""
        self.done: Counter[str] = Counter()
        """How often each errand was executed; a repeated request does not count."""
        self.sends: list[tuple[type[Fault], bool]] = []
        """The faults of the next sends, and whether the carrier executes the errand in spite of the fault."""
        self.finds: list[type[Fault]] = []
        self.becomes = "done"
        self.fuse = CrashPoint(0, after=False)

    async def find(self, operation: str) -> str | None:
        self._call(f"find {operation}")
        await asyncio.sleep(0)
        if self.finds:
            raise self.finds.pop(0)("no")
        self._called()
        return self.knows.get(operation)

    async def send(self, operation: str) -> str:
        self._call(f"send {operation}")
        await asyncio.sleep(0)
        fault, does = self.sends.pop(0) if self.sends else (None, True)
        if does and operation not in self.knows:
            self.knows[operation] = self.becomes
            self.done[operation] += 1
        if fault is not None:
            raise fault("no")
        self._called()
        return self.knows[operation]

    def _call(self, what: str) -> None:
        self.calls.append(what)
        self.fuse.commits += 1
        if self.fuse.commits == self.fuse.at and not self.fuse.after:
            raise Killed

    def _called(self) -> None:
        if self.fuse.commits == self.fuse.at:
            raise Killed


class Errands(Followed[Errand, str, Carrier]):
    """Row of the errands. A test sets the fields that it wants to differ."""

    follow_up = FollowUp("errand.run")
    record = ProviderNote

    def __init__(self) -> None:
        self.carrier = Carrier()
        self.waits = 0
        """Number of preparations that find nothing to send yet."""
        self.marks_doubt = False
        self.sends_unseen = True
        self.gives_up = False
        self.window: timedelta | None = None
        """For how long after it was sent the carrier knows an errand by its id."""
        self.is_no_end = False
        """Whether a refusal is not final."""

    async def load(self, _ports: Ports, unit: Unit, object_id: str, /) -> Errand | None:
        note = await unit[ProviderNote].get(object_id)
        if note is None:
            return None
        page = msgspec.json.decode(note.body, type=Page)
        return Errand(note, page, page.attempt)

    async def of_operation(self, ports: Ports, unit: Unit, operation: str, /) -> Errand | None:
        object_id, _, attempt = operation.partition("#")
        found = await self.load(ports, unit, object_id)
        return None if found is None else found._replace(attempt=int(attempt))

    def operation(self, subject: Errand, /) -> str:
        return f"{subject.note.id}#{subject.attempt}"

    def wants(self, subject: Errand, /) -> Want:
        status = subject.page.status
        if status.startswith("planned"):
            return Want.PREPARE
        if status in OVER:
            return Want.NOTHING
        return Want.POLL if status == "done" else Want.SEND

    async def prepare(self, _ports: Ports, unit: Unit, subject: Errand, /) -> Errand:
        if self.waits:
            self.waits -= 1
            return subject if subject.page.status == "planned and waits" else _saved(unit, subject, "planned and waits")
        return _saved(unit, subject, "sending", "taken")

    def since(self, subject: Errand, /) -> datetime:
        return subject.note.created_at

    @asynccontextmanager
    async def at_provider(self, _ports: Ports, _subject: Errand, /) -> AsyncIterator[Carrier]:
        yield self.carrier

    async def find(self, _ports: Ports, provider: Carrier, subject: Errand, /) -> str | None:
        return await provider.find(self.operation(subject))

    async def send(self, _ports: Ports, provider: Carrier, subject: Errand, /) -> str:
        return await provider.send(self.operation(subject))

    def refused(self, _subject: Errand, _fault: Refused | NotSupported, /) -> str | None:
        return None if self.is_no_end else "failed"

    def unknown(self, _subject: Errand, /) -> str | None:
        return "doubt" if self.marks_doubt else None

    def may_send(self, _ports: Ports, _subject: Errand, /) -> bool:
        return self.sends_unseen

    def repeats_until(self, _ports: Ports, subject: Errand, /) -> datetime | None:
        return None if self.window is None else subject.note.created_at + self.window

    def given_up(self, _ports: Ports, _subject: Errand, /) -> str | None:
        return "given up" if self.gives_up else None

    async def apply(self, _ports: Ports, unit: Unit, subject: Errand, word: str, /) -> Errand:
        page = subject.page
        if subject.attempt != page.attempt or page.status in OVER:
            return subject
        if word == "doubt":
            return subject if "doubt" in page.effects else _saved(unit, subject, page.status, "doubt")
        moves = (page.status == "sending" and word in ("done", *OVER)) or (page.status, word) == ("done", "lost")
        return _saved(unit, subject, word, word) if moves else subject

    def next_status_poll(self, ports: Ports, subject: Errand, looked: Looked[Errand, str], /) -> datetime | None:
        return None if subject.page.status in ("done", *OVER) else ports.clock.now() + PAUSE * looked.asked


def _saved(unit: Unit, subject: Errand, status: str, *effects: str) -> Errand:
    page = msgspec.structs.replace(subject.page, status=status, effects=(*subject.page.effects, *effects))
    note = unit[ProviderNote].save(msgspec.structs.replace(subject.note, body=msgspec.json.encode(page)))
    return subject._replace(note=note, page=page)


class ErrandApp:
    """An app with one errand, and its job."""

    def __init__(self, app: TestApp) -> None:
        self.app = app
        self.ports = app.ports
        self.row = Errands()
        self.carrier = self.row.carrier

    async def planned(self, status: str = "planned", attempt: int = 1) -> None:
        """Write it down with its job, which is due."""
        now = self.app.clock.now()
        page = Page(status=status, attempt=attempt)
        async with self.ports.storage.unit() as unit:
            unit[ProviderNote].add(
                ProviderNote(id=ID, provider="carrier", body=msgspec.json.encode(page), created_at=now)
            )
            unit[Job].add(self.row.follow_up.first(ID, now, now))
            await unit.commit()

    async def page(self) -> Page:
        note = await self.ports.storage.get(ProviderNote, ID)
        assert note is not None
        return msgspec.json.decode(note.body, type=Page)

    async def job(self) -> Job | None:
        return await self.ports.storage.get(Job, self.row.follow_up.id_of(ID))

    async def claimed(self) -> Job:
        """The job, claimed as soon as it is due."""
        job = await self.job()
        assert job is not None
        await self.app.clock.advance(max(0.0, (job.due - self.app.clock.now()).total_seconds()))
        [found] = [each for each in await self.ports.storage.claim(100, LEASE) if each.id == job.id]
        return found

    async def run(self, job: Job | None = None, *, ports: Ports | None = None) -> Ended:
        """Do the job once, as a worker does."""
        handlers = {self.row.follow_up.kind: partial(engine.follow, self.row)}
        return await run(ports or self.ports, job or await self.claimed(), handlers)

    async def run_out(self) -> None:
        """Run the job until none is left."""
        for _ in range(20):
            if await self.job() is None:
                return
            await self.run()
        raise AssertionError("it does not come to an end")

    def asked(self) -> list[str]:
        """Return the requests that the carrier received, without the operation."""
        return [call.split()[0] for call in self.carrier.calls]
