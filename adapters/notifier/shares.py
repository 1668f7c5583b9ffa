"""How many letters may be on their way at once: to one receiver, and in all."""

import asyncio
from collections import deque

Receiver = tuple[str, int]
"""Host and port."""


class Gate:
    """A number of places, given to who comes first. asyncio.Semaphore is the same with five calls for each use."""

    __slots__ = ("_waiting", "free")

    def __init__(self, places: int) -> None:
        self.free = places
        """None while somebody waits."""
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def wait(self) -> None:
        """A place, where none is free."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except BaseException:
            if turn.done() and not turn.cancelled():
                self.give_back()
            raise

    def give_back(self) -> None:
        """A place goes to the first who still waits, or is free again."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self.free += 1


class Shares:
    """Gives out turns, first come first served per receiver.

    Not the connector's own limits: its queue runs on the letter's time, and would charge our wait to the receiver.
    """

    def __init__(self, *, per_receiver: int, total: int) -> None:
        self._per_receiver = per_receiver
        self._total = Gate(total)
        self._gates: dict[Receiver, Gate] = {}
        """One that nobody holds is forgotten, so that memory follows what is under way."""

    async def enter(self, receiver: Receiver) -> None:
        """Wait for a turn at this receiver; `leave` ends it. Who waits for a receiver takes no place in all."""
        gate = self._gates.get(receiver)
        if gate is None:
            gate = self._gates[receiver] = Gate(self._per_receiver)
        try:
            if gate.free:
                gate.free -= 1
            else:
                await gate.wait()
        except BaseException:
            self._forget(receiver, gate)
            raise
        try:
            if self._total.free:
                self._total.free -= 1
            else:
                await self._total.wait()
        except BaseException:
            gate.give_back()
            self._forget(receiver, gate)
            raise

    def leave(self, receiver: Receiver) -> None:
        """The turn is over."""
        self._total.give_back()
        gate = self._gates[receiver]
        gate.give_back()
        self._forget(receiver, gate)

    def _forget(self, receiver: Receiver, gate: Gate) -> None:
        if gate.free == self._per_receiver and self._gates.get(receiver) is gate:
            del self._gates[receiver]
