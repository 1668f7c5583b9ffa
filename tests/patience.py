"""How long tests wait and last: a busy machine takes ten times as long as a quiet one."""

import os

import pytest

FULL = os.environ.get("CAMBIST_DRILLS") == "full"
"""Whether drills run at full length (`nox -s drills`), without other tests beside them."""

HANGS = 300.0
"""Seconds after which what a test waits for is taken to hang: half of pytest's own limit (`timeout` in pyproject.toml),
so that the test itself tells what is missing."""


def promised(seconds: float) -> float:
    """Give what is promised of a machine without other work, on this one, by how much work each of its processors has
    had in the last minutes. In seconds, to be asked for when it is over. The full drills have the machine to
    themselves."""
    if FULL:
        return seconds
    return seconds * max(1.0, *(load / (os.cpu_count() or 1) for load in os.getloadavg()[:2]))


def drill_of(rule: str) -> pytest.MarkDecorator:
    """Mark a drill that runs only in `nox -s drills`; `rule` is the test file that checks its rule in every run."""
    return pytest.mark.skipif(not FULL, reason=f"nox -s drills; every run has {rule}")
