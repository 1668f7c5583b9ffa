"""What a simulated source is told to do with its next calls, so that every end of a call can be brought about."""

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
    """What one call shall do instead of answering."""

    ending: Ending = Ending.NORMAL
    silence: float = 0.0
    """Seconds of the clock before the answer, whatever it is; the price is read after them."""
    retry_after: float | None = None
    """With UNAVAILABLE."""


class RateScript:
    """What the next quotes shall do, in order; where nothing is left, the source answers."""

    def __init__(self) -> None:
        self.quote: deque[Twist] = deque()
        self.asked = 0
        """How often a quote was asked for."""

    def next(self) -> Twist:
        """The next call's part."""
        self.asked += 1
        return self.quote.popleft() if self.quote else Twist()


def fault(twist: Twist) -> Fault:
    """What a call raises whose ending is not NORMAL."""
    if twist.ending is Ending.NOT_CONFIGURED:
        return NotConfigured("not configured by the script")
    return Unavailable("unavailable by the script", retry_after=twist.retry_after)
