"""What simulated providers are told to do with their next calls, so that every end of a call can be brought about."""

from collections import deque
from collections.abc import Callable
from enum import StrEnum

import msgspec

from ..ports.clock import Clock
from ..ports.faults import Fault, NotConfigured, NotSupported, OutcomeUnknown, Refused, Unavailable
from ..ports.reporting import ReportedEntry


class Ending(StrEnum):
    """How a call ends."""

    NORMAL = "normal"
    REFUSED = "refused"
    UNAVAILABLE = "unavailable"
    NOT_CONFIGURED = "not_configured"
    NOT_SUPPORTED = "not_supported"
    UNKNOWN_DONE = "unknown_done"
    """OutcomeUnknown, and the provider did it. For reads the same as UNAVAILABLE: a failed read leaves nothing open."""
    UNKNOWN_NOT_DONE = "unknown_not_done"
    """OutcomeUnknown, and the provider never saw it. For reads the same as UNAVAILABLE."""


UNKNOWN = (Ending.UNKNOWN_DONE, Ending.UNKNOWN_NOT_DONE)


class Twist(msgspec.Struct, frozen=True, kw_only=True):
    """What one call shall do instead of behaving."""

    ending: Ending = Ending.NORMAL
    silence: float = 0.0
    """Seconds of the clock before the answer, whatever it is. What is done is done before them; what is read is read
    after them."""
    reason: str = "unknown"
    """With REFUSED."""
    message: str = "unavailable by the script"
    """With UNAVAILABLE: what operators read, such as that the wallet is empty."""
    retry_after: float | None = None
    """With UNAVAILABLE."""
    doubled: bool = False
    """A list of deposits names everything twice, the newest first."""


class ListScript:
    """What the list of a bank has other than what became of its operations."""

    def __init__(self) -> None:
        self.calls: deque[Twist] = deque()
        self.omitted: set[str] = set()
        """Operations that it lacks."""
        self.invented: list[ReportedEntry] = []
        """Entries that nothing led to."""
        self.turned: dict[str, Callable[[ReportedEntry], ReportedEntry]] = {}
        """By operation, what it makes of an entry: another amount, fee or state."""
        self.page = 100
        """Entries of a page."""


class Script:
    """What the next calls of a bank shall do, in order, for each kind of call; where nothing is left, it behaves."""

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
    """The same for a verifier."""

    def __init__(self) -> None:
        self.register: deque[Twist] = deque()
        self.find: deque[Twist] = deque()
        self.state: deque[Twist] = deque()


class SenderScript:
    """The same for a wallet."""

    def __init__(self) -> None:
        self.sign: deque[Twist] = deque()
        self.broadcast: deque[Twist] = deque()
        self.state: deque[Twist] = deque()
        self.find: deque[Twist] = deque()


class DepositScript:
    """The same for a watcher of deposits."""

    def __init__(self) -> None:
        self.address: deque[Twist] = deque()
        self.deposits: deque[Twist] = deque()


class ChainScript:
    """The same for a watcher of transactions."""

    def __init__(self) -> None:
        self.lookup: deque[Twist] = deque()


class RateScript:
    """The same for a source of rates."""

    def __init__(self) -> None:
        self.quote: deque[Twist] = deque()
        self.asked = 0
        """How often a quote was asked for."""


def fault(twist: Twist, *, is_read: bool = False) -> Fault:
    """What a call raises whose ending is not NORMAL."""
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
    """The call's part in the script, once it may do its work. Raises: where the script lets it do nothing."""
    twist = _next(twists)
    if twist.ending not in (Ending.NORMAL, Ending.UNKNOWN_DONE):
        await be_silent(clock, twist)
        raise fault(twist)
    return twist


async def end_write(clock: Clock, twist: Twist) -> None:
    """Let the script have its say about the answer. Raises: OutcomeUnknown, where it shall be lost."""
    await be_silent(clock, twist)
    if twist.ending is Ending.UNKNOWN_DONE:
        raise fault(twist)


async def begin_read(clock: Clock, twists: deque[Twist]) -> Twist:
    """The call's part in the script, once it may read. Raises: where the script lets it not."""
    twist = await spoken(clock, twists)
    if twist.ending is not Ending.NORMAL:
        raise fault(twist, is_read=True)
    return twist


async def spoken(clock: Clock, twists: deque[Twist]) -> Twist:
    """The call's part in the script, after its silence, whatever its ending."""
    twist = _next(twists)
    await be_silent(clock, twist)
    return twist


async def be_silent(clock: Clock, twist: Twist) -> None:
    """Wait as long as the call shall."""
    if twist.silence > 0:
        await clock.sleep(twist.silence)


def _next(twists: deque[Twist]) -> Twist:
    return twists.popleft() if twists else Twist()
