"""One mutant, in a process of its own: `python -m tests.simulation.mutants.trying NAME JOBS SEED…` lets the worlds of
these seeds live on code that has the slip, in their order, until one notices it; a line of JSON for each.

Imports nothing of the package before the slip is in its place.
"""

import importlib
import json
import signal
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import closing
from multiprocessing import get_context

from tests.mutated import ROOT, Finder
from tests.simulation.mutants.table import MUTANTS

LIMIT = 120.0
"""Seconds of CPU after which a world counts as endless. A healthy one needs about 2."""


class _Endless(SystemExit):
    """Ends a world, whatever in it takes exceptions in."""


def main(given: Sequence[str]) -> None:
    name, jobs, *seeds = given
    sys.meta_path.insert(0, Finder(MUTANTS[name].applied(ROOT)))
    with closing(_lived([int(each) for each in seeds], int(jobs))) as lived:
        for seed, fault, cpu in lived:
            print(json.dumps({"seed": seed, "fault": fault, "cpu": round(cpu, 1)}), flush=True)
            if fault:
                break


def _lived(seeds: Sequence[int], jobs: int) -> Generator[tuple[int, str | None, float], None, None]:
    importlib.import_module("tests.simulation.world")  # once, for all forks
    if jobs <= 1:
        yield from map(live_one, seeds)
    else:
        with get_context("fork").Pool(jobs) as pool:  # at its end, worlds that were begun beyond are given up
            yield from pool.imap(live_one, seeds)


def live_one(seed: int) -> tuple[int, str | None, float]:
    """A world's first fault, and the CPU it took."""
    from tests.simulation.drawing import drawn_plan
    from tests.simulation.world import live

    began = time.process_time()
    signal.signal(signal.SIGVTALRM, _give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT)
    try:
        faults = live(drawn_plan(seed), until_wrong=True).faults
    except _Endless:
        faults = (f"the world has not ended after {LIMIT:.0f} s of CPU",)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return seed, next(iter(faults), None), time.process_time() - began


def _give_up(_signal: int, _frame: object) -> None:
    raise _Endless


if __name__ == "__main__":
    main(sys.argv[1:])
