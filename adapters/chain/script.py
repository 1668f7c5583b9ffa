"""What a simulated chain is told to do with its next calls, so that every end of a call can be brought about."""

from collections import deque
from enum import StrEnum

import msgspec

from ...ports.faults import Fault, NotConfigured, NotSupported, Unavailable


class Ending(StrEnum):
    """How a call ends."""

    NORMAL = "normal"
    UNAVAILABLE = "unavailable"
    NOT_CONFIGURED = "not_configured"
    NOT_SUPPORTED = "not_supported"


class Twist(msgspec.Struct, frozen=True, kw_only=True):
    """What one call shall do instead of answering."""

    ending: Ending = Ending.NORMAL
    silence: float = 0.0
    """Seconds of the clock before the answer, whatever it is; the chain is read after them."""
    retry_after: float | None = None
    """With UNAVAILABLE."""


class ChainScript:
    """What the next lookups shall do, in order; where nothing is left, the chain answers."""

    def __init__(self) -> None:
        self.lookup: deque[Twist] = deque()

    def next(self) -> Twist:
        """The next call's part."""
        return self.lookup.popleft() if self.lookup else Twist()


def fault(twist: Twist) -> Fault:
    """What a call raises whose ending is not NORMAL."""
    if twist.ending is Ending.NOT_CONFIGURED:
        return NotConfigured("not configured by the script")
    if twist.ending is Ending.NOT_SUPPORTED:
        return NotSupported("not supported by the script")
    return Unavailable("unavailable by the script", retry_after=twist.retry_after)
