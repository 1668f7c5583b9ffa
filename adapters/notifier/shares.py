"""How many letters may be on their way at once: to one receiver, and in all."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Shares:
    """Gives out turns, first come first served per receiver.

    Not the connector's own limits: its queue runs on the letter's time, and would charge our wait to the receiver.
    """

    def __init__(self, *, per_receiver: int, total: int) -> None:
        self._per_receiver = per_receiver
        self._total = asyncio.Semaphore(total)
        self._gates: dict[tuple[str, int], _Gate] = {}

    @asynccontextmanager
    async def turn(self, host: str, port: int) -> AsyncIterator[None]:
        """Wait for a turn at this receiver, and hold it inside. Who waits for a receiver takes no place in all."""
        key = (host, port)
        gate = self._gates.get(key)
        if gate is None:
            gate = self._gates[key] = _Gate(self._per_receiver)
        gate.users += 1
        try:
            async with gate.places, self._total:
                yield
        finally:
            gate.users -= 1
            if not gate.users:
                del self._gates[key]


class _Gate:
    """One receiver's places; forgotten when nobody holds or awaits one, so that memory follows what is under way."""

    __slots__ = ("places", "users")

    def __init__(self, places: int) -> None:
        self.places = asyncio.Semaphore(places)
        self.users = 0
