"""Runs worlds: `python -m tests.simulation --seed 17` one, with its faults; `--hours 1000 --jobs 2` as many simulated
hours as wanted (`nox -s simulate -- …`). A seed that fails prints the command that replays it, and is shortened.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from zlib import crc32

import msgspec

from tests.simulation.drawing import drawn_plan
from tests.simulation.plan import ENDS, HOUR, Plan
from tests.simulation.running import Kept, Run, interruptible
from tests.simulation.sameness import HASH_SEEDS, unlike
from tests.simulation.shrinking import shortest
from tests.simulation.sweep import STORIES, paired, swept
from tests.simulation.world import Outcome, live

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "build/worlds.jsonl"
"""Results of worlds by commit. A new run continues where the last one ended."""
FOUND = {
    10_000: "jobs of a worker that died after the clock was set back",
    10_053: "a webhook whose timer fired before the clock was set back, and which is not due since",
    22_068: "a healthy receiver with a new secret, behind receivers that hang",
    30_597: "work that waited while the clock was set back just as the worker began",
    30_105: "an exchange whose key another request takes back",
}
"""Seeds of worlds that found a defect, and the state that the code did not handle."""
_NAMES = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{64}|\d+")


def main(given: list[str]) -> int:
    """Return 1 if a world fails."""
    asked = _asked(given)
    if asked.plan:
        return _one(msgspec.json.decode(Path(asked.plan).read_bytes(), type=Plan), asked)
    if asked.seed is not None and not asked.hours and not asked.seeds and not asked.same:
        return _one(drawn_plan(asked.seed), asked)
    if asked.same:
        return _same(range(asked.seed or 0, (asked.seed or 0) + asked.same))
    if asked.pairs:
        return _many(list(paired(asked.pairs, asked.sweep or 300, asked.scenario)), asked)
    if asked.sweep:
        return _many(list(swept(asked.sweep, asked.scenario, every=asked.every)), asked)
    first = asked.seed if asked.seed is not None else 0
    count = asked.seeds or round(asked.hours * HOUR / ENDS) or 1
    seeds = [*range(first, first + count), *(FOUND if asked.found else ())]
    return _many([drawn_plan(seed) for seed in seeds], asked)


def _asked(given: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="the world of this seed; with --hours or --seeds, the first one")
    parser.add_argument("--seeds", type=int, help="so many worlds")
    parser.add_argument("--hours", type=float, default=0.0, help="so many simulated hours")
    parser.add_argument("--found", action="store_true", help="and the worlds that once found a defect")
    parser.add_argument("--sweep", type=int, help="short stories, killed at each of so many steps (sweep.py)")
    parser.add_argument("--scenario", action="append", default=[], choices=STORIES, help="only this story; again: also")
    parser.add_argument("--every", type=int, default=1, help="of the steps every so manieth")
    parser.add_argument("--pairs", type=int, help="so many pairs of deaths in one story")
    parser.add_argument("--same", type=int, help="so many seeds, each in three processes: the same trace and database")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--plan", help="a file with a plan, as the shrinker writes it")
    parser.add_argument("--trace", help="a file for the trace, line by line")
    parser.add_argument("--no-shrink", action="store_true", help="leave what fails as it is")
    parser.add_argument("--anew", action="store_true", help="let worlds live again that lived at this commit")
    parser.add_argument("--first", action="store_true", help="end with the first world that fails")
    return parser.parse_args(given)


def _one(plan: Plan, asked: argparse.Namespace) -> int:
    outcome = live(plan, keeps=bool(asked.trace))
    if asked.trace:
        Path(asked.trace).write_text("\n".join(outcome.lines) + "\n", "utf-8")
    print(told(outcome))
    if outcome.faults and not asked.no_shrink and not asked.trace:
        shrink(outcome)
    return 1 if outcome.faults else 0


def _same(seeds: Sequence[int]) -> int:
    """Return 1 if a world differs in another process."""
    began, failed = time.monotonic(), []
    for seed in seeds:
        told = unlike(seed)
        if told:
            failed.append(seed)
            print("\n".join((f"seed {seed} is not one world:", *sorted(told))), flush=True)
    took = time.monotonic() - began
    print(f"{len(seeds)} seeds in {len(HASH_SEEDS)} processes each, {took:.0f} s at {_commit()}; {len(failed)} differ")
    return 1 if failed else 0


def _many(plans: Sequence[Plan], asked: argparse.Namespace) -> int:
    commit = None if asked.anew else _clean_commit()
    run, failed = Run(plans, Kept(KEPT, commit)), list[Outcome]()
    if run.lived:
        print(f"{len(run.lived)} of {run.count} worlds lived before, at {commit} ({KEPT})", flush=True)
    with interruptible(lambda: print(f"interrupted; the same command goes on. So far: {_summary(plans, run)}")):
        for outcome in run.worlds(asked.jobs):
            if outcome.faults:
                failed.append(outcome)
                print(told(outcome), flush=True)
                if asked.first:
                    break
            elif (said := run.progress()) is not None:
                print(said, flush=True)
        if not asked.no_shrink:
            for outcome in failed[:3]:
                shrink(outcome)
    print(_summary(plans, run))
    return 1 if any(each.faults for each in run.lived) else 0


def _summary(plans: Sequence[Plan], run: Run) -> str:
    failed = [str(each.seed) for each in run.lived if each.faults]
    alike = f" ({run.alike} as another one)" if run.alike else ""
    lived = f"{len(run.lived)} worlds{alike} from seed {plans[0].seed}, {run.hours:.0f} simulated hours at {_commit()}"
    return f"{lived}, {run.cpu:.0f} s of CPU, {run.took:.0f} s; {len(failed)} failed: {' '.join(failed) or '-'}"


def told(outcome: Outcome) -> str:
    """Describe the result of a world, with the command that repeats it."""
    digests = f"{outcome.digest} {outcome.database}"
    lines = [f"seed {outcome.plan.seed}: {len(outcome.faults)} faults, {outcome.hours:.0f} h, {digests}"]
    lines += [f"  {fault}" for fault in outcome.faults[:10]]
    if outcome.faults:
        lines.append(f"  again: {replay(outcome.plan)}")
    return "\n".join(lines)


def replay(plan: Plan) -> str:
    """The command that lets a world live again, with its trace. A plan that no seed draws is written down for it."""
    if plan != drawn_plan(plan.seed):
        file = _file(f"plan-{crc32(msgspec.json.encode(plan)):08x}.json")
        file.write_bytes(msgspec.json.encode(plan))
        return f"python -m tests.simulation --plan {file} --trace {file}.trace"
    return f"python -m tests.simulation --seed {plan.seed} --trace {_file(f'trace-{plan.seed}.txt')}"


def _file(name: str) -> Path:
    return Path(tempfile.gettempdir(), f"cambist-{name}")


def kinds_of(outcome: Outcome) -> set[str]:
    """The kinds of faults: their words, without ids and numbers."""
    return {_NAMES.sub("#", fault)[:60] for fault in outcome.faults}


def shrink(outcome: Outcome) -> Plan:
    """Find the shortest history with a fault of the first one's kind, and write it down."""
    wanted = _NAMES.sub("#", outcome.faults[0])[:60]
    short = shortest(outcome.plan, lambda plan: wanted in kinds_of(live(plan)))
    file = _file(f"plan-{short.seed}.json")
    file.write_bytes(msgspec.json.format(msgspec.json.encode(short)))
    print(f"  seed {short.seed}, shortest: {len(short.orders)} orders, {len(short.blows)} problems; {file}")
    print(f"  again: python -m tests.simulation --plan {file} --trace {_file(f'trace-{short.seed}.txt')}")
    return short


def _commit() -> str:
    return _git("rev-parse", "--short", "HEAD") or "an unknown commit"


def _clean_commit() -> str | None:
    """The tree's, where it is one's."""
    return None if _git("status", "--porcelain", "--untracked-files=no") else _git("rev-parse", "HEAD") or None


def _git(*given: str) -> str:
    return subprocess.run(["git", *given], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
