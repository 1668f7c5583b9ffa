"""systemd itself judges the units of deploy/systemd: it finds no fault in them, and tells how exposed they are."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.distributions import ROOT

UNITS = ROOT / "deploy" / "systemd"
EXPOSURE_AT_MOST = 1.1
"""Of 10. What is left: the network, and the Python that compiles at run time."""
INSTANCES = {"cambist-api@": "cambist-api@8081", "cambist-worker@": "cambist-worker@1"}


@pytest.fixture(scope="module", autouse=True)
def program() -> str:
    found = shutil.which("systemd-analyze")
    if found is None:
        reason = "systemd-analyze is not installed"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return found


@pytest.fixture
def installed(tmp_path: Path) -> list[Path]:
    """The units in a folder, templates with an instance each. Their program is one that every machine has."""
    for path in UNITS.iterdir():
        text = path.read_text("utf-8").replace("/opt/cambist/bin/cambist", "/bin/true")
        (tmp_path / path.name).write_text(text, "utf-8")
        if path.stem in INSTANCES:
            (tmp_path / f"{INSTANCES[path.stem]}{path.suffix}").write_text(text, "utf-8")
    return sorted(path for path in tmp_path.iterdir() if not path.stem.endswith("@"))


def _verified(program: str, units: list[Path]) -> subprocess.CompletedProcess[str]:
    """Log of warnings and errors alone."""
    environ = {**os.environ, "SYSTEMD_LOG_LEVEL": "warning"}
    command = [program, "verify", "--man=no", *map(str, units)]
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=False)


def test_systemd_finds_no_fault_in_the_units(program: str, installed: list[Path]) -> None:
    assert len(installed) == len(list(UNITS.iterdir()))
    done = _verified(program, installed)
    ours = [line for line in done.stderr.splitlines() if "cambist" in line]
    assert (done.returncode, ours) == (0, [])


def test_systemd_reports_a_setting_that_does_not_exist(program: str, installed: list[Path]) -> None:
    """So the check above is able to fail."""
    wrong = next(path for path in installed if path.name == "cambist-migrate.service")
    wrong.write_text(wrong.read_text("utf-8").replace("ProtectSystem=", "ProtectSystems="), "utf-8")
    assert "ProtectSystems" in _verified(program, [wrong]).stderr


def test_exposure_of_each_service_is_small(program: str, installed: list[Path]) -> None:
    scores = {}
    for path in installed:
        if path.suffix == ".service":
            command = [program, "security", "--no-pager", "--offline=true", str(path)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            [score] = re.findall(r"Overall exposure level for \S+: ([0-9.]+)", done.stdout)
            scores[path.stem] = float(score)
    assert len(scores) == 4
    assert max(scores.values()) <= EXPOSURE_AT_MOST, scores
