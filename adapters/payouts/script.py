"""What a simulated wallet is told to do with its next calls, so that every end of a call can be brought about."""

from collections import deque
from enum import StrEnum

import msgspec

from ...ports.faults import Fault, NotConfigured, OutcomeUnknown, Refused, Unavailable


class Ending(StrEnum):
    """How a call ends."""

    NORMAL = "normal"
    REFUSED = "refused"
    """For a read the same as UNAVAILABLE."""
    UNAVAILABLE = "unavailable"
    NOT_CONFIGURED = "not_configured"
    UNKNOWN_DONE = "unknown_done"
    """OutcomeUnknown, and the network has the transfer. Only a broadcast leaves something open: for the other calls
    the same as UNAVAILABLE."""
    UNKNOWN_NOT_DONE = "unknown_not_done"
    """OutcomeUnknown, and the network never saw it. For the other calls the same as UNAVAILABLE."""


class Twist(msgspec.Struct, frozen=True, kw_only=True):
    """What one call shall do instead of behaving."""

    ending: Ending = Ending.NORMAL
    silence: float = 0.0
    """Seconds of the clock before the answer, whatever it is. What is done is done before them; a state is read after
    them."""
    reason: str = "unknown"
    """With REFUSED."""
    message: str = "unavailable by the script"
    """With UNAVAILABLE: what operators read, such as that the wallet is empty."""
    retry_after: float | None = None
    """With UNAVAILABLE."""


class SenderScript:
    """What the next calls shall do, in order, for each kind of call; where nothing is left, the wallet behaves."""

    def __init__(self) -> None:
        self.sign: deque[Twist] = deque()
        self.broadcast: deque[Twist] = deque()
        self.state: deque[Twist] = deque()
        self.find: deque[Twist] = deque()


def next_twist(twists: deque[Twist]) -> Twist:
    """The next call's part; without one it behaves."""
    return twists.popleft() if twists else Twist()


def fault(twist: Twist, *, sends: bool = False, refuses: bool = True) -> Fault:
    """What a call raises whose ending is not NORMAL. Only one that `sends` can leave its outcome unknown."""
    if twist.ending is Ending.NOT_CONFIGURED:
        return NotConfigured("not configured by the script")
    if twist.ending is Ending.REFUSED and refuses:
        return Refused("refused by the script", reason=twist.reason)
    if sends and twist.ending in (Ending.UNKNOWN_DONE, Ending.UNKNOWN_NOT_DONE):
        return OutcomeUnknown("outcome unknown by the script")
    return Unavailable(twist.message, retry_after=twist.retry_after)
