"""`ParseBudget` limits the bytes that all connections of a process parse in one iteration of the event loop, so that a
flood on many connections delays the others only by milliseconds (docs/limits.md "Sizes")."""

from asyncio import AbstractEventLoop
from collections import deque
from typing import Protocol

TURN = 32 * 1024
"""Bytes of one connection that are parsed in one iteration of the loop."""

ALL = 8 * TURN
"""Bytes of all connections together that are parsed in one iteration of the loop."""


class Reader(Protocol):
    """A connection that holds unparsed bytes."""

    def read_on(self) -> None:
        """Parse the held bytes."""


class ParseBudget:
    """Budget that connections spend as they parse. A connection with held bytes continues in a later iteration, in the
    order in which connections began to hold bytes."""

    def __init__(self) -> None:
        self._spent = 0
        self._scheduled = False
        self._waiting: deque[Reader] = deque()

    def spend(self, loop: AbstractEventLoop, size: int) -> None:
        """Count bytes parsed in this iteration of the loop."""
        self._spent += size
        self._schedule(loop)

    @property
    def is_spent(self) -> bool:
        """Whether nothing more may be parsed in this iteration."""
        return self._spent >= ALL

    def later(self, loop: AbstractEventLoop, reader: Reader) -> None:
        """Have `reader` continue in a later iteration."""
        self._waiting.append(reader)
        self._schedule(loop)

    def _schedule(self, loop: AbstractEventLoop) -> None:
        if not self._scheduled:
            self._scheduled = True
            loop.call_soon(self._next_turn, loop)

    def _next_turn(self, loop: AbstractEventLoop) -> None:
        """Start a new iteration with the connections that waited longest."""
        self._scheduled = False
        self._spent = 0
        for _ in range(len(self._waiting)):
            if self.is_spent:
                self._schedule(loop)
                return
            self._waiting.popleft().read_on()
