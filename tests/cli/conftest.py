"""A command line to call: in a folder and an environment of its own, in this process or in a real one."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from cambist.frontends.cli.main import cli
from tests.patience import HANGS
from tests.stories.preloaded import template

PROGRAM = "from cambist.frontends.cli.main import main; main()"


class Outcome(msgspec.Struct, frozen=True):
    """Result of a command."""

    status: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """Return standard output as one JSON document; fail if it is not exactly one."""
        return msgspec.json.decode(self.out)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder, and no settings from outside."""
    for name in [name for name in os.environ if name.startswith("CAMBIST_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


Call = Callable[..., Outcome]


@pytest.fixture
def call() -> Call:
    """`call("account", "list")` in this process."""

    def run(*arguments: str, env: Mapping[str, str] | None = None, typed: str | None = None) -> Outcome:
        result = CliRunner().invoke(cli, arguments, input=typed, env=dict(env or {}), prog_name="cambist")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Outcome(result.exit_code, result.stdout, result.stderr)

    return run


@pytest.fixture
def spawn(tmp_path_factory: pytest.TempPathFactory) -> Call:
    """Run a command in its own process, as a shell would. The process is forked from a preloaded one
    (tests/stories/preloaded.py), unless the test passes its own program or Python options."""

    def run(*arguments: str, env: Mapping[str, str] | None = None, program: str = PROGRAM) -> Outcome:
        environ = {**os.environ, **(env or {})}
        is_usual = program == PROGRAM and not any(name.startswith("PYTHON") for name in env or {})
        if is_usual and sys.platform == "linux":
            out, err = (tmp_path_factory.mktemp("said") / name for name in ("out", "err"))
            status = template().start(arguments, Path.cwd(), environ, out, err).wait(HANGS)
            return Outcome(status, out.read_text("utf-8"), err.read_text("utf-8"))
        done = subprocess.run(
            [sys.executable, "-c", program, *arguments],
            env=environ,
            capture_output=True,
            encoding="utf-8",
            check=False,
            timeout=HANGS,
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    return run
