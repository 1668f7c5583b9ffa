"""Holds storages against one another: `python -m tests.histories --histories 10000 --jobs 2` (`nox -s storages -- …`).
A history that two of them answer unlike is shortened and printed with the command that carries it out again.
"""

import argparse
import multiprocessing
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from tests.histories.batches import compared
from tests.servers import postgres_server

_BATCH = 250
"""Histories that share one opening of the storages; each storage keeps the text of all its queries."""


def main(given: list[str]) -> int:
    """1 where storages differ."""
    parser = argparse.ArgumentParser(prog="python -m tests.histories", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the first history, or the only one")
    parser.add_argument("--histories", type=int, default=1, help="so many")
    parser.add_argument("--steps", help="of the one history only these steps, as it was printed")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    asked = parser.parse_args(given)
    seeds = range(asked.seed, asked.seed + asked.histories)
    batches = [seeds[start : start + _BATCH] for start in range(0, len(seeds), _BATCH)]
    only = None if asked.steps is None else [int(number) for number in asked.steps.split(",")]
    began, done, failed, steps = time.monotonic(), 0, list[int](), 0
    fresh = multiprocessing.get_context("spawn")
    with (
        postgres_server() as server,
        ProcessPoolExecutor(asked.jobs, mp_context=fresh, max_tasks_per_child=1) as pool,
    ):
        for batch, (told, count) in zip(batches, pool.map(partial(compared, server, only), batches), strict=True):
            done, steps = done + len(batch), steps + count
            failed += told
            print(f"{done} of {len(seeds)} histories, {time.monotonic() - began:.0f} s", flush=True)
    took = time.monotonic() - began
    print(f"{done} histories from seed {asked.seed}, {steps} steps in {took:.0f} s; {len(failed)} differ: {failed}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
