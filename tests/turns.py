"""Waiting until an event loop has nothing left to do, for virtual clocks in tests where all work is in memory."""

import asyncio
from collections import deque
from typing import Any

_MOST = 100_000
"""Turns after which something is taken to go round in circles."""


async def at_rest() -> None:
    """Return when no other task can go on before time does.

    The loop's queue of what is ready says so exactly, which no number of turns does, and sooner than any that is safe.
    """
    ready: deque[Any] = asyncio.get_running_loop()._ready  # type: ignore[attr-defined]  # asyncio's own loop has it
    for _ in range(_MOST):
        await asyncio.sleep(0)
        if not ready:
            return
    raise AssertionError("the event loop does not come to rest")
