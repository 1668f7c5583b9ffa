"""Plan of one world, as plain data from which a shrinker can remove parts. A seed draws it (drawing.py)."""

from enum import StrEnum

import msgspec

from tests.simulation.applicant_plans import Applicant
from tests.simulation.clock_plans import Rehearsal
from tests.simulation.journey_plans import Journey
from tests.simulation.proof_plans import Handover
from tests.simulation.rotation_plans import Rotation
from tests.simulation.swap_plans import Swap
from tests.simulation.weather import FINE, Weather

HOUR = 3600.0
BEGINS_HOUR = 20
"""UTC: the world begins in the evening, so that a settlement is on the way."""
EVENING = (60.0, 2400.0)
MORNING = (12.9 * HOUR, 13.2 * HOUR)
"""Around the settlement of the next day. Nearly all that happens begins in one of the two."""
SETTLES = 13 * HOUR
"""The settlement begins."""
WINDOW_OPENS = 1 * HOUR
"""Midnight in Moscow: a new day of a subscription begins."""
MIDNIGHT = (24 - BEGINS_HOUR) * HOUR
"""UTC: the day of a settlement ends."""
CALENDAR = 1
"""The merchant whose subscriptions have the calendar scheme: a day begins at MIDNIGHT."""
TIGHT = 1
"""The merchant that may hardly be below zero."""
FAULTS_END = 14 * HOUR
"""From this moment nothing fails any more, and all work must finish."""
LAST_SETTLEMENT = 37 * HOUR
"""The one of the morning after."""
ENDS = 38 * HOUR
"""After it."""


class Payer(StrEnum):
    """Behaviour of a payer."""

    PAYS = "pays"
    NEVER = "never"
    AT_THE_END = "at the end"
    """Within a second of the end of the invoice."""
    LATE = "late"
    """After it, while it still counts."""
    TOO_LATE = "too late"
    OTHER = "other"
    """Another amount."""
    TWICE = "twice"
    AT_MIDNIGHT = "at midnight"
    """At the very moment at which a day of settlement ends, late."""


class Return(msgspec.Struct, frozen=True):
    """A refund that a merchant asks for."""

    after: float
    """Seconds after the merchant learned of the payment."""
    percent: int
    cancels_after: float | None = None
    cancels_late: bool = False
    """The merchant cancels it when it learns that it is in progress, which is too late."""
    at: float | None = None
    """At this moment, whenever the merchant learned of it."""


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """One order of a shop, from its payment to its refunds."""

    number: int
    at: float
    merchant: int
    kopecks: int
    payer: Payer
    pays_after: float
    returns: tuple[Return, ...] = ()
    doubled: bool = False
    """The merchant's client sends the creation twice at once."""


class Membership(msgspec.Struct, frozen=True, kw_only=True):
    """A subscription of a day's interval, its binding and its charges."""

    number: int
    at: float
    merchant: int
    kopecks: int
    takes_first: bool
    confirms_after: float
    charges: tuple[float, ...] = ()
    """When the merchant charges; some at the same moment."""
    cancels_at: float | None = None
    loses_at: float | None = None
    """When the payer's bank stops accepting the mandate."""
    regains_after: float | None = None
    """So many seconds later the bank accepts it again."""
    rebinds: bool = False
    """The merchant asks the payer to bind once more."""
    reprices_after: float | None = None
    """So many seconds after the creation, about when the payer binds, the merchant changes the amount."""
    reprices_to: int = 0
    """To so many kopecks."""


