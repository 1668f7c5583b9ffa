"""Waiting until an event loop has nothing left to do, for virtual clocks in tests where all work is in memory."""

import asyncio
from collections import Counter, deque
from typing import Any
from weakref import WeakKeyDictionary

_MOST = 100_000
"""Turns after which something is taken to go round in circles."""

_waiting: WeakKeyDictionary[asyncio.AbstractEventLoop, Counter[str]] = WeakKeyDictionary()
"""How many wait in each loop: several tasks may move one clock, and must not wait for one another."""


async def at_rest() -> None:
    """Return when no other task can continue until time advances.

    The event loop's ready queue shows this exactly. A fixed number of loop iterations would be slower or unsafe.
    """
    loop = asyncio.get_running_loop()
    ready: deque[Any] = loop._ready  # type: ignore[attr-defined]  # asyncio's own loop has it
    here = _waiting.setdefault(loop, Counter())
    here["tasks"] += 1
    try:
        for _ in range(_MOST):
            await asyncio.sleep(0)
            if len(ready) < here["tasks"]:
                return
    finally:
        here["tasks"] -= 1
    raise AssertionError("the event loop does not come to rest")
