"""Timeouts of tests: a busy machine takes ten times as long as a quiet one."""

import os

HANGS = 300.0
"""Seconds after which what a test waits for is taken to hang: half of pytest's own limit (`timeout` in pyproject.toml),
so that the test itself tells what is missing."""


def promised(seconds: float) -> float:
    """Give what is promised of a machine without other work, on this one, by how much work each of its processors has
    had in the last minutes. In seconds, to be asked for when it is over. The full drills have the machine to
    themselves."""
    if os.environ.get("CAMBIST_DRILLS") == "full":
        return seconds
    return seconds * max(1.0, *(load / (os.cpu_count() or 1) for load in os.getloadavg()[:2]))
