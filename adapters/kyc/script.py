"""What a simulated verifier is told to do with its next calls, so that every end of a call can be brought about."""

from collections import deque
from enum import StrEnum

import msgspec

from ...ports.faults import Fault, NotConfigured, OutcomeUnknown, Refused, Unavailable
from ...ports.kyc import NoAnswer


class Ending(StrEnum):
    """How a call of the verifier ends."""

    NORMAL = "normal"
    REFUSED = "refused"
    UNAVAILABLE = "unavailable"
    NOT_CONFIGURED = "not_configured"
    SILENT_DONE = "silent_done"
    """No answer, and the verifier did it: OutcomeUnknown; of a read NoAnswer."""
    SILENT_NOT_DONE = "silent_not_done"
    """No answer, and the verifier never saw it: OutcomeUnknown; of a read NoAnswer."""


class Twist(msgspec.Struct, frozen=True, kw_only=True):
    """What one call shall do instead of behaving."""

    ending: Ending = Ending.NORMAL
    silence: float = 0.0
    """Seconds of the clock before the answer, whatever it is; what is done is done before them."""
    reason: str = "unknown"
    """With REFUSED."""


class VerifierScript:
    """What the next calls shall do, in order, for each kind of call; where nothing is left, the verifier behaves."""

    def __init__(self) -> None:
        self.register: deque[Twist] = deque()
        self.find: deque[Twist] = deque()
        self.state: deque[Twist] = deque()


def next_twist(twists: deque[Twist]) -> Twist:
    """The next call's part; without one it behaves."""
    return twists.popleft() if twists else Twist()


def fault(twist: Twist, *, is_read: bool = False) -> Fault:
    """What a call raises whose ending is not NORMAL."""
    if twist.ending is Ending.REFUSED:
        return Refused("refused by the script", reason=twist.reason)
    if twist.ending is Ending.NOT_CONFIGURED:
        return NotConfigured("not configured by the script")
    if twist.ending is Ending.UNAVAILABLE:
        return Unavailable("unavailable by the script")
    return NoAnswer("silent by the script") if is_read else OutcomeUnknown("silent by the script")
