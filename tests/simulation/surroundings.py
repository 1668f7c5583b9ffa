"""Settings of the Python process for a world, restored afterwards: randomness by the seed, a worker's pace, the log."""

import asyncio
import logging
import os
import random
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from cambist.adapters.queue import memory as memory_queue
from cambist.frontends.http.edge import kept
from cambist.frontends.worker import loop as worker_loop
from cambist.ports.faults import Fault
from tests.simulation.loop import SimLoop
from tests.simulation.plan import EVENING, MORNING

BUSY = {"SWEEP": 8.0, "WATCH": 3600.0, "RECURRING_POLL": 60.0, "TAKE_UP": 600.0}
QUIET = {"SWEEP": 300.0, "WATCH": 3600.0, "RECURRING_POLL": 3600.0, "TAKE_UP": 600.0}
"""Seconds between an idle worker's polls: long ones, because virtual nights are long. Due jobs and wake-ups still start
at once; only recovery from lost wake-ups is slower."""
_SELDOM = {"SWEEP": 1800.0, "WATCH": 36_000.0, "RECURRING_POLL": 36_000.0, "TAKE_UP": 36_000.0}
_OFTEN_FOR = 120.0
"""Seconds of frequent polls after a process has started; a dead worker's jobs are free again after 8."""


@contextmanager
def own_chance(seed: int) -> Iterator[None]:
    """Replace the operating system's random bytes by the seed's, because nonces and tokens come from no port."""
    source = random.Random(f"urandom/{seed}")
    before = os.urandom
    os.urandom = source.randbytes
    try:
        yield
    finally:
        os.urandom = before


class Pace:
    """How often idle workers look, through a world's life. `seldom`: often only after a process has started, where
    nothing but the end of one loses hints and leases; whatever is written wakes them when it is due, then."""

    def __init__(self, loop: SimLoop, *, seldom: bool) -> None:
        self._loop = loop
        self._seldom = seldom
        self._often_until = 0.0

    def begin(self) -> None:
        """The world begins."""
        if self._seldom:
            memory_queue._SOON = timedelta(days=2)
        for began, ended in () if self._seldom else (EVENING, MORNING):
            self._loop.outside(max(0.0, began - 600.0), lambda: _set(BUSY))
            self._loop.outside(ended + 900.0, lambda: _set(QUIET))

    def started(self) -> None:
        """A process has."""
        if self._seldom:
            _set(BUSY)
            self._often_until = self._loop.time() + _OFTEN_FOR
            self._loop.outside(_OFTEN_FOR, self._slacken)

    def _slacken(self) -> None:
        if self._loop.time() >= self._often_until:
            _set(_SELDOM)

    def calm(self) -> None:
        """End the faults."""
        if not self._seldom:
            _set(QUIET)


def _set(paces: Mapping[str, float]) -> None:
    for name, value in paces.items():
        setattr(worker_loop, name, value)


@contextmanager
def own_pace() -> Iterator[None]:
    """Put a worker's pace back afterwards."""
    before, soon = {name: getattr(worker_loop, name) for name in BUSY}, memory_queue._SOON
    try:
        yield
    finally:
        memory_queue._SOON = soon
        _set(before)


@contextmanager
def no_threads() -> Iterator[None]:
    """Replace threads by inline calls, because a world has no threads."""

    async def at_once(make: Callable[[], Any]) -> Any:
        return make()

    names = kept.__dict__
    before = names["to_thread"]
    names["to_thread"] = at_once
    try:
        yield
    finally:
        names["to_thread"] = before


@contextmanager
def unlisted_tasks() -> Iterator[None]:
    """Stop asyncio from listing all tasks weakly for debuggers: a world has ten thousand tasks, and no reader of the
    list."""
    listed: Any = asyncio.tasks._all_tasks  # type: ignore[attr-defined]
    listed.add = lambda task: None
    try:
        yield
    finally:
        del listed.add


class Hearing(logging.Handler):
    """Reads the log of the processes: unexplained errors (no fault of a port) are faults of the world, the rest is
    ignored."""

    def __init__(self, wrong: Callable[[str], None]) -> None:
        super().__init__(logging.ERROR)
        self._wrong = wrong
        self._before: tuple[int, bool] = (logging.NOTSET, True)

    def __enter__(self) -> None:
        log = logging.getLogger("cambist")
        self._before = log.level, log.propagate
        log.addHandler(self)
        log.setLevel(logging.ERROR)
        log.propagate = False
        logging.getLogger("asyncio").addFilter(_nothing)

    def __exit__(self, *_: object) -> None:
        log = logging.getLogger("cambist")
        log.removeHandler(self)
        log.setLevel(self._before[0])
        log.propagate = self._before[1]
        logging.getLogger("asyncio").removeFilter(_nothing)

    def emit(self, record: logging.LogRecord) -> None:
        fault = record.exc_info[1] if record.exc_info else None
        if fault is not None and not isinstance(fault, (Fault, TimeoutError)):
            where = traceback.extract_tb(fault.__traceback__)[-1]
            self._wrong(f"the log: {record.getMessage()}: {fault!r} at {where.filename}:{where.lineno}")


def _nothing(_: logging.LogRecord) -> bool:
    return False
