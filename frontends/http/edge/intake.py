"""Overload control: limits on the new work that a process begins (docs/operations.md "Overload"), so that admitted work
is answered soon and refusals cost little.

New work is every request except GET, HEAD and OPTIONS, which never wait here. A request begins at once while fewer than
`_room` are under way. Otherwise it waits, before its body is read or its caller authenticated. A request that would
wait too long is refused with 503 and Retry-After, usually on arrival. `_room` follows the delay of the event loop, not
the duration of requests: many requests that wait for a bank do not slow down others.
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
"""Longest wait before new work begins, in seconds."""

HOPE = 0.75
"""Longest expected wait, at the present rate, for which a new request is queued, in seconds."""

RETRY_AFTER = 5
"""Value of Retry-After in a refusal, in seconds."""

MOST_WAITING = 2048
"""Largest number of waiting requests, at any rate: parts of their bodies are in memory."""

POLL = 0.02
"""Seconds between two measurements of the event loop's delay under load."""

LATE = 0.08
"""Average delay, in seconds, above which `_room` shrinks. Below an eighth of it `_room` grows."""

ROOM = 128
LEAST_ROOM = 32
MOST_ROOM = 384
"""Requests under way at once: initially, at least, at most. Concurrent commits cost little more than one. The maximum
is above the number that can wait for one bank (64 calls and 256 queued in `guard/bulkheads.py`), so that one bank
blocks nobody else. It is no higher, because each request uses some 15 KB, three to four times as much as a waiting one.
"""

REFUSALS = 100
"""Largest number of connections with a refused request that are read again after each check. Reading and refusing costs
a tenth of serving, so without a limit a flood would use all the time."""

QUIET = 2.0
"""Seconds from the end of an overload until its memory is returned to the system."""

_MEMORY = 0.5
"""Time constant of the average start rate, in seconds."""

log = logging.getLogger("cambist.http")


class _Waits(NamedTuple):
    """A waiting request. `since` is its arrival, in seconds of the monotonic clock."""

    since: float
    protocol: Any
    cycle: Any
    app: Any


class Intake:
    """Admission of the new work of one process. Waiting requests are begun or refused in order of arrival."""

    def __init__(self, clock: Clock, counters: Counters | None = None) -> None:
        self._clock = clock
        self._counters = counters
        self._waiting: deque[_Waits] = deque()
        self._resting: deque[Any] = deque()
        self._room = float(ROOM)
        self._polls = False
        self._looked_at = 0.0
        self._late = 0.0
        self._begun = 0
        """Requests begun since the last check."""
        self._rate: float | None = None
        """Requests begun per second while others wait; None: not yet known."""
        self.under_way = 0
        self.refused = 0
        self._told = 0

    def now(self) -> float:
        """Return the time of the monotonic clock, in seconds."""
        return self._clock.monotonic()

    def take(self, protocol: Any, cycle: Any, app: Any) -> None:
        """Begin this request, queue it, or refuse it."""
        if not self._waiting and self.under_way < self._room:
            self._begin(protocol, cycle, app)
            if self.under_way > LEAST_ROOM and not self._polls:
                self._poll_later()
            return
        now = self._clock.monotonic()
        since = protocol.heard_since(now)
        if self._is_full() or now - since > HOPE:
            self._refuse(protocol, cycle)
            return
        self._waiting.append(_Waits(since, protocol, cycle, app))
        if not self._polls:
            self._poll_later()

    def look(self) -> None:
        """Adjust the limit and the rate from what happened since the last check. Refuse requests that waited for
        `PATIENCE`, and begin as many as the limit allows."""
        now = self._clock.monotonic()
        passed = max(now - self._looked_at, POLL)
        self._late += (passed - POLL - self._late) * 0.2
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
        """Whether one more request would wait longer than `HOPE`, or too many wait."""
        waiting = len(self._waiting)
        return waiting >= MOST_WAITING or (self._rate is not None and waiting > self._rate * HOPE)

    def _let_in(self) -> None:
        now = self._clock.monotonic()
        while self._waiting and self.under_way < self._room:
            since, protocol, cycle, app = self._waiting.popleft()
            if now - since >= PATIENCE:
                self._refuse(protocol, cycle)
            elif not cycle.disconnected:  # otherwise the client has disconnected, and nothing was done for it
                self._begin(protocol, cycle, app)

    def rest(self, protocol: Any) -> None:
        """Leave the connection of a refused request unread until a later check wakes it."""
        self._resting.append(protocol)
        if not self._polls:
            self._poll_later()

    def _wake(self) -> None:
        """Resume reading up to `REFUSALS` of these connections."""
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

    def _poll_later(self) -> None:
        import ctypes  # noqa: F401 - for `_give_back`: loaded after a rush it would lie behind the memory to be returned

        self._polls = True
        self._looked_at, self._begun = self._clock.monotonic(), 0
        asyncio.get_running_loop().call_later(POLL, self._look_on)

    def _look_on(self) -> None:
        self.look()
        if self._waiting or self._resting or self.under_way > LEAST_ROOM:
            asyncio.get_running_loop().call_later(POLL, self._look_on)
            return
        self._polls = False
        if self.refused > self._told:
            log.warning("too much work came at once: %d requests were refused", self.refused - self._told)
            self._told = self.refused
            asyncio.get_running_loop().call_later(QUIET, _give_back)


def _give_back() -> None:
    """Return the memory of thousands of closed connections to the system, which the C library would keep."""
    import ctypes  # already loaded by `_poll_later`

    gc.collect()
    with suppress(OSError, AttributeError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)
