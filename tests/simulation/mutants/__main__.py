"""Run the mutants of table.py, each in its own process, seed by seed until a world notices it: `nox -s
simulate_mutants`; `python -m tests.simulation.mutants SUBSTRING…` runs those with the substring in their name. Results
are stored in build/slips.jsonl, and a new run continues where the last one ended.

The result of a noticed mutant is valid until its slip changes; that of a world that noticed nothing, until the slip or
the simulation changes. Worlds run in the order of their seeds, but worlds without the mutant's subject come last.
"""

import argparse
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

import msgspec

from tests.mutated import ROOT
from tests.simulation.drawing import drawn_plan
from tests.simulation.mutants.subjects import subject_of
from tests.simulation.mutants.table import MUTANTS
from tests.simulation.plan import Plan

SEEDS = 200
KEPT = ROOT / "build/slips.jsonl"
_NAMES = re.compile(r"\b[a-z]+_[0-9a-f]{8,}[\w/-]*|[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{32,64}|\+?\d{7,}")
_WIDTH = 110


class World(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a mutant in one world."""

    mutant: str
    slip: str
    """Digest of the edits."""
    simulation: str
    """Digest of the worlds' and checkers' own code."""
    commit: str
    seed: int
    fault: str | None
    """The first one; None: it noticed nothing."""
    cpu: float
    """Seconds."""


def main(given: list[str]) -> int:
    """Return 1 if a mutant survives."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.mutants", description=__doc__)
    parser.add_argument("parts", nargs="*", help="only those whose name has one of these")
    parser.add_argument("--jobs", type=int, default=1, help="worlds at once")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="of how many worlds one has to notice it")
    parser.add_argument(
        "--most", type=int, default=SEEDS, help="of these live so many now, of each mutant; others later"
    )
    parser.add_argument("--anew", action="store_true", help="try again what is known")
    parser.add_argument("--table", action="store_true", help="try none; print what is known, as the page has it")
    parser.add_argument("--kept", type=Path, default=KEPT, help="the file of what is known")
    asked = parser.parse_args(given)
    chosen = [each for each in MUTANTS if not asked.parts or any(part in each for part in asked.parts)]
    known = [] if asked.anew and not asked.table else read(asked.kept)
    if asked.table:
        print(as_table(known))
        return 0
    asked.kept.parent.mkdir(exist_ok=True)
    plans = {seed: drawn_plan(seed) for seed in range(asked.seeds)}
    survivors, cpu, worlds = list[str](), 0.0, 0
    for number, name in enumerate(chosen, 1):
        before = [each for each in known if each.mutant == name]
        lived = [] if noticed(before) else tried(name, plans, before, asked)
        cpu, worlds = cpu + sum(each.cpu for each in lived), worlds + len(lived)
        by = noticed([*before, *lived])
        survivors += [name] if by is None else []
        said = "SURVIVES" if by is None else f"seed {by.seed}: {_plain(by.fault or '')}"
        print(f"{number}/{len(chosen)} {name}\n    {said} ({sum(each.cpu for each in lived):.0f} s of CPU)", flush=True)
    print(f"{len(chosen)} mutants, {len(survivors)} survived; {worlds} worlds, {cpu:.0f} s of CPU at {_commit()}")
    return 1 if survivors else 0


def tried(name: str, plans: Mapping[int, Plan], before: Sequence[World], asked: argparse.Namespace) -> list[World]:
    """Let those worlds live that are not known, until one notices it. Raises: CalledProcessError where they
    cannot."""
    lived = {each.seed for each in before if each.simulation == SIMULATION}
    is_of = subject_of(name)
    seeds = sorted((seed for seed in plans if seed not in lived), key=lambda seed: (not is_of(plans[seed]), seed))[
        : asked.most
    ]
    if not seeds:
        return []
    command = [sys.executable, "-m", "tests.simulation.mutants.trying", name, str(asked.jobs), *map(str, seeds)]
    found, commit = list[World](), _commit()
    with (
        asked.kept.open("ab") as file,
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as trying,
    ):
        assert trying.stdout is not None
        assert trying.stderr is not None
        for line in trying.stdout:
            said = msgspec.json.decode(line)
            found.append(World(mutant=name, slip=slip_of(name), simulation=SIMULATION, commit=commit, **said))
            file.write(msgspec.json.encode(found[-1]) + b"\n")
            file.flush()
        faults = trying.stderr.read()
    if trying.returncode or not found:
        raise subprocess.CalledProcessError(trying.returncode, command[:5], stderr=faults)
    return found


def read(kept: Path) -> list[World]:
    """Read the stored results that are still valid for the current mutants."""
    if not kept.exists():
        return []
    rows = [msgspec.json.decode(line, type=World) for line in kept.read_bytes().splitlines()]
    return [each for each in rows if each.mutant in MUTANTS and each.slip == slip_of(each.mutant)]


def noticed(worlds: Iterable[World]) -> World | None:
    """The last that noticed it."""
    return next((each for each in reversed(list(worlds)) if each.fault), None)


def slip_of(name: str) -> str:
    """A digest of its edits."""
    return _digest(repr(MUTANTS[name]))


def as_table(known: Sequence[World]) -> str:
    """Return the results as the table of docs/reliability.md."""
    rows = ["| mutant | seed | first fault |", "|---|---|---|"]
    for name in MUTANTS:
        worlds = [each for each in known if each.mutant == name]
        by = noticed(worlds)
        quiet = len({each.seed for each in worlds})
        missing = f"not noticed yet, in {quiet} worlds" if quiet else "not tried yet"
        seed, fault = (str(by.seed), _plain(by.fault or "")) if by else ("", missing)
        rows.append(f"| {name} | {seed} | {fault} |")
    return "\n".join(rows)


def _plain(fault: str) -> str:
    """Return the fault in one line, without ids and folders."""
    text = (
        " ".join(_NAMES.sub("…", fault).split(" at /")[0].split()).replace("|", "/").replace("<", "(").replace(">", ")")
    )
    return text if len(text) <= _WIDTH else f"{text[:_WIDTH]}…"


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:12]


def _commit() -> str:
    found = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return found.stdout.strip() or "an unknown commit"


SIMULATION = _digest(
    "".join(
        each.read_text("utf-8") for each in [ROOT / "tests/invariants.py", *sorted(ROOT.glob("tests/simulation/*.py"))]
    )
)
"""Fingerprint of the current worlds."""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
