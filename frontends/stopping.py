"""How a process ends: within so many seconds after it was told to, whatever hangs in it.

Requests, jobs and closing have one budget together. What is cut off by it is left for the next process: a row says what
is to be done, and none of it is lost by an end at any moment.
"""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable

from ..ports.clock import Clock

EACH = 1.0
"""Seconds that one part of a house may take to close."""

_CLOSING_SHARE = 0.2
_WORK_SHARE = 0.1
"""Of the budget: what is kept for closing, and for jobs that end after the last request."""

_MARGIN = 1.0
"""Seconds before the end at which the process ends itself."""

log = logging.getLogger("cambist.stop")


class Stopping:
    """One end of a process."""

    def __init__(self, clock: Clock, seconds: float, at_last: Callable[[int], object] | None = None) -> None:
        """`at_last` ends the process when it is still there shortly before its time is over, with the status that
        `begin` was told; None: nobody does."""
        self._clock = clock
        self._seconds = seconds
        self._at_last = at_last
        self._until: float | None = None

    def begin(self, status: int = 0) -> None:
        """It was told to stop. Told again, the first time counts."""
        if self._until is not None:
            return
        self._until = self._clock.monotonic() + self._seconds
        if self._at_last is not None:
            # A thread, because the event loop may be what hangs.
            last = threading.Timer(max(self._seconds - _MARGIN, self._seconds / 2), self._end, (status,))
            last.daemon = True
            last.start()

    @property
    def for_requests(self) -> float:
        """Seconds that requests may take to end, of the whole."""
        return self._seconds * (1 - _CLOSING_SHARE - _WORK_SHARE)

    def left_for_jobs(self) -> float:
        """Seconds that jobs may take to end from now on, the first of which begins the end where nobody did before."""
        self.begin()
        until = self._clock.monotonic() if self._until is None else self._until
        return max(until - self._clock.monotonic() - self._seconds * _CLOSING_SHARE, 0.0)

    def _end(self, status: int) -> None:
        log.warning("something does not end: the process ends without it")
        if self._at_last is not None:
            self._at_last(status)


async def closed_soon(what: str, close: Callable[[], Awaitable[None]], within: float = EACH) -> None:
    """Close a part of a house. One that takes too long is left alone. Raises: what `close` does."""
    closing = asyncio.ensure_future(close())
    done, _ = await asyncio.wait([closing], timeout=within)
    if done:
        closing.result()
    else:
        closing.cancel()
        log.warning("%s could not be closed within %.0f s, and is left as it is", what, within)
