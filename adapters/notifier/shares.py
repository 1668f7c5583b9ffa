"""How many letters may be on their way at once: to one receiver, and in all."""

import asyncio
from types import TracebackType


class Shares:
    """Gives out turns, first come first served per receiver.

    Not the connector's own limits: its queue runs on the letter's time, and would charge our wait to the receiver.
    """

    def __init__(self, *, per_receiver: int, total: int) -> None:
        self._per_receiver = per_receiver
        self._total = asyncio.Semaphore(total)
        self._gates: dict[tuple[str, int], Gate] = {}

    def turn(self, host: str, port: int) -> "Turn":
        """Wait for a turn at this receiver, and hold it inside. Who waits for a receiver takes no place in all."""
        key = (host, port)
        gate = self._gates.get(key)
        if gate is None:
            gate = self._gates[key] = Gate(self._per_receiver)
        gate.users += 1
        return Turn(self._gates, key, self._total)


class Gate:
    """One receiver's places; forgotten when nobody holds or awaits one, so that memory follows what is under way."""

    __slots__ = ("places", "users")

    def __init__(self, places: int) -> None:
        self.places = asyncio.Semaphore(places)
        self.users = 0


class Turn:
    """A place asked for. It counts from the moment it was asked for, so it is entered at once, and once."""

    __slots__ = ("_gate", "_gates", "_key", "_total")

    def __init__(self, gates: dict[tuple[str, int], Gate], key: tuple[str, int], total: asyncio.Semaphore) -> None:
        self._gates = gates
        self._key = key
        self._gate = gates[key]
        self._total = total

    async def __aenter__(self) -> None:
        try:
            await self._gate.places.acquire()
            try:
                await self._total.acquire()
            except BaseException:
                self._gate.places.release()
                raise
        except BaseException:
            self._leave()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._total.release()
        self._gate.places.release()
        self._leave()

    def _leave(self) -> None:
        self._gate.users -= 1
        if not self._gate.users:
            del self._gates[self._key]
