"""What a simulated bank is told to do with its next calls, so that every end of a call can be brought about."""

from collections import deque
from enum import StrEnum

import msgspec

from ...ports.faults import Fault, OutcomeUnknown, Refused, Unavailable


class Ending(StrEnum):
    """How a call of the bank ends."""

    NORMAL = "normal"
    REFUSED = "refused"
    UNAVAILABLE = "unavailable"
    UNKNOWN_DONE = "unknown_done"
    """OutcomeUnknown, and the bank did it. For reads the same as UNAVAILABLE: a failed read leaves nothing open."""
    UNKNOWN_NOT_DONE = "unknown_not_done"
    """OutcomeUnknown, and the bank never saw it. For reads the same as UNAVAILABLE."""


class Twist(msgspec.Struct, frozen=True, kw_only=True):
    """What one call shall do instead of behaving."""

    ending: Ending = Ending.NORMAL
    silence: float = 0.0
    """Seconds of the clock before the answer, whatever it is; what is done is done before them."""
    reason: str = "unknown"
    """With REFUSED."""
    retry_after: float | None = None
    """With UNAVAILABLE."""


class Script:
    """What the next calls shall do, in order, for each kind of call; where nothing is left, the bank behaves."""

    def __init__(self) -> None:
        self.create: deque[Twist] = deque()
        self.find: deque[Twist] = deque()
        self.state: deque[Twist] = deque()
        self.refund: deque[Twist] = deque()
        self.find_refund: deque[Twist] = deque()
        self.refunds_since: deque[Twist] = deque()
        self.bind: deque[Twist] = deque()
        self.find_binding: deque[Twist] = deque()
        self.mandate_state: deque[Twist] = deque()
        self.charge: deque[Twist] = deque()
        self.find_charge: deque[Twist] = deque()
        self.revoke: deque[Twist] = deque()
        self.remit: deque[Twist] = deque()
        self.find_remittance: deque[Twist] = deque()


def next_twist(twists: deque[Twist]) -> Twist:
    """The next call's part; without one it behaves."""
    return twists.popleft() if twists else Twist()


def fault(twist: Twist, *, is_read: bool = False) -> Fault:
    """What a call raises whose ending is not NORMAL."""
    if twist.ending is Ending.REFUSED:
        return Refused("refused by the script", reason=twist.reason)
    if twist.ending is Ending.UNAVAILABLE or is_read:
        return Unavailable("unavailable by the script", retry_after=twist.retry_after)
    return OutcomeUnknown("outcome unknown by the script")