class Problem(StrEnum):
    """Fault of a process, or of the connections between processes."""

    CRASH = "crash"
    """It is killed `steps` steps of its own later, and started again after `seconds`."""
    STOP = "stop"
    """The process freezes for `seconds`, after `steps` more steps of its own, and then continues."""
    SET_CLOCK = "set clock"
    """Its clock is set by `seconds`."""
    CUT = "cut"
    """It reaches neither database nor providers for `seconds`."""
    STORAGE_AWAY = "storage away"
    """The database is unreachable for `seconds`."""
    DISK_FULL = "disk full"
    """The database reads, and writes nothing for `seconds`."""
    ROW_DAMAGED = "row damaged"
    """For `seconds` nobody can read one of `whom`'s rows, a merchant's, or a job."""
    APART = "apart"
    """No request and no hint reaches the process for `seconds`; it reaches the database."""
    STORAGE_FAILS = "storage fails"
    """The database server dies, and non-durable commits are lost."""
    BANK_AWAY = "bank away"
    BANK_HANGS = "bank hangs"
    """It is connected to and says nothing for `seconds`."""
    RECEIVER_HANGS = "receiver hangs"
    """It accepts webhooks and answers none."""
    RECEIVER_AWAY = "receiver away"
    """`whom` is a merchant's."""
    CHAIN_AWAY = "chain away"
    """Transactions cannot be looked up for `seconds`."""
    CLAIM_BREAKS = "claim breaks"
    """A worker's claim takes effect, and returns an unexpected value."""
    SIGNER_STOPS = "signer stops"
    """The process for which the wallet signs next freezes for `seconds` before it gets the answer."""
    EVENT_SPOILT = "event spoilt"
    """The next event of merchant `whom` cannot be read until faults stop, as of a newer program."""
    DELIVERY_SPOILT = "delivery spoilt"
    """The same of the row by which that event is delivered to the account's own receiver."""


ODD = (
    *(Problem.CHAIN_AWAY, Problem.CLAIM_BREAKS, Problem.SIGNER_STOPS),
    *(Problem.EVENT_SPOILT, Problem.DELIVERY_SPOILT),
)
"""Problems that are drawn together with their object, some of them in worlds of their own (oddities.py)."""


class Blow(msgspec.Struct, frozen=True, kw_only=True):
    """One problem."""

    at: float
    kind: Problem
    whom: str = ""
    seconds: float = 0.0
    steps: int = 0


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Plan of a world. The seed decides everything else that is random."""

    seed: int
    victim: int | None = None
    """The only merchant, beside a bank, that has faults: the others must not wait for it. None: any merchant may have
    faults."""
    machine: bool = False
    """All processes and the database go by one clock."""
    slots: int = 64
    """Jobs that a worker does at once."""
    permits: int = 1280
    """Webhooks that a worker has under way at once."""
    crowd: int = 0
    """How many of the merchants, the last ones, have receivers that hang beside the victim's."""
    wallet_finds: bool = True
    """The wallet can list what it sent for an operation."""
    signs_for: float = 0.0
    """Seconds that it may take to sign."""
    haste: float = 0.0
    """Chance that a merchant's client sends the same creation twice at once, for the creations without a draw of their
    own."""
    apis: int = 2
    workers: int = 2
    merchants: int = 3
    shuffled: bool = False
    seldom: bool = False
    """Idle workers poll seldom (surroundings.py: Pace), and so does the vigil."""
    weather: Weather = FINE
    refuses_invoices: float = 0.0
    fails_refunds: float = 0.0
    reverses_refunds: float = 0.0
    skews: tuple[float, ...] = ()
    """Initial errors of the processes' clocks in seconds, in the order of the processes."""
    fails_charges: float = 0.0
    fails_remittances: float = 0.0
    orders: tuple[Order, ...] = ()
    memberships: tuple[Membership, ...] = ()
    swaps: tuple[Swap, ...] = ()
    applicants: tuple[Applicant, ...] = ()
    handovers: tuple[Handover, ...] = ()
    rehearsals: tuple[Rehearsal, ...] = ()
    rotations: tuple[Rotation, ...] = ()
    journeys: tuple[Journey, ...] = ()
    overdraft: str = "0"
    """USDT that refunds may take below zero, of TIGHT."""
    endpoints: tuple[int, ...] = ()
    """The merchants that have a further webhook endpoint."""
    blows: tuple[Blow, ...] = ()

    @property
    def victims(self) -> tuple[int, ...]:
        """Return the merchants that have faults; empty means any."""
        if self.victim is None:
            return ()
        return (self.victim, *range(self.merchants - self.crowd, self.merchants))

    @property
    def clocks_off(self) -> float:
        """Largest difference between the clocks of two processes, in seconds."""
        set_by = [abs(blow.seconds) for blow in self.blows if blow.kind is Problem.SET_CLOCK]
        return sum(set_by, max((abs(skew) for skew in self.skews), default=0.0))

    @property
    def processes(self) -> tuple[str, ...]:
        """Names of the processes."""
        return (*(f"api{n}" for n in range(self.apis)), *(f"worker{n}" for n in range(self.workers)))
