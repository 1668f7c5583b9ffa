"""Time limit for the end of a process, whatever hangs in it.

Requests, jobs and closing share one budget. Interrupted work is left for the next process: it is stored as a row, so
nothing is lost by an end at any moment.
"""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable

from ...ports.clock import Clock

EACH = 1.0
"""Seconds for one part of an app to close."""

_CLOSING_SHARE = 0.2
_WORK_SHARE = 0.1
"""Shares of the budget reserved for closing, and for jobs that end after the last request."""

_MARGIN = 1.0
"""Seconds before the end of the budget at which the process ends itself."""

log = logging.getLogger("cambist.stop")


class Stopping:
    """The end of one process."""

    def __init__(self, clock: Clock, seconds: float, at_last: Callable[[int], object] | None = None) -> None:
        """Prepare the end. `at_last` ends the process shortly before its time is over, with the status passed to
        `begin`; None: nothing does."""
        self._clock = clock
        self._seconds = seconds
        self._at_last = at_last
        self._until: float | None = None

    def begin(self, status: int = 0) -> None:
        """Start the time at the first request to stop; later requests have no effect."""
        if self._until is not None:
            return
        self._until = self._clock.monotonic() + self._seconds
        if self._at_last is not None:
            # A thread, because the event loop itself may hang.
            last = threading.Timer(max(self._seconds - _MARGIN, self._seconds / 2), self._end, (status,))
            last.daemon = True
            last.start()

    @property
    def for_requests(self) -> float:
        """Seconds of the budget for requests."""
        return self._seconds * (1 - _CLOSING_SHARE - _WORK_SHARE)

    def left_for_jobs(self) -> float:
        """Return the seconds left for jobs. The first call starts the time if nothing did before."""
        self.begin()
        until = self._clock.monotonic() if self._until is None else self._until
        return max(until - self._clock.monotonic() - self._seconds * _CLOSING_SHARE, 0.0)

    def _end(self, status: int) -> None:
        log.warning("something does not end: the process ends without it")
        if self._at_last is not None:
            self._at_last(status)


async def closed_soon(what: str, close: Callable[[], Awaitable[None]], within: float = EACH) -> None:
    """Close a part of an app, and give up if it takes too long. Raises: exceptions of `close`."""
    closing = asyncio.ensure_future(close())
    done, _ = await asyncio.wait([closing], timeout=within)
    if done:
        closing.result()
    else:
        closing.cancel()
        log.warning("%s could not be closed within %.0f s, and is left as it is", what, within)
