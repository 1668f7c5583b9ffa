"""Simulated failovers of the database server, by seeds: `nox -s simulate_failovers`.

A world has a primary with standbys that lag, or a synchronous one, and processes that commit, mark themselves, die,
leave and start. Primaries die, standbys are promoted, older states are restored, and former primaries come back. The
marks, the comparison and the quarantine are the service's own; only the statements are played
(adapters/storage/postgres/marks.py).

At every step: if the present server lacks a confirmed commit, no process may send money. In the end: if it lacks
nothing, and a process lived through the failover, the installation may not be held.
"""

import argparse
import asyncio
import logging
import random
import sys
from collections import Counter
from collections.abc import Sequence
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, Self, cast

import msgspec

from cambist.adapters.clock import VirtualClock
from cambist.adapters.ids import SeededIds
from cambist.adapters.storage.postgres import marks as statements
from cambist.adapters.storage.postgres.marks import Marks, follows
from cambist.adapters.vault.memory import MemoryVault
from cambist.core.domain.accounts.accounts import Account
from cambist.core.domain.installation import INSTALLATION, Installation
from cambist.core.domain.payments.payments import Payment
from cambist.core.usecases.common.encrypted import tag_hold
from cambist.core.usecases.common.quarantine import read_present
from cambist.core.usecases.installation import marking
from cambist.core.usecases.installation.failovers import OVERDUE_AFTER, FailoverWatch
from cambist.core.usecases.installation.marking import mark_anew
from cambist.ports.bundle import Ports
from cambist.ports.faults import Unavailable
from cambist.ports.fingerprints import Nowhere
from cambist.ports.witnesses import Witness

START = datetime(2026, 11, 28, 12, tzinfo=UTC)
STEPS = 60
SETTLES_IN = 2 * OVERDUE_AFTER + 15.0


class State(msgspec.Struct):
    """Everything that one server has. A standby has an earlier one."""

    installation: Installation | None = None
    commits: set[int] = msgspec.field(default_factory=set)
    marks: dict[str, dict[str, Any]] = msgspec.field(default_factory=dict)


class Server(msgspec.Struct, eq=False):
    """The primary, with all states since its start."""

    timeline: int
    log: list[State]

    @property
    def state(self) -> State:
        return self.log[-1]

    def change(self) -> State:
        """Begin the next state."""
        self.log.append(deepcopy(self.state))
        return self.state


