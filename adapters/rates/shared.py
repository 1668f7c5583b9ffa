"""One request at a time to a rate source: concurrent callers share the answer."""

import asyncio

from ...ports.clock import Clock
from ...ports.faults import Fault, Unavailable
from ...ports.rates import RateQuote, RateSource

_WAIT_MAX = 60.0
_HANGS_AFTER = 20.0
"""Seconds after which an unanswered request is abandoned, so that the next caller starts a new one."""


class SharedSource:
    """Implement the port RateSource over another source.

    After a failure the source is not called for `pause` seconds, or as long as it requested (at most a minute). So
    requests do not each wait for a timeout, and a source with a rate limit is not called in vain.
    """

    def __init__(self, source: RateSource, clock: Clock, *, pause: float = 5.0) -> None:
        self._source = source
        self._clock = clock
        self._pause = pause
        self._asking: asyncio.Task[RateQuote] | None = None
        self._asked_at = 0.0
        self._quiet_until: float | None = None

    @property
    def name(self) -> str:
        """Name of the source."""
        return self._source.name

    async def quote(self) -> RateQuote:
        """Return the source's quote, shared by all concurrent callers. Raises: Unavailable, NotConfigured."""
        if self._asking is not None and self._clock.monotonic() - self._asked_at >= _HANGS_AFTER:
            self._asking.cancel()  # it is abandoned even if it ignores the cancellation
            self._asking = None
        if self._asking is None:
            if self._quiet_until is not None and self._clock.monotonic() < self._quiet_until:
                raise Unavailable(f"{self.name} failed just now")
            self._asked_at = self._clock.monotonic()
            self._asking = asyncio.create_task(self._ask())
            self._asking.add_done_callback(self._end)
        # A caller that gives up must not cancel the request for the others.
        return await asyncio.shield(self._asking)

    async def _ask(self) -> RateQuote:
        try:
            quote = await self._source.quote()
        except Fault as fault:
            wanted = fault.retry_after if isinstance(fault, Unavailable) else None
            self._quiet_until = self._clock.monotonic() + min(max(self._pause, wanted or 0.0), _WAIT_MAX)
            raise
        self._quiet_until = None
        return quote

    def _end(self, task: asyncio.Task[RateQuote]) -> None:
        if self._asking is task:
            self._asking = None
        # Retrieve the exception, because no caller may be waiting any more.
        if not task.cancelled():
            task.exception()
