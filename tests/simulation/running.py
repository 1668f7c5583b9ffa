"""Run many worlds, some in parallel. Results are stored in a file, so that an interrupted run continues at the same
commit (`python -m tests.simulation --hours …`, `--sweep`, `--pairs`)."""

import gc
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from threading import Event
from typing import Any

import msgspec

from tests.simulation.parting import Told, live_together, together
from tests.simulation.plan import Plan
from tests.simulation.world import Outcome, live

_asked_to_end = Event()
"""Set by a signal. An exception from the signal handler would be lost during the cleanup of a world."""

EVERY = 30.0
"""Seconds between two lines of how far it is, at least."""


class Lived(msgspec.Struct, frozen=True, kw_only=True):
    """Stored result of a world."""

    commit: str
    world: str
    """Digest of its plan."""
    seed: int
    hours: float
    cpu: float
    """Seconds of CPU that it took."""
    faults: int
    is_alike: bool = False
    """Whether the result was copied from an equal world (parting.py)."""


class Kept:
    """The file of the worlds that lived at one commit."""

    def __init__(self, path: Path, commit: str | None) -> None:
        """With `commit` None, the tree matches no commit, and results are not stored."""
        self._path = path
        self._commit = commit
        lines = path.read_bytes().splitlines() if commit and path.exists() else []
        found = (msgspec.json.decode(line, type=Lived) for line in lines)
        self.worlds = {each.world: each for each in found if each.commit == commit}

    def note(self, outcome: Outcome, cpu: float) -> Lived:
        """A world has ended."""
        hours, faults = round(outcome.hours, 2), len(outcome.faults)
        lived = Lived(
            commit=self._commit or "",
            world=_digest(outcome.plan),
            seed=outcome.plan.seed,
            hours=hours,
            cpu=round(cpu, 2),
            faults=faults,
            is_alike=outcome.is_alike,
        )
        if self._commit:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("ab") as file:
                file.write(msgspec.json.encode(lived) + b"\n")
        return lived


class Run:
    """One command's worlds."""

    def __init__(self, plans: Sequence[Plan], kept: Kept) -> None:
        self._kept = kept
        known = {_digest(plan): plan for plan in plans}
        self.count = len(known)
        self.lived = [kept.worlds[each] for each in known if each in kept.worlds]
        """Stored results, including those of earlier runs."""
        self.left = [plan for each, plan in known.items() if each not in kept.worlds]
        self._began = self._told = time.monotonic()
        self._before = len(self.lived)

    def worlds(self, jobs: int) -> Iterator[Outcome]:
        """Run the remaining worlds, and yield the results in order."""
        for outcome, cpu in _lived(self.left, jobs):
            self.lived.append(self._kept.note(outcome, cpu))
            yield outcome
            if _asked_to_end.is_set():
                raise KeyboardInterrupt

    @property
    def took(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._began

    @property
    def hours(self) -> float:
        """Simulated."""
        return sum(each.hours for each in self.lived)

    @property
    def cpu(self) -> float:
        """Seconds of CPU."""
        return sum(each.cpu for each in self.lived)

    @property
    def alike(self) -> int:
        """Number of worlds whose result was copied from an equal one."""
        return sum(each.is_alike for each in self.lived)

    def progress(self) -> str | None:
        """Return the progress, when a line is due."""
        if time.monotonic() - self._told < EVERY:
            return None
        self._told = time.monotonic()
        done = len(self.lived) - self._before
        left = (self.count - len(self.lived)) * self.took / max(done, 1)
        each = self.cpu / max(len(self.lived) - self.alike, 1)
        rate = f"{done / max(self.took, 0.001) * 60:.0f} a minute, {each:.2f} s of CPU each, {left / 60:.0f} min left"
        return f"{len(self.lived)} of {self.count} worlds, {self.hours:.0f} h; {rate}"


def _digest(plan: Plan) -> str:
    return sha256(msgspec.json.encode(plan)).hexdigest()[:16]


def _lived(plans: Sequence[Plan], jobs: int) -> Iterator[Told]:
    if jobs <= 1:
        for group in together(plans):
            yield from _live(group)
        return
    os.environ["PYTHONHASHSEED"] = "0"
    with ProcessPoolExecutor(jobs, initializer=_begin) as pool:
        try:
            for lived in pool.map(_live, together(plans)):
                yield from lived
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _begin() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's is for the whole group; the parent ends it
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    gc.freeze()  # exclude the objects shared by worlds from garbage collection


def _live(plans: Sequence[Plan]) -> list[Told]:
    """Run the plans that one world can share."""
    if len(plans) > 1:
        return live_together(plans)
    began = time.process_time()
    outcome = live(plans[0])
    return [(outcome, time.process_time() - began)]


@contextmanager
def interruptible(told: Callable[[], object]) -> Iterator[None]:
    """Inside, SIGINT and SIGTERM end the work: `told` is called, and the process exits with 130."""

    def end(*_: Any) -> None:
        _asked_to_end.set()
        raise KeyboardInterrupt

    before = {each: signal.signal(each, end) for each in (signal.SIGINT, signal.SIGTERM)}
    _asked_to_end.clear()
    try:
        yield
    except KeyboardInterrupt:
        told()
        raise SystemExit(130) from None
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
