"""How much new work is taken in: under overload it waits before anything is done for it, and what would wait for too
long is refused (503, Retry-After), mostly at once, before its body is read or its caller looked up. So what is taken in
is answered soon, and what is refused costs little.

New work is what is no GET, HEAD or OPTIONS: reads and health never wait here. How much is under way at once goes by the
event loop's turns, not by how long requests take: one that waits for a bank keeps nobody else waiting.
"""

import asyncio
import gc
import logging
from collections import deque
from contextlib import suppress
from typing import Any, NamedTuple

from ....ports.clock import Clock
from ...telemetry.counters import Counters
from ...telemetry.requests import NONE, method_of

PATIENCE = 2.0
"""Seconds that new work may wait before it is begun."""

HOPE = 0.75
"""Seconds that it may be expected to wait, by the pace of the moment, when it comes."""

RETRY_AFTER = 5
"""Seconds, told to who is refused."""

MOST_WAITING = 2048
"""Requests, however quickly they would be begun: their bodies are in memory."""

LOOK = 0.02
"""Seconds between two looks at the loop while much is under way."""

LATE = 0.08
"""Seconds by which looks are late on average above which less is put under way at once; below an eighth of it, more."""

ROOM = 128
LEAST_ROOM = 32
MOST_ROOM = 1024
"""Requests under way at once: at first, at least, at most. Commits of many at once cost little more than of one."""

REFUSALS = 100
"""Connections whose request was refused that are read on after each look. Reading and refusing costs a tenth of doing:
without a bound a flood would take all the time there is."""

QUIET = 2.0
"""Seconds after a rush until its memory is given back."""

_MEMORY = 0.5
"""Seconds over which the rate of beginnings is averaged."""

log = logging.getLogger("cambist.http")


class _Waits(NamedTuple):
    since: float
    protocol: Any
    cycle: Any
    app: Any


class Intake:
    """The new work of one process: what is under way, and what waits, the oldest first."""

    def __init__(self, clock: Clock, counters: Counters | None = None) -> None:
        self._clock = clock
        self._counters = counters
        self._waiting: deque[_Waits] = deque()
        self._resting: deque[Any] = deque()
        self._room = float(ROOM)
        self._looks = False
        self._looked_at = 0.0
        self._late = 0.0
        self._begun = 0
        """Requests begun since the last look."""
        self._rate: float | None = None
        """Beginnings per second while some wait; None: not known yet."""
        self.under_way = 0
        self.refused = 0
        self._told = 0

    def now(self) -> float:
        """Seconds of a clock that never jumps."""
        return self._clock.monotonic()

    def take(self, protocol: Any, cycle: Any, app: Any) -> None:
        """Begin this request, let it wait, or refuse it."""
        if not self._waiting and self.under_way < self._room:
            self._begin(protocol, cycle, app)
            if self.under_way > LEAST_ROOM and not self._looks:
                self._look_later()
            return
        now = self._clock.monotonic()
        since = protocol.heard_since(now)
        if self._is_full() or now - since > HOPE:
            self._refuse(protocol, cycle)
            return
        self._waiting.append(_Waits(since, protocol, cycle, app))
        if not self._looks:
            self._look_later()

    def look(self) -> None:
        """Go by how late this look is, and by the clock: make room, refuse, begin."""
        now = self._clock.monotonic()
        passed = max(now - self._looked_at, LOOK)
        self._late += (passed - LOOK - self._late) * 0.2
        if self._waiting:
            rate = self._begun / passed
            share = min(passed / _MEMORY, 1.0)
            self._rate = rate if self._rate is None else self._rate + (rate - self._rate) * share
        else:
            self._rate = None
        if self._late > LATE:
            self._room = max(self._room * 0.95, LEAST_ROOM)
        elif self.under_way >= self._room and self._late < LATE / 8:
            self._room = min(self._room * 1.05, MOST_ROOM)
        self._looked_at, self._begun = now, 0
        while self._waiting and now - self._waiting[0].since >= PATIENCE:
            late = self._waiting.popleft()
            self._refuse(late.protocol, late.cycle)
        self._let_in()
        self._wake()

    def _is_full(self) -> bool:
        """Whether another one would wait for too long."""
        waiting = len(self._waiting)
        return waiting >= MOST_WAITING or (self._rate is not None and waiting > self._rate * HOPE)

    def _let_in(self) -> None:
        now = self._clock.monotonic()
        while self._waiting and self.under_way < self._room:
            since, protocol, cycle, app = self._waiting.popleft()
            if now - since >= PATIENCE:
                self._refuse(protocol, cycle)
            elif not cycle.disconnected:  # else nobody wants it any more, and nothing was done
                self._begin(protocol, cycle, app)

    def rest(self, protocol: Any) -> None:
        """Leave a connection unread whose request was refused, until its turn to be told to `wake`."""
        self._resting.append(protocol)
        if not self._looks:
            self._look_later()

    def _wake(self) -> None:
        """Let connections speak again that were left unread."""
        for _ in range(min(len(self._resting), REFUSALS)):
            self._resting.popleft().wake()

    def _begin(self, protocol: Any, cycle: Any, app: Any) -> None:
        self.under_way += 1
        self._begun += 1
        protocol.begin(cycle, app).add_done_callback(self._ended)

    def _ended(self, _: "asyncio.Task[None]") -> None:
        self.under_way -= 1
        if self._waiting:
            self._let_in()

    def _refuse(self, protocol: Any, cycle: Any) -> None:
        self.refused += 1
        if self._counters is not None:
            self._counters.requests.add(method_of(cycle.scope), NONE, "503")
        protocol.refuse(cycle)

    def _look_later(self) -> None:
        import ctypes  # noqa: F401 - after the rush its objects would hold the memory that `_give_back` is to return

        self._looks = True
        self._looked_at, self._begun = self._clock.monotonic(), 0
        asyncio.get_running_loop().call_later(LOOK, self._look_on)

    def _look_on(self) -> None:
        self.look()
        if self._waiting or self._resting or self.under_way > LEAST_ROOM:
            asyncio.get_running_loop().call_later(LOOK, self._look_on)
            return
        self._looks = False
        if self.refused > self._told:
            log.warning("too much work came at once: %d requests were refused", self.refused - self._told)
            self._told = self.refused
            asyncio.get_running_loop().call_later(QUIET, _give_back)


def _give_back() -> None:
    """Hand the memory of thousands of connections back to the system: the C library keeps it otherwise."""
    import ctypes  # loaded when the rush began

    gc.collect()
    with suppress(OSError, AttributeError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)
