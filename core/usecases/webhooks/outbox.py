"""Writes events, here and nowhere else: each in the unit that makes it true (docs/webhooks.md "Events")."""

from datetime import timedelta
from functools import partial
from typing import Protocol

import msgspec

from ....ports.bundle import Ports
from ....ports.jobs import Job
from ....ports.storage import Unit
from ...domain import ids
from ...domain.accounts.accounts import Account, Mode, Owned
from ...domain.payloads import Payload
from ...domain.webhooks.breaker import endpoint_id
from ...domain.webhooks.delivery import sent_anew
from ...domain.webhooks.events import Delivery, DeliveryStatus, Event, EventType
from ..schedule import FollowUp, reschedule_at
from ..test_clock import living_with
from ..units import retrying
from .feed import note_letters

DELIVER = "webhook.deliver"
RELEASE = FollowUp("webhook.release")

_RELEASE_BATCH = 500
# A unit that read the account just before its address was set may still commit a held event a moment later, so the
# release looks again after these pauses.
_RELEASE_PAUSES = (timedelta(seconds=10), timedelta(seconds=110))


class Subject(Owned, Protocol):
    """What an event is about: a payment, a refund, a subscription, …"""

    @property
    def sequence(self) -> int: ...


async def announce_of(ports: Ports, unit: Unit, subject: Subject, event_type: EventType, payload: Payload) -> None:
    """Write an event about an object that the same unit saves, with its `sequence` raised for this event."""
    account = await unit[Account].get(subject.account_id)
    event = event_of(ports, subject, event_type, payload)
    announce(ports, unit, event, receives=account is not None and account.receives)


def event_of(ports: Ports, subject: Subject, event_type: EventType, payload: Payload) -> Event:
    """The event that says `payload` of an object."""
    return Event(
        id=ids.prefixed(ids.EVENT, ports.ids.uuid()),
        account_id=subject.account_id,
        mode=subject.mode,
        type=event_type.value,
        object_id=subject.id,
        sequence=subject.sequence,
        body=msgspec.json.encode(payload),
        created_at=ports.clock.now(),
    )


def announce(ports: Ports, unit: Unit, event: Event, *, receives: bool) -> None:
    """Write an event that this unit makes true. `receives` says whether the account receives webhooks, as read in the
    same unit."""
    delivery = Delivery(
        id=event.id,
        account_id=event.account_id,
        mode=event.mode,
        type=event.type,
        status=DeliveryStatus.HELD,
        created_at=event.created_at,
    )
    unit[Event].add(event)
    unit[Delivery].add(sent_anew(delivery, receives=receives, now=event.created_at))
    note_letters(ports, unit, [(event.id, event.account_id, event.mode)])
    if receives:
        ask_to_deliver(ports, unit, event.account_id, event.mode)


def deliver_id(endpoint: str) -> str:
    """The one job that sends to a receiver."""
    return f"{DELIVER}:{endpoint}"


def ask_to_deliver(ports: Ports, unit: Unit, account_id: str, mode: Mode) -> None:
    """Have everything sent that is due at a receiver, once this unit is committed. Call it in the unit that makes
    something due. It writes the receiver's one job (dispatcher.py), or asks again where the job exists."""
    now = ports.clock.now()
    endpoint = endpoint_id(account_id, mode)
    unit[Job].accrue(Job(id=deliver_id(endpoint), kind=DELIVER, argument=endpoint, due=now, created_at=now, asked=1))


async def release(ports: Ports, unit: Unit, account_id: str) -> None:
    """Have the account's held events sent. Call it in the unit that leaves both address and secret set."""
    now = ports.clock.now()
    await RELEASE.plan(unit, account_id, now, now, anew=True)


async def release_held(ports: Ports, job: Job) -> None:
    """The job behind `release`. It works batch by batch, so that a year of held events does not make one huge unit."""

    async def one_batch(unit: Unit, mode: Mode) -> int:
        account = await unit[Account].get(job.argument)
        if account is None or not account.receives:
            return 0
        held = await unit[Delivery].find(
            account_id=account.id, mode=mode, status=DeliveryStatus.HELD, due=None, limit=_RELEASE_BATCH, readable=True
        )
        for delivery in held:
            unit[Delivery].save(sent_anew(delivery, receives=True, now=ports.clock.now()))
        if held:
            ask_to_deliver(ports, unit, account.id, mode)
        return len(held)

    for mode in Mode:
        async with living_with(ports, job.argument, mode):
            while await retrying(ports.storage, partial(one_batch, mode=mode)) == _RELEASE_BATCH:
                pass
    passed = job.attempts - 1
    due = ports.clock.now() + _RELEASE_PAUSES[passed] if passed < len(_RELEASE_PAUSES) else None
    await reschedule_at(ports, job, due)