class Process:
    """A process with its own memory: its marks, and what it has seen."""

    def __init__(self, world: "World") -> None:
        self.world = world
        self.marks = Marks()
        ports = SimpleNamespace(storage=self, vault=world.vault, clock=world.clock, ids=world.ids)
        self.watch = FailoverWatch(cast("Ports", ports), self, world)
        self.server: Server | None = None
        self.connections = 0

    # The part of a storage that quarantine and marks need.

    @property
    def process(self) -> str:
        return self.marks.process

    def location(self) -> str | None:
        return self.marks.examined()

    def follows(self, former: str, present: str) -> bool:
        return follows(former, present)

    def begin_anew(self) -> None:
        self.marks.begin_anew()

    async def now(self) -> datetime:
        return self.world.clock.now()

    async def mark(self) -> Sequence[Witness]:
        return await self.marks.mark(self._fetch)

    async def witnesses(self) -> Sequence[Witness]:
        return await self.marks.witnesses(self._fetch)

    def reached(self) -> Server:
        """Connect. A new connection learns where it leads."""
        server = self.world.primary
        if server is None:
            raise Unavailable("no primary")
        if server is not self.server:
            self.server, self.marks.location = server, place_of(server)
            self.connections += 1
        return server

    async def get(self, kind: type[Any], record_id: str, /) -> Any:
        return self.reached().state.installation

    def scan(self, kind: type[Any], **_: Any) -> Any:
        async def nothing() -> Any:
            for _ in ():
                yield []

        return nothing()

    def unit(self) -> Any:
        return Unit(self)

    async def _fetch(self, text: str, given: Sequence[Any]) -> Sequence[Any]:
        server = self.reached()
        if text is statements._WITNESSES:
            return [
                [name, row["number"], row["whole"] and not gaps(server.state, name), *row["rest"]]
                for name, row in sorted(server.state.marks.items())
                if "rest" in row
            ]
        state = server.change()
        if text is statements._LEAVE:
            state.marks[given[0]]["rest"][4] = True
            return []
        assert text is statements._MARK
        name, number, confirmed, slots, numbers = given
        missing = any(
            slot not in state.marks or state.marks[slot]["number"] < last or not state.marks[slot]["whole"]
            for slot, last in zip(slots, numbers, strict=True)
        )
        row = raised(state, name, number, confirmed)
        row["whole"] = row["whole"] and not missing
        since, accepted = (row["rest"][0], row["rest"][5]) if "rest" in row else (place_of(server), False)
        at = round((self.world.clock.now() - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(microseconds=1))
        row["rest"] = [since, place_of(server), at, self.world.is_synchronous, False, accepted]
        if self.world.chance.random() < 0.03:
            raise Unavailable("the answer is lost")
        return []

    def commit(self) -> None:
        """Commit something durable. It is confirmed, its answer is lost, or it is lost itself."""
        server, world = self.reached(), self.world
        mark = self.marks.of_commit()
        outcome = world.chance.choice(["confirmed"] * 8 + ["no answer", "refused"])
        if outcome != "refused":
            world.last += 1
            state = server.change()
            state.commits.add(world.last)
            if mark is not None:
                mark.added("UPDATE", ())
                raised(state, mark.slot, mark.number, mark.confirmed)
        if outcome == "confirmed":
            world.confirmed.add(world.last)
        self.marks.end(mark, done=outcome == "confirmed", again=outcome != "no answer")

    async def send(self) -> bool:
        """Return whether this process would send money now."""
        found = await read_present(cast("Any", self), self.world.vault)
        return found is not None and not found.is_held


class Unit:
    """A unit that writes the installation."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.written: list[Installation] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    def __getitem__(self, kind: type[Any]) -> Any:
        async def get(record_id: str) -> Installation | None:
            return self.process.reached().state.installation

        async def find(**_: Any) -> list[object]:
            return [object()] if kind in (Account, Payment) else []

        def write(record: Any) -> Any:
            if isinstance(record, Installation):
                self.written.append(record)
            return record

        return SimpleNamespace(get=get, find=find, save=write, add=write)

    async def commit(self, *, durable: bool = True) -> None:
        for record in self.written:
            self.process.reached().change().installation = record


def place_of(server: Server) -> str:
    return f"system 7 timeline {server.timeline:08X} table 5"


def raised(state: State, name: str, number: int, confirmed: int) -> dict[str, Any]:
    """Raise the row of a slot or a process as the statements do."""
    row = state.marks.setdefault(name, {"number": 0, "whole": True})
    row["whole"] = row["whole"] and row["number"] >= confirmed
    row["number"] = max(row["number"], number)
    return row


def gaps(state: State, name: str) -> bool:
    return any(not row["whole"] for slot, row in state.marks.items() if slot.startswith(f"{name}/"))


class World(Nowhere):
    """One seed's servers and processes. It is also what lies beside the database."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.clock = VirtualClock(START)
        self.ids = SeededIds(seed)
        self.vault = MemoryVault()
        self.is_synchronous = self.chance.random() < 0.6
        row = tag_hold(self.vault, Installation(id=INSTALLATION, mark="m", marked_at=START))
        self.primary: Server | None = Server(1, [State(installation=row)])
        row = msgspec.structs.replace(row, place=place_of(self.primary))
        self.primary.log = [State(installation=row)]
        self.timelines = 1
        self.last = 0
        self.confirmed: set[int] = set()
        self.processes: list[Process] = []
        self.died_at: list[float] = []
        self.former: list[Server] = []
        self.found: Counter[str] = Counter()
        self.wrong: list[str] = []

    async def place(self) -> str | None:
        return None if self.primary is None else place_of(self.primary)

    async def accept(self) -> None:
        assert self.primary is not None
        state = self.primary.change()
        for name, row in state.marks.items():
            if "rest" in row and (not row["whole"] or gaps(state, name) or row["rest"][1] != place_of(self.primary)):
                row["rest"][5] = True

    async def run(self) -> None:
        for _ in range(self.chance.randint(1, 4)):
            self.processes.append(Process(self))
        for _ in range(STEPS):
            await self._step()
        await self._settle("the end")

    async def _step(self) -> None:
        kinds = ["commit"] * 14 + ["pass"] * 8 + ["fail over"] * 2 + ["start", "leave", "die", "restore", "back"]
        kind = self.chance.choice(kinds)
        living = [process for process in self.processes if process.marks._is_on] or self.processes
        if kind == "commit" and living:
            for _ in range(self.chance.randint(1, 6)):
                self.chance.choice(living).commit()
        elif kind == "pass":
            await self._pass(self.chance.uniform(0.3, 3.0))
        elif kind == "start" and len(self.processes) < 5:
            self.processes.append(Process(self))
        elif kind in ("leave", "die") and len(self.processes) > 1:
            await self._end(self.chance.choice(self.processes), in_order=kind == "leave")
        elif kind == "fail over":
            await self._fail_over()
        elif kind == "restore" and self.chance.random() < 0.3:
            await self._restore()
        elif kind == "back" and self.former and self.chance.random() < 0.3:
            await self._come_back()
        await self._check()

    async def _end(self, process: Process, *, in_order: bool) -> None:
        self.processes.remove(process)
        if in_order:
            await process.marks.leave(process._fetch)
        else:
            self.died_at.append(self.clock.monotonic())

    def _promote(self, state: State) -> None:
        assert self.primary is not None
        self.former.append(self.primary)
        self.timelines += 1
        self.primary = Server(self.timelines, [deepcopy(state)])

    async def _fail_over(self) -> None:
        """The primary dies, perhaps with processes. Perhaps it happens twice in a row."""
        assert self.primary is not None
        lag = 0 if self.is_synchronous or self.chance.random() < 0.4 else self.chance.randint(0, 9)
        lived = [process for process in self.processes if process.watch._known]
        for process in [*self.processes]:
            if len(self.processes) > 1 and self.chance.random() < 0.1:
                await self._end(process, in_order=False)
        self._promote(self.primary.log[max(0, len(self.primary.log) - 1 - lag)])
        await self._check()
        if self.chance.random() < 0.2:
            await self._pass(self.chance.uniform(0.0, 2.0))
            more = 0 if self.is_synchronous else self.chance.randint(0, 2)
            self._promote(self.primary.log[max(0, len(self.primary.log) - 1 - more)])
            lag += more
        is_due = any(process in lived for process in self.processes)
        recently = [at for at in self.died_at if at > self.clock.monotonic() - 20]
        # A lost mark proves nothing, also where no confirmed commit is lost.
        covered = is_due and lag == 0 and (self.is_synchronous or not recently)
        await self._settle("a failover", needs_no_person=covered)

    async def _restore(self) -> None:
        """An operator restores an earlier state, which begins a timeline."""
        assert self.primary is not None
        self._promote(self.primary.log[self.chance.randrange(len(self.primary.log))])
        await self._settle("a restore")

    async def _come_back(self) -> None:
        """A former primary comes back on its own timeline, and the processes reach it."""
        self.primary = self.former[-1]
        await self._settle("a former primary")

    async def _pass(self, seconds: float) -> None:
        """Let time pass. Each process looks once a second, in any order, and commits meanwhile."""
        ends = self.clock.monotonic() + seconds
        while self.clock.monotonic() < ends:
            for process in self.chance.sample(self.processes, len(self.processes)):
                if self.chance.random() < 0.4:
                    process.commit()
                try:
                    await process.watch.look()
                except Unavailable:
                    continue
                await self._check()
            await self.clock.advance(self.chance.choice([1.0, 1.0, 1.0, 1.1]))

    @property
    def missing(self) -> set[int]:
        """Confirmed commits that the present primary lacks."""
        assert self.primary is not None
        return self.confirmed - self.primary.state.commits

    async def _check(self) -> None:
        if not self.missing:
            return
        is_former = self.primary in self.former
        for process in self.processes:
            # A new process that reaches a former primary cannot know better until another one has looked.
            is_new = process.connections < 2
            if not (is_former and is_new) and await process.send():
                self.wrong.append(f"{len(self.missing)} confirmed commits are missing, and money is sent")

    async def _settle(self, after: str, *, needs_no_person: bool = False) -> None:
        """Wait for the decision. Where it is a hold, an operator resumes with what is there."""
        await self._check()
        was_missing = bool(self.missing)
        await self._pass(SETTLES_IN)
        assert self.primary is not None
        row = self.primary.state.installation
        assert row is not None
        is_decided = row.is_held or row.place == place_of(self.primary)
        self.found[f"{after}: {'held' if row.is_held else 'goes on'}, {'lost' if was_missing else 'nothing lost'}"] += 1
        if not is_decided and self.processes:
            self.wrong.append(f"nobody decided after {after}")
        if row.is_held and needs_no_person and not was_missing:
            self.wrong.append(f"held needlessly after {after}")
        if row.is_held:
            operator = Process(self)
            await mark_anew(cast("Any", operator), self.vault, self, self.clock, self.ids, resuming=True)
            self.confirmed &= self.primary.state.commits
            await self._pass(3.0)
            row = self.primary.state.installation
            if row is None or row.is_held:
                self.wrong.append(f"held again after {after}")


def run(seed: int) -> World:
    """Run one world."""
    world = World(seed)

    async def live() -> bool:
        return True

    before = marking._has_live
    marking._has_live = lambda _: live()  # type: ignore[assignment]
    try:
        asyncio.run(world.run())
    finally:
        marking._has_live = before
    return world


def main() -> int:
    """Run the worlds, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--failovers", type=int, default=1000)
    given = parser.parse_args()
    logging.getLogger("cambist").setLevel(logging.CRITICAL + 1)
    found: Counter[str] = Counter()
    seed, wrong = given.seed, 0
    while sum(count for what, count in found.items() if what.startswith("a failover")) < given.failovers:
        world = run(seed)
        found.update(world.found)
        for what in dict.fromkeys(world.wrong):
            wrong += 1
            sys.stdout.write(f"seed {seed}: {what}\n")
        seed += 1
    sys.stdout.write(f"seeds {given.seed} to {seed - 1}, {wrong} wrong\n")
    for what, count in sorted(found.items()):
        sys.stdout.write(f"  {count:6} {what}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
