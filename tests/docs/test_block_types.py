"""The programs of the pages for developers have no type errors: mypy and pyright, both strict, check them as they are
printed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.test_blocks import runnable
from tests.embedding.test_frameworks import FRAMEWORKS, section

pytestmark = pytest.mark.release

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "adapters.md", "client.md", "embedding.md", "testing.md", "webhooks.md")


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a program of each page."""
    folder = tmp_path_factory.mktemp("programs")
    written = {page.removesuffix(".md").lower(): runnable(page, "python") for page in PAGES}
    written |= {name.lower(): section(name) for name in FRAMEWORKS}
    for name, blocks in written.items():
        assert blocks, name
        (folder / f"page_{name}.py").write_text("\n\n".join(block.text for block in blocks))
    # Blocks repeat the imports of the page's other blocks.
    given = {"typeCheckingMode": "strict", "extraPaths": [str(ROOT)], "reportDuplicateImport": False}
    (folder / "pyrightconfig.json").write_text(json.dumps(given))
    return folder


def checked(folder: Path, *command: str) -> str:
    # An editable installation is found by an import hook, which type checkers do not run.
    env = {**os.environ, "MYPYPATH": str(ROOT)}
    command = sys.executable, "-m", *command
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def test_programs_pass_mypy(programs: Path) -> None:
    found = checked(
        programs,
        "mypy",
        "--strict",
        "--follow-imports=silent",
        f"--cache-dir={ROOT / '.mypy_cache' / 'documented'}",
        ".",
    )
    assert "Success: no issues found in 9 source files" in found, found


def test_programs_pass_pyright(programs: Path) -> None:
    found = checked(programs, "pyright", "--pythonpath", sys.executable)
    assert "0 errors, 0 warnings" in found, found
