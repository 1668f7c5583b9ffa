"""Limits the concurrent calls of one kind to one provider, so that a hanging provider delays only its own calls.

A provider that answers has enough permits for normal load, and further calls wait briefly. A provider that hangs keeps
only a few trial calls to detect its recovery, and all others are refused at once.
"""

import logging
from asyncio import Future, get_running_loop
from collections import deque

from ....ports.clock import Clock
from ....ports.faults import BulkheadFull

CALLS = 64
"""Concurrent calls while the provider answers: as many as a worker has slots by default."""

TRIALS = 8
"""Concurrent calls while the provider hangs: enough to detect its recovery."""

SLOW = 2.0
"""Seconds after which a call counts as slow: nothing waits behind it for a permit, and its job frees the worker's
slot."""

WAITING = 256
"""Maximum number of calls waiting for a permit."""

LEFT = 128
"""Maximum number of abandoned calls still running, because their adapter swallows the cancellation."""

log = logging.getLogger("cambist.providers")


class Bulkhead:
    """The permits of one kind of calls to one provider."""

    def __init__(self, clock: Clock, name: str) -> None:
        self._clock = clock
        self._name = name
        self._begun: dict[object, float] = {}
        """Start times of the calls that hold a permit, oldest first."""
        self._waiting: deque[tuple[object, Future[bool]]] = deque()
        self._left = 0
        self._ended_at = float("-inf")
        self._hangs = False

    async def take(self, call: object) -> None:
        """Acquire a permit for a call, waiting at most `SLOW` seconds if other calls are finishing. Raises:
        BulkheadFull."""
        if self._left >= LEFT:
            raise BulkheadFull(
                f"{self._name}: {self._left} calls that were given up go on: its adapter cannot be cancelled"
            )
        if self._has_room() and not self._waiting:
            self._begun[call] = self._clock.monotonic()
        elif self._hangs or self._none_ends() or len(self._waiting) >= WAITING:
            raise self._full()
        else:
            await self._turn(call)

    def give_back(self, call: object, *, heard: bool) -> None:
        """Release the permit of a finished call. `heard`: the provider answered, even with a refusal."""
        self._leave(call, hangs=not heard and self._is_slow(call))

    def give_up(self, call: object, *, silent: bool) -> None:
        """Release the permit of an abandoned call, which may still be running. Call `end` when it finishes. `silent`:
        it timed out."""
        self._left += 1
        self._leave(call, hangs=silent or self._hangs)

    def end(self) -> None:
        """Record that an abandoned call has finished."""
        self._left -= 1

    def _leave(self, call: object, *, hangs: bool) -> None:
        del self._begun[call]
        if hangs is not self._hangs:
            self._hangs = hangs
            log.warning("%s %s", self._name, f"hang: {TRIALS} at a time until one ends" if hangs else "end again")
        self._ended_at = self._clock.monotonic()
        while self._waiting and self._has_room():
            following, turn = self._waiting.popleft()
            if _answer(turn, admitted=True):
                self._begun[following] = self._ended_at

    async def _turn(self, call: object) -> None:
        turn: Future[bool] = get_running_loop().create_future()
        self._waiting.append((call, turn))
        alarm = self._clock.call_later(SLOW, lambda: _answer(turn, admitted=False))
        try:
            admitted = await turn
        except BaseException:
            if call in self._begun:
                self._leave(call, hangs=self._hangs)
            raise
        finally:
            alarm.cancel()
        if not admitted:
            raise self._full()

    def _has_room(self) -> bool:
        return len(self._begun) < (TRIALS if self._hangs else CALLS)

    def _none_ends(self) -> bool:
        """Return whether no running call has finished for `SLOW` seconds."""
        since = max(self._ended_at, next(iter(self._begun.values()), 0.0))
        return self._clock.monotonic() - since >= SLOW

    def _is_slow(self, call: object) -> bool:
        return self._clock.monotonic() - self._begun[call] >= SLOW

    def _full(self) -> BulkheadFull:
        return BulkheadFull(f"{self._name}: {len(self._begun)} calls are under way already")


def _answer(turn: Future[bool], *, admitted: bool) -> bool:
    """End the wait of a call. Return whether it was still waiting."""
    if turn.done():
        return False
    turn.set_result(admitted)
    return True
