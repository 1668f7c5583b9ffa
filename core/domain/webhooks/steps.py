"""The steps for an endpoint that endpoint_state.py plans and the endpoint worker performs."""

from collections.abc import Sequence
from enum import Enum

import msgspec

from .delivery import Outcome
from .endpoints import Receiver
from .events import Delivery, OpenEvent


class ReadEndpoint(msgspec.Struct, frozen=True):
    """Read receiver, breaker and job; when serving begins, also the storage's time, which decides whether to probe."""

    begins: bool


class ReadJob(msgspec.Struct, frozen=True):
    """Read whether this worker still owns the job, and whether it was requested again."""


class ReadDue(msgspec.Struct, frozen=True):
    """Read a page of due deliveries: at most `limit`, the earliest due first. With `after`, only deliveries that are
    due AT_ONCE and follow this one."""

    limit: int
    after: str | None


class Send(msgspec.Struct, frozen=True):
    """Send with one more permit: first the webhook from `EndpointState.begun`, then the following ones."""


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
    """Why pending deliveries may not be sent."""

    RECEIVER = "receiver"
    """The endpoint has no address, so they are held; if a further endpoint was deleted, they are deleted, too."""
    BREAKER = "breaker"
    """The breaker is open: due deliveries wait only for it, and then go out in the order of age."""


class Commit(msgspec.Struct, frozen=True):
    """Store results in the order of their arrival."""

    sent: Sequence[Sent] = ()
    unsent: Sequence[Delivery] = ()
    """New state of deliveries that were given up or postponed. A delivery that changed since it was read is skipped."""
    aside: Aside | None = None
    """First mark the pending deliveries as waiting for this."""
    leaves: bool = False
    """Nothing more is due, or may be sent: the same unit removes the job, unless it was requested again meanwhile."""
    unsure: bool = False
    """Nothing was found due: read from the storage what is due next."""


class Wait(msgspec.Struct, frozen=True):
    """Wait until the customer is woken."""


class Leave(msgspec.Struct, frozen=True):
    """Stop serving the endpoint while its job exists. `release`: another worker may claim it after `pause` seconds.
    Otherwise another worker already has it, or the run failed: nothing is written."""

    release: bool
    pause: float = 0.0


Read = ReadEndpoint | ReadJob | ReadDue
Step = Send | Commit | Read | Wait | Leave
