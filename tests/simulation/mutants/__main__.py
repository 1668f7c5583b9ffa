"""Tries the mutants of table.py, each on a copy of the tree, seed by seed until a world notices it:
`nox -s simulate_mutants`; `python -m tests.simulation.mutants SUBSTRING…` tries those whose name has it."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from tests.mutants import ROOT
from tests.simulation.mutants.slips import Slip
from tests.simulation.mutants.table import MUTANTS

SEEDS = 200
_LEFT_OUT = (
    ".git",
    ".venv",
    ".nox",
    "__pycache__",
    "*_cache",
    "node_modules",
    "cambist-data",
    "*.db",
    "docs",
    "deploy",
)


def noticed_by(copy: Path, mutant: Slip) -> str | None:
    """What the first world that notices it says; None: none of 200 does. Raises: RuntimeError where it cannot run."""
    wrong = mutant.applied(copy)
    right = {file: (copy / file).read_text("utf-8") for file in wrong}
    _write(copy, wrong)
    try:
        environ = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(copy)}
        command = [sys.executable, "-m", "tests.simulation", "--seed", "0", "--seeds", str(SEEDS), "--first"]
        ended = subprocess.run(
            [*command, "--no-shrink"], cwd=copy, env=environ, capture_output=True, text=True, check=False
        )
    finally:
        _write(copy, right)
    if ended.returncode not in (0, 1) or "simulated hours" not in ended.stdout:
        raise RuntimeError(ended.stdout + ended.stderr)
    if ended.returncode == 0:
        return None
    lines = [line for line in ended.stdout.splitlines() if line.startswith(("seed", "  "))]
    return f"{lines[0].partition(':')[0]}: {lines[1].strip()[:110]}"


def _write(copy: Path, texts: Mapping[str, str]) -> None:
    for file, text in texts.items():
        (copy / file).write_text(text, "utf-8")


def main(wanted: list[str]) -> int:
    """Try them; the number of those that no world notices."""
    chosen = {name: each for name, each in MUTANTS.items() if not wanted or any(part in name for part in wanted)}
    began, survivors = time.monotonic(), 0
    with tempfile.TemporaryDirectory(prefix="cambist-mutants-") as folder:
        copy = Path(folder, "copy")
        shutil.copytree(ROOT, copy, symlinks=True, ignore=shutil.ignore_patterns(*_LEFT_OUT))
        for name, mutant in chosen.items():
            found = noticed_by(copy, mutant)
            survivors += found is None
            print(f"SURVIVES  {name}" if found is None else f"noticed   {name}\n          {found}", flush=True)
    print(f"{len(chosen)} mutants, {survivors} survived, {time.monotonic() - began:.0f} s")
    return survivors


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
