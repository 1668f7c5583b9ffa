"""The processes that work on one installation now. A process that dies disappears from the registry at once."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Protocol


class Role(StrEnum):
    """Role of a process."""

    COUNTING = "counting"
    """It serves requests and counts them against the limits."""
    WORKING = "working"
    """It runs jobs."""


class ProcessRegistry(Protocol):
    """The processes of one installation, by role. A process stays registered until `close` or its death."""

    async def enter(self, role: Role, *, alone: bool) -> bool:
        """Register; `alone`: as the only process of the role. Returns False when the registered processes do not allow
        it. Never waits for them.

        Raises: Unavailable.
        """
        ...

    def when_lost(self, tell: Callable[[], None]) -> None:
        """Call `tell` when another process took a registration of ours, for instance after an outage in which ours
        expired."""
        ...

    async def others(self, role: Role) -> Sequence[str]:
        """Describe the other processes of the role to an operator. Raises: Unavailable."""
        ...

    async def close(self) -> None:
        """Leave every role."""
        ...
