"""Run the commands at the top of each example folder, in a new environment that they make: `nox -s examples`.

cambist comes from a wheel of this tree, because no index has it yet.
"""

import ast
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.distributions import build, copy_of_sources

EXAMPLES = Path(__file__).parents[1] / "examples"
FOLDERS = {
    "merchant_tests": "test_shop.py",
    "own_bank": "conftest.py",
    "own_package": "conftest.py",
    "django_shop": "manage.py",
}
"""Folders with tests, each with the file whose first lines say how to run them."""
_COMMANDS = ("pip", "pytest", "python")


def commands(file: Path) -> list[list[str]]:
    """The commands in the docstring of a file, as words."""
    text = ast.get_docstring(ast.parse(file.read_text("utf-8"))) or ""
    lines = text.replace("\\\n", " ").splitlines()
    return [shlex.split(line) for line in lines if line.partition(" ")[0] in _COMMANDS]


def run(command: Sequence[str | Path], folder: Path, environ: dict[str, str]) -> None:
    print("$", *command, flush=True)
    subprocess.run(command, cwd=folder, env=environ, check=True)


def main() -> None:
    """Run all. Raises: CalledProcessError for the first command that fails."""
    with tempfile.TemporaryDirectory() as made:
        wheels = Path(made, "wheels")
        sources = Path(made, "sources")
        copy_of_sources(sources)
        build(sources, wheels)
        [wheel] = wheels.glob("*.whl")
        for name, file in FOLDERS.items():
            place = Path(made, name)
            run([sys.executable, "-m", "venv", str(place)], EXAMPLES, dict(os.environ))
            kept = {key: value for key, value in os.environ.items() if not key.startswith(("CAMBIST_", "PYTHON"))}
            environ = {**kept, "PATH": f"{place / 'bin'}{os.pathsep}{os.environ['PATH']}", "VIRTUAL_ENV": str(place)}
            for words in commands(EXAMPLES / name / file):
                command = [word.replace("cambist[", f"{wheel}[") if words[0] == "pip" else word for word in words]
                quiet = ["-q", "--disable-pip-version-check"] if words[0] == "pip" else []
                run([place / "bin" / command[0], *command[1:], *quiet], EXAMPLES / name, environ)
    print(f"The commands of {len(FOLDERS)} examples work.")


if __name__ == "__main__":
    main()
