"""The last release, built from this repository's history: a wheel, as it would be installed."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BEFORE_ANY_TAG = "5bcdff278b40cec6970eeedb9e8dfe7aa2fbaa2b"
"""What stands for the last release while no tag names one."""


def last_release(folder: Path) -> Path:
    """A program `cambist` of the last release, in `folder`. Skips the test where the history does not reach so far (a
    shallow clone)."""
    commit = _git("describe", "--tags", "--abbrev=0", "--match", "v[0-9]*", "HEAD^") or BEFORE_ANY_TAG
    source, site, program = folder / "source", folder / "site", folder / "cambist"
    source.mkdir(parents=True)
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=False)
    if archive.returncode != 0:
        pytest.skip(f"the last release ({commit}) is not in this clone's history: fetch all of it to try an upgrade")
    subprocess.run(["tar", "-x"], cwd=source, input=archive.stdout, check=True)
    build = "import setuptools.build_meta as backend; backend.build_wheel('..')"
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run([sys.executable, "-c", build], cwd=source, env=environ, capture_output=True, check=True)
    [wheel] = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as built:
        built.extractall(site)
    program.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(site)!r})\n"
        "from cambist.frontends.cli.main import main\nsys.exit(main())\n",
        "utf-8",
    )
    program.chmod(0o755)
    return program


def _git(*arguments: str) -> str | None:
    asked = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return asked.stdout.strip() if asked.returncode == 0 else None
