"""How long tests wait for what must come: a busy machine takes ten times as long as a quiet one."""

HANGS = 300.0
"""Seconds after which what a test waits for is taken to hang: half of pytest's own limit (`timeout` in pyproject.toml),
so that the test itself tells what is missing."""
