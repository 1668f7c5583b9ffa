"""The queue carries only the hint that a job is due; the jobs table is the truth. Lost or doubled hints are
harmless."""

from collections.abc import Sequence
from typing import Protocol

from .jobs import Job


class Queue(Protocol):
    """Wakes workers. A request never depends on it: without the queue, work starts a second later and none is lost."""

    async def wake_up(self, jobs: Sequence[Job]) -> None:
        """Tell workers that `jobs` were written or moved. Never raises."""
        ...

    async def wait(self, seconds: float) -> None:
        """Return at the next wake-up, or after `seconds`, whichever comes first."""
        ...

    async def works(self) -> bool:
        """Return whether wake-ups reach the workers now, by a request to the server. Never raises."""
        ...

    async def close(self) -> None: ...
