"""What a simulated watcher of deposits is told to do with its next calls."""

from collections import deque
from enum import StrEnum

import msgspec

from ...ports.faults import Fault, NotConfigured, Unavailable


class Ending(StrEnum):
    """How a call ends."""

    NORMAL = "normal"
    UNAVAILABLE = "unavailable"
    NOT_CONFIGURED = "not_configured"


class Twist(msgspec.Struct, frozen=True, kw_only=True):
    """What one call shall do instead of behaving."""

    ending: Ending = Ending.NORMAL
    silence: float = 0.0
    """Seconds of the clock before the answer, whatever it is; the chain is read after them."""
    doubled: bool = False
    """The answer names everything twice, the newest first."""
    retry_after: float | None = None
    """With UNAVAILABLE."""


class DepositScript:
    """What the next calls shall do, in order, for each kind of call; where nothing is left, the watcher behaves."""

    def __init__(self) -> None:
        self.address: deque[Twist] = deque()
        self.deposits: deque[Twist] = deque()


def next_twist(twists: deque[Twist]) -> Twist:
    """The next call's part; without one it behaves."""
    return twists.popleft() if twists else Twist()


def fault(twist: Twist) -> Fault:
    """What a call raises whose ending is not NORMAL."""
    if twist.ending is Ending.NOT_CONFIGURED:
        return NotConfigured("not configured by the script")
    return Unavailable("unavailable by the script", retry_after=twist.retry_after)
