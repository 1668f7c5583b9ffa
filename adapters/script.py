"""Scripts for the next calls of simulated providers, to produce every outcome of a call."""

from collections import deque
from collections.abc import Callable
from enum import StrEnum

import msgspec

from ..ports.clock import Clock
from ..ports.faults import Fault, NotConfigured, NotSupported, OutcomeUnknown, Refused, Unavailable
from ..ports.reporting import ReportedEntry


class Ending(StrEnum):
    """Outcome of a call."""

    NORMAL = "normal"
    REFUSED = "refused"
    UNAVAILABLE = "unavailable"
    NOT_CONFIGURED = "not_configured"
    NOT_SUPPORTED = "not_supported"
    UNKNOWN_DONE = "unknown_done"
    """OutcomeUnknown, and the provider executed the call. For reads it equals UNAVAILABLE, because a failed read leaves
    nothing open."""
    UNKNOWN_NOT_DONE = "unknown_not_done"
    """OutcomeUnknown, and the provider never saw the call. For reads it equals UNAVAILABLE."""


UNKNOWN = (Ending.UNKNOWN_DONE, Ending.UNKNOWN_NOT_DONE)


class Twist(msgspec.Struct, frozen=True, kw_only=True):
    """Scripted behaviour of one call."""

    ending: Ending = Ending.NORMAL
    silence: float = 0.0
    """Seconds of the clock before the answer. A write takes effect before them, a read reads after them."""
    reason: str = "unknown"
    """Used with REFUSED."""
    message: str = "unavailable by the script"
    """Used with UNAVAILABLE: text for operators, for example that the wallet is empty."""
    retry_after: float | None = None
    """Used with UNAVAILABLE."""
    doubled: bool = False
    """The list of deposits contains everything twice, newest first."""


class ListScript:
    """Deviations of a bank's report from its real operations."""

    def __init__(self) -> None:
        self.calls: deque[Twist] = deque()
        self.omitted: set[str] = set()
        """Operations missing from the report."""
        self.invented: list[ReportedEntry] = []
        """Entries without an operation."""
        self.turned: dict[str, Callable[[ReportedEntry], ReportedEntry]] = {}
        """Changes of an entry by operation: another amount, fee or state."""
        self.page = 100
        """Entries per page."""


class Script:
    """Scripted behaviour of a bank's next calls, in order, per kind of call. An empty script means normal behaviour."""

    def __init__(self) -> None:
        self.create: deque[Twist] = deque()
        self.find: deque[Twist] = deque()
        self.state: deque[Twist] = deque()
        self.cancel: deque[Twist] = deque()
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
        self.entries = ListScript()


class VerifierScript:
    """Scripted behaviour of an identity verifier."""

    def __init__(self) -> None:
        self.register: deque[Twist] = deque()
        self.find: deque[Twist] = deque()
        self.state: deque[Twist] = deque()


class SenderScript:
    """Scripted behaviour of a wallet."""

    def __init__(self) -> None:
        self.sign: deque[Twist] = deque()
        self.broadcast: deque[Twist] = deque()
        self.state: deque[Twist] = deque()
        self.find: deque[Twist] = deque()


class DepositScript:
    """Scripted behaviour of a source of deposits."""

    def __init__(self) -> None:
        self.address: deque[Twist] = deque()
        self.deposits: deque[Twist] = deque()


class ChainScript:
    """Scripted behaviour of a source of transactions."""

    def __init__(self) -> None:
        self.lookup: deque[Twist] = deque()


class ReceiptScript:
    """Scripted behaviour of a cash register."""

    def __init__(self) -> None:
        self.write: deque[Twist] = deque()
        self.find: deque[Twist] = deque()


class RateScript:
    """Scripted behaviour of a rate source."""

    def __init__(self) -> None:
        self.quote: deque[Twist] = deque()
        self.asked = 0
        """Number of quote calls."""


def fault(twist: Twist, *, is_read: bool = False) -> Fault:
    """Build the fault of a call whose ending is not NORMAL."""
    match twist.ending:
        case Ending.REFUSED:
            return Refused("refused by the script", reason=twist.reason)
        case Ending.NOT_CONFIGURED:
            return NotConfigured("not configured by the script")
        case Ending.NOT_SUPPORTED:
            return NotSupported("not supported by the script")
        case Ending.UNKNOWN_DONE | Ending.UNKNOWN_NOT_DONE if not is_read:
            return OutcomeUnknown("outcome unknown by the script")
    return Unavailable(twist.message, retry_after=twist.retry_after)


async def begin_write(clock: Clock, twists: deque[Twist]) -> Twist:
    """Take a write's next step from the script, before the write does its work. Raises: the scripted fault if the write
    must not take effect."""
    twist = _next(twists)
    if twist.ending not in (Ending.NORMAL, Ending.UNKNOWN_DONE):
        await be_silent(clock, twist)
        raise fault(twist)
    return twist


async def end_write(clock: Clock, twist: Twist) -> None:
    """Apply the script to the answer of a write. Raises: OutcomeUnknown if the answer is lost."""
    await be_silent(clock, twist)
    if twist.ending is Ending.UNKNOWN_DONE:
        raise fault(twist)


async def begin_read(clock: Clock, twists: deque[Twist]) -> Twist:
    """Take a read's next step from the script. Raises: the scripted fault."""
    twist = await spoken(clock, twists)
    if twist.ending is not Ending.NORMAL:
        raise fault(twist, is_read=True)
    return twist


async def spoken(clock: Clock, twists: deque[Twist]) -> Twist:
    """Take the next step from the script and wait for its silence, whatever its ending."""
    twist = _next(twists)
    await be_silent(clock, twist)
    return twist


async def be_silent(clock: Clock, twist: Twist) -> None:
    """Wait for the scripted silence."""
    if twist.silence > 0:
        await clock.sleep(twist.silence)


def _next(twists: deque[Twist]) -> Twist:
    return twists.popleft() if twists else Twist()
