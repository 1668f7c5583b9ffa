"""The queue carries only the hint that a job is due; the truth is the jobs table. Losing or doubling it is harmless."""

from collections.abc import Sequence
from typing import Protocol

from .jobs import Job


class Queue(Protocol):
    """Wakes workers. Never part of a request's success: a queue that is away costs a second of delay, no work."""

    async def kick(self, jobs: Sequence[Job]) -> None:
        """Tell workers that `jobs` were written or moved. Never raises."""
        ...

    async def wait(self, seconds: float) -> None:
        """Return at the next kick, or after `seconds`, whichever comes first."""
        ...

    async def works(self) -> bool:
        """Whether kicks reach the workers just now, found out by asking the server. Never raises."""
        ...

    async def close(self) -> None: ...
