"""One question at a time to a source that others pay for: whoever asks meanwhile gets the same answer."""

import asyncio

from ...ports.clock import Clock
from ...ports.faults import Fault, Unavailable
from ...ports.rates import RateQuote, RateSource

_WAIT_MAX = 60.0
_HANGS_AFTER = 20.0
"""Seconds after which a question without an answer is given up, so that the next one to ask asks anew."""


class SharedSource:
    """Fills the port RateSource over another one.

    After a failure it is left alone for `pause` seconds, or as long as it asked for (a minute at most): requests
    then need not wait for a time limit each, and a source that counts us is not asked in vain.
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
        """That of the source."""
        return self._source.name

    async def quote(self) -> RateQuote:
        """What the source says, to all who ask at once. Raises: Unavailable, NotConfigured."""
        if self._asking is not None and self._clock.monotonic() - self._asked_at >= _HANGS_AFTER:
            self._asking.cancel()  # whether or not it lets itself be
            self._asking = None
        if self._asking is None:
            if self._quiet_until is not None and self._clock.monotonic() < self._quiet_until:
                raise Unavailable(f"{self.name} failed just now")
            self._asked_at = self._clock.monotonic()
            self._asking = asyncio.create_task(self._ask())
            self._asking.add_done_callback(self._end)
        # Whoever gives up waiting does not take the answer from the others.
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
        # Looked at, because nobody may be waiting any more.
        if not task.cancelled():
            task.exception()
