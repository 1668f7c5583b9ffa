"""What a world needs of the Python process that it lives in, put back afterwards: chance by the seed, a worker's pace,
the log."""

import asyncio
import logging
import os
import random
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from cambist.frontends.worker import loop as worker_loop
from cambist.ports.faults import Fault


class Paces(NamedTuple):
    """How often an idle worker looks, in seconds: seldom while nobody asks for anything, because virtual nights are
    long. What is due wakes it at its time, and a hint at once; what this slows down is finding what was hinted at in
    vain, and what a worker had in hand that died."""

    busy: Mapping[str, float]
    quiet: Mapping[str, float]


OFTEN = Paces(
    {"SWEEP": 8.0, "WATCH": 3600.0, "STANDING_LOOK": 60.0, "TAKE_UP": 600.0},
    {"SWEEP": 300.0, "WATCH": 3600.0, "STANDING_LOOK": 3600.0, "TAKE_UP": 600.0},
)
SELDOM = Paces(
    {"SWEEP": 20.0, "WATCH": 3600.0, "STANDING_LOOK": 600.0, "TAKE_UP": 3600.0},
    {"SWEEP": 1800.0, "WATCH": 3600.0, "STANDING_LOOK": 36_000.0, "TAKE_UP": 36_000.0},
)


@contextmanager
def own_chance(seed: int) -> Iterator[None]:
    """Whoever asks the operating system for random bytes gets the seed's: nonces and tokens are none of a port's."""
    source = random.Random(f"urandom/{seed}")
    before = os.urandom
    os.urandom = source.randbytes
    try:
        yield
    finally:
        os.urandom = before


def pace(paces: Mapping[str, float]) -> None:
    """Have workers look so often from now on."""
    for name, value in paces.items():
        setattr(worker_loop, name, value)


@contextmanager
def own_pace() -> Iterator[None]:
    """Put a worker's pace back afterwards."""
    before = {name: getattr(worker_loop, name) for name in OFTEN.busy}
    try:
        yield
    finally:
        pace(before)


@contextmanager
def unlisted_tasks() -> Iterator[None]:
    """asyncio lists all tasks weakly, for whoever debugs: the ten thousand of a world, after which nobody asks."""
    listed: Any = asyncio.tasks._all_tasks  # type: ignore[attr-defined]
    listed.add = lambda task: None
    try:
        yield
    finally:
        del listed.add


class Hearing(logging.Handler):
    """Reads the log of the processes: what they could not explain (no fault of a port) is wrong, all else is quiet."""

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
