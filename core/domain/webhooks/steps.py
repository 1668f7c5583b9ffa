"""What is done next for an endpoint: the steps that endpoint_state.py plans and the endpoint worker performs."""

from collections.abc import Sequence
from enum import Enum

import msgspec

from .delivery import Outcome
from .endpoints import Receiver
from .events import Delivery, OpenEvent


class ReadEndpoint(msgspec.Struct, frozen=True):
    """Read receiver, breaker and job; where serving begins, the storage's time, too, by which it is judged whether to
    probe."""

    begins: bool


class ReadJob(msgspec.Struct, frozen=True):
    """Read whether the job is still ours, and was asked for again."""


class ReadDue(msgspec.Struct, frozen=True):
    """Read a page of what is due: at most `limit`, the earliest due first. With `after` only what is due AT_ONCE and
    comes after this delivery."""

    limit: int
    after: str | None


class Send(msgspec.Struct, frozen=True):
    """Send with one more permit: what `EndpointState.begun` says, and then what follows."""


class Webhook(msgspec.Struct, frozen=True, gc=False):
    """A delivery to be sent, signed for its receiver."""

    receiver: Receiver
    delivery: Delivery
    event: OpenEvent
    probe: bool


class Sent(msgspec.Struct, frozen=True, gc=False):
    """The result of one webhook, answered or not: the delivery as it was before, and the outcome."""

    delivery: Delivery
    outcome: Outcome


class Aside(Enum):
    """What pending deliveries wait for that may not be sent."""

    RECEIVER = "receiver"
    """The endpoint has no address, so they are held; a further one is gone, and they with it."""
    BREAKER = "breaker"
    """It is open: what came due waits for it alone, to leave in the order of age."""


class Commit(msgspec.Struct, frozen=True):
    """Store results in the order in which they came."""

    sent: Sequence[Sent] = ()
    unsent: Sequence[Delivery] = ()
    """Deliveries that were given up or put off: as they are to be, unless they moved since they were read."""
    aside: Aside | None = None
    """Have what is pending wait for this first."""
    leaves: bool = False
    """Nothing more is due, or may be sent: the same unit removes the job, unless somebody asked for it meanwhile."""
    unsure: bool = False
    """Nothing was found due: ask the storage what is due next."""


class Wait(msgspec.Struct, frozen=True):
    """Wait until the customer is stirred."""


class Leave(msgspec.Struct, frozen=True):
    """Serve the endpoint no more, though its job stands. `release`: whoever claims it next shall have it, after `pause`
    seconds. Else the job is another worker's already, or the run failed: nothing is written."""

    release: bool
    pause: float = 0.0


Read = ReadEndpoint | ReadJob | ReadDue
Step = Send | Commit | Read | Wait | Leave
