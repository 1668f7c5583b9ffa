"""How many calls of one kind one provider may hold at once: one that hangs holds up its own calls, and nobody else's.

While it answers there is room for all that there usually is, and what is more waits a moment for its turn. Of one that
hangs a few calls are under way, to see when it is back; all others are refused at once.
"""

import logging
from asyncio import Future, get_running_loop
from collections import deque

from ...ports.clock import Clock
from ...ports.faults import BulkheadFull

CALLS = 64
"""Calls under way at once, while it answers: as many as a worker has slots, unless a setting says otherwise."""

TRIALS = 8
"""Calls under way at once, while it does not: enough to see when it answers again."""

SLOW = 2.0
"""Seconds after which a call takes long: nobody waits behind it for a permit, and its job gives the worker's slot
back."""

WAITING = 256
"""Calls that wait for a permit, at most."""

LEFT = 128
"""Calls that were given up and go on, at most: of an adapter that swallows its cancellation."""

log = logging.getLogger("cambist.providers")


class Bulkhead:
    """The permits of one kind of calls to one provider."""

    def __init__(self, clock: Clock, name: str) -> None:
        self._clock = clock
        self._name = name
        self._begun: dict[object, float] = {}
        """When the calls that hold a permit began, the oldest first."""
        self._waiting: deque[tuple[object, Future[bool]]] = deque()
        self._left = 0
        self._ended_at = float("-inf")
        self._hangs = False

    async def take(self, call: object) -> None:
        """Take a permit for a call; wait for one, `SLOW` at most, where calls come to an end. Raises: BulkheadFull."""
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
        """Give the permit of a call that ended back. `heard`: the provider answered, be it with a refusal."""
        self._leave(call, hangs=not heard and self._is_slow(call))

    def give_up(self, call: object, *, silent: bool) -> None:
        """Give the permit of a call back that nobody waits for any more, while it may go on. Call `end` once it ended.
        `silent`: its time was over."""
        self._left += 1
        self._leave(call, hangs=silent or self._hangs)

    def end(self) -> None:
        """Count off a call that was given up and has ended."""
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
        """Whether no call under way has ended for `SLOW` seconds."""
        since = max(self._ended_at, next(iter(self._begun.values()), 0.0))
        return self._clock.monotonic() - since >= SLOW

    def _is_slow(self, call: object) -> bool:
        return self._clock.monotonic() - self._begun[call] >= SLOW

    def _full(self) -> BulkheadFull:
        return BulkheadFull(f"{self._name}: {len(self._begun)} calls are under way already")


def _answer(turn: Future[bool], *, admitted: bool) -> bool:
    """End the wait of a call. Returns whether it still waited."""
    if turn.done():
        return False
    turn.set_result(admitted)
    return True
