"""Time and chance: the only two things a rule may not make up by itself."""

from datetime import datetime
from typing import Protocol
from uuid import UUID


class Clock(Protocol):
    """The service's time. A virtual clock lets a whole service, with its workers, run through a year in a test."""

    def now(self) -> datetime:
        """The present moment, aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds since some fixed moment, never going back; for durations only."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds` of this clock's time."""
        ...


class Ids(Protocol):
    """Identifiers and secrets."""

    def uuid(self) -> UUID:
        """A new UUID, version 7: time-ordered, so that new rows land at the end of an index; 74 random bits."""
        ...

    def secret(self, size: int) -> str:
        """`size` random bytes from the operating system, as hex."""
        ...
