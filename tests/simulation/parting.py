"""Worlds that share their history until a process of the service is killed: the shared part runs once.

One world runs all plans that differ only in the step of their one crash. At each of these steps the Python process
forks; in the fork the process of the service is killed, and that world runs alone to its end. It equals the world that
its plan describes, byte for byte, because a world has no threads and no I/O. If a step changed nothing that outlives
the process, a crash after it equals one before, and does not run again.
"""

import asyncio
import gc
import os
import time
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

import msgspec

from tests.simulation.plan import Plan, Problem
from tests.simulation.world import Outcome, live

if TYPE_CHECKING:
    from tests.simulation.processes import Process
    from tests.simulation.world import World

_AT_ONCE = 100
"""Maximum number of plans of one world: their results are stored when all have ended."""

Told = tuple[Outcome, float]
"""Result of a world, and its seconds of CPU."""


def together(plans: Sequence[Plan]) -> Iterator[list[Plan]]:
    """The plans in their order, those together that one world can live."""
    for _, group in groupby(plans, _but_step):
        alike = sorted(group, key=lambda plan: plan.blows[0].steps if plan.blows else 0)
        for first in range(0, len(alike), _AT_ONCE):
            yield alike[first : first + _AT_ONCE]


def _but_step(plan: Plan) -> Plan:
    if len(plan.blows) != 1 or plan.blows[0].kind is not Problem.CRASH:
        return plan
    return msgspec.structs.replace(plan, blows=(msgspec.structs.replace(plan.blows[0], steps=0),))


def live_together(plans: Sequence[Plan]) -> list[Told]:
    """Let the plans of one world live, given by their steps."""
    parting = _Parting(plans)
    gc.disable()  # a collection in a fork that is about to end would copy all the memory that it visits
    try:
        outcome = live(plans[-1], parts=parting.begin)
        lived = msgspec.structs.replace(outcome, plan=parting.plan), time.process_time() - parting.began
        if parting.says is not None:
            with os.fdopen(parting.says, "wb") as pipe:
                pipe.write(msgspec.json.encode(lived))
    finally:
        if parting.says is not None:
            os._exit(0)
        gc.enable()
        gc.collect()
    # For steps that the process never reached, use the result of the last plan's world.
    return [*parting.told, *(_alike(lived, plan) for plan in parting.left if plan != lived[0].plan), lived]


def _alike(lived: Told, plan: Plan) -> Told:
    return msgspec.structs.replace(lived[0], plan=plan, faults=(), hours=0.0, is_alike=True), 0.0


def _silent(plan: Plan) -> Told:
    faults = ("the process of this world ended without a word",)
    return Outcome(plan=plan, faults=faults, digest="", steps=0, hours=0.0, counts={}), 0.0


class _Parting:
    """Fork points of a world. The parent process runs the last of the plans."""

    def __init__(self, plans: Sequence[Plan]) -> None:
        self.plan = plans[-1]
        """Plan of this process."""
        self.began = time.process_time()
        self.left = [*plans]
        """Plans whose step has not come yet."""
        self.told: list[Told] = []
        self.says: int | None = None
        """In a fork, the file descriptor for the world's result."""
        self._step = 0
        self._outside: Any = None

    def begin(self, world: "World", process: "Process") -> None:
        """Allow kills of the process from now on."""
        assert process.strand is not None
        process.strand.on_fuse = partial(self._stepped, world, process)
        process.strand.fuse = 1

    def _stepped(self, world: "World", process: "Process") -> None:
        assert process.strand is not None
        if self.left[0].blows[0].steps == self._step:
            plan = self.left.pop(0)
            before, self._outside = self._outside, _outside(world, process)
            if not self.left or (self._outside != before and self._is_fork(world, plan)):
                process.crash()
                return
            if self._outside == before:
                self.told.append(_alike(self.told[-1], plan))
        self._step += 1
        process.strand.fuse = 1

    def _is_fork(self, world: "World", plan: Plan) -> bool:
        """Fork. Return whether this is the fork, which runs this plan; the parent returns once the fork has ended."""
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.close(reading)
            asyncio._set_running_loop(world.loop)  # asyncio forgets it in another process
            self.plan, self.says, self.began = plan, writing, 0.0
            return True
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            said = pipe.read()
        os.waitpid(child, 0)
        self.told.append(msgspec.json.decode(said, type=Told) if said else _silent(plan))
        return False


def _outside(world: "World", process: "Process") -> Any:
    """Return the state that outlives the process. If a step leaves it equal, crashes before and after the step are the
    same. Reads of the database draw their duration from chance, which makes no difference."""
    strand, loop = process.strand, world.loop
    assert strand is not None
    timers = {number for _, number, timer, each in loop._timers if each is not strand and not timer.cancelled()}
    ready = sum(len(each.ready) for each in loop._live if each is not strand)
    return loop.time(), loop.steps - strand.steps, timers, ready, world.trace.told, world.database.changes
