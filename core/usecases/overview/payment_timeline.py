"""Reading of a payment's timeline (docs/dashboard.md "Payments")."""

import logging
from typing import Any

import msgspec

from ....ports.bundle import Ports
from ....ports.vault import VaultError
from ...domain.accounts.accounts import Caller
from ...domain.payments.payments import Payment
from ...domain.people.timeline import SeenEvent, Step, timeline
from ...domain.refunds.refunds import Refund
from ..common.encrypted import open_event_body
from ..payments.transfers import MOST, list_transfers
from ..people.payment_notes import names_of, read_book
from ..webhooks.events import EventQuery, Told, list_events

EVENTS_READ = 50
"""Events of the payment, and of each of its refunds, that are read."""

log = logging.getLogger("cambist.dashboard")


class ShownStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step with the address of the person who did it."""

    step: Step
    person: str | None

    def __repr__(self) -> str:
        return f"ShownStep({self.step.kind!r}, ***)"


async def read_timeline(ports: Ports, caller: Caller, payment: Payment, refunds: list[Refund]) -> list[ShownStep]:
    """Return the timeline of a payment that the caller may see, with its refunds. Raises: VaultError."""
    transfers = await list_transfers(ports, caller, payment.id, 1, MOST)
    events: list[SeenEvent] = []
    for object_id in (payment.id, *(each.id for each in refunds)):
        found = await list_events(ports, caller, EventQuery(object_id=object_id), 1, EVENTS_READ)
        events += (_seen(ports, each) for each in found.records)
    book = await read_book(ports, payment)
    steps = timeline(payment, transfers.records, refunds, events, book.sent)
    async with ports.storage.snapshot() as seen:
        names = await names_of(ports, seen, {each.person for each in steps if each.person is not None})
    return [ShownStep(step=each, person=names.get(each.person or "")) for each in steps]


def _seen(ports: Ports, told: Told) -> SeenEvent:
    return SeenEvent(
        id=told.event.id,
        type=told.event.type,
        object_id=told.event.object_id,
        at=told.event.created_at,
        status=_status(ports, told),
        delivery=told.delivery.status,
        delivered_at=told.delivery.delivered_at,
        last_at=None if told.last is None else told.last.sent_at,
    )


def _status(ports: Ports, told: Told) -> str | None:
    """Return the status in the event's body; None for a body that cannot be read."""
    try:
        body: dict[str, Any] = msgspec.json.decode(open_event_body(ports.vault, told.event), type=dict[str, Any])
    except (VaultError, msgspec.DecodeError):
        log.warning("the body of event %s cannot be read", told.event.id)
        return None
    status = body.get("status")
    return status if isinstance(status, str) else None
