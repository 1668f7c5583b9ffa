"""Bounds how much new work a process takes in (docs/operations.md "Overload"), so that what it takes is answered soon,
and what it refuses costs little.

New work is every request but GET, HEAD and OPTIONS, which never wait here. It begins at once while fewer requests than
`_room` are under way. Else it waits, before its body is read or its caller looked up; one that would wait too long is
refused with 503 and Retry-After, mostly as soon as it comes. `_room` follows the delay of the event loop, not the time
that requests take: many that wait for a bank slow nobody down.
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
"""Seconds that new work may be expected to wait, at the present rate, to be let wait at all."""

RETRY_AFTER = 5
"""Seconds: the header of a refusal."""

MOST_WAITING = 2048
"""Requests that wait, at most, at whatever rate: parts of their bodies are in memory."""

LOOK = 0.02
"""Seconds between two measurements of the loop's delay, while much is under way."""

LATE = 0.08
"""Seconds of average delay above which the room shrinks; below an eighth of it the room grows."""

ROOM = 128
LEAST_ROOM = 32
MOST_ROOM = 384
"""Requests under way at once: at first, at least, at most. Commits of many at once cost little more than of one. At
most: more than wait for one bank (the 64 calls and 256 waiting ones of `guard/bulkheads.py`), so that it keeps nobody
else waiting, and no more, because each takes some 15 KB, three to four times what one takes that waits."""

REFUSALS = 100
"""Connections with a refused request that are read again after each look, at most. To read and refuse costs a tenth of
what it costs to serve: without a bound a flood would take all the time there is."""

QUIET = 2.0
"""Seconds from the end of a rush until its memory is given back to the system."""

_MEMORY = 0.5
"""Seconds over which the rate of beginnings is averaged."""

log = logging.getLogger("cambist.http")


class _Waits(NamedTuple):
    """A request that waits; `since` when its connection was heard, in seconds of the monotonic clock."""

    since: float
    protocol: Any
    cycle: Any
    app: Any


class Intake:
    """Admits the new work of one process. What waits is begun, or refused, in the order in which it came."""

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
        """Adjust the room and the rate by what passed since the last look; refuse what waited for `PATIENCE`, and begin
        what there is room for."""
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
        """Whether one more request would wait longer than `HOPE`, or too many wait."""
        waiting = len(self._waiting)
        return waiting >= MOST_WAITING or (self._rate is not None and waiting > self._rate * HOPE)

    def _let_in(self) -> None:
        now = self._clock.monotonic()
        while self._waiting and self.under_way < self._room:
            since, protocol, cycle, app = self._waiting.popleft()
            if now - since >= PATIENCE:
                self._refuse(protocol, cycle)
            elif not cycle.disconnected:  # else its client is gone, and nothing was done for it
                self._begin(protocol, cycle, app)

    def rest(self, protocol: Any) -> None:
        """Leave a connection unread whose request was refused, until a look has it `wake`."""
        self._resting.append(protocol)
        if not self._looks:
            self._look_later()

    def _wake(self) -> None:
        """Have up to `REFUSALS` of these connections read on."""
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
        import ctypes  # noqa: F401 - for `_give_back`: loaded after a rush it would lie behind the memory to be returned

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
    """Return the memory of thousands of closed connections to the system: the C library would keep it."""
    import ctypes  # loaded when the rush began

    gc.collect()
    with suppress(OSError, AttributeError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)
