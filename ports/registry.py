"""Which processes work on one installation just now. A process that dies is gone from the registry at once."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Protocol


class Role(StrEnum):
    """What a process is there for."""

    COUNTING = "counting"
    """It takes requests and counts them against the limits."""
    WORKING = "working"
    """It does jobs."""


class ProcessRegistry(Protocol):
    """The processes of one installation, by their parts. Whoever entered stays until `close` or death."""

    async def enter(self, role: Role, *, alone: bool) -> bool:
        """Be there; `alone`: as the only one. False when those who are there do not suffer it. Never waits for them.

        Raises: Unavailable.
        """
        ...

    def when_lost(self, tell: Callable[[], None]) -> None:
        """Have `tell` called when another process took a place of ours: after an outage, for instance, in which ours
        could not be kept."""
        ...

    async def others(self, role: Role) -> Sequence[str]:
        """Who else is there, in words for an operator. Raises: Unavailable."""
        ...

    async def close(self) -> None:
        """Leave every part."""
        ...
