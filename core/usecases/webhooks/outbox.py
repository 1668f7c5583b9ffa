"""The only place that writes events, each in the unit that makes it true (docs/webhooks.md "Events")."""

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from functools import partial
from typing import Protocol

from ....ports.bundle import Ports
from ....ports.jobs import Job
from ....ports.storage import Unit
from ...domain import ids
from ...domain.accounts.accounts import Account, EndpointRef, Mode, Owned
from ...domain.payloads import Payload
from ...domain.webhooks.breaker import endpoint_id
from ...domain.webhooks.delivery import AT_ONCE, LIFETIME, sent_anew
from ...domain.webhooks.endpoints import EndpointKey
from ...domain.webhooks.events import Delivery, DeliveryStatus, EndpointDelivery, Event, EventType, delivery_id
from ...domain.webhooks.wanted import untaken, wants
from ..common.account_time import as_moved, living_with
from ..common.encrypted import encrypt_event_body
from ..common.schedule import FollowUp, reschedule_at
from ..common.units import retrying
from .feed import note_letters
from .receivers import receiver_of

DELIVER = "webhook.deliver"
RELEASE = FollowUp("webhook.release")
RELEASE_TO = FollowUp("webhook.release_to")

_RELEASE_BATCH = 500
# A unit that read the account just before its address was set, or the endpoint before it was enabled, may commit a held
# event a moment later. So the release runs again after these pauses.
_RELEASE_PAUSES = (timedelta(seconds=10), timedelta(seconds=110))


class Subject(Owned, Protocol):
    """Object of an event: a payment, a refund, a subscription, …"""

    @property
    def sequence(self) -> int: ...


async def announce_of(
    ports: Ports, unit: Unit, subject: Subject, event_type: EventType, payload: Callable[[datetime], Payload]
) -> None:
    """Write an event about an object that the same unit saves, with its `sequence` raised for this event. `payload`
    builds the body from the event's moment."""
    announce_to(ports, unit, await unit[Account].get(subject.account_id), subject, event_type, payload)


def announce_to(
    ports: Ports,
    unit: Unit,
    account: Account | None,
    subject: Subject,
    event_type: EventType,
    payload: Callable[[datetime], Payload],
    *,
    retry_of: str | None = None,
    receipt_id: str | None = None,
) -> None:
    """Write the event for an account that the unit read after the object. Then the event is never earlier than the one
    before it, and its receiver has the whole backoff schedule, even if the test clock was advanced meanwhile."""
    with ports.clock.entered(as_moved(ports, account)):
        now = ports.clock.now()
        event_id = ids.prefixed(ids.EVENT, ports.ids.uuid())
        event = Event(
            id=event_id,
            account_id=subject.account_id,
            mode=subject.mode,
            type=event_type.value,
            object_id=subject.id,
            sequence=subject.sequence,
            body=encrypt_event_body(ports.vault, event_id, payload(now)),
            created_at=now,
            retry_of=retry_of,
            receipt_id=receipt_id,
        )
        announce(ports, unit, event, account)


def announce(ports: Ports, unit: Unit, event: Event, account: Account | None) -> None:
    """Write an event that this unit makes true. `account` was read in the same unit."""
    receives = account is not None and account.receives
    wanted = account is None or _own_wants(account, event)
    delivery = Delivery(
        id=event.id,
        account_id=event.account_id,
        mode=event.mode,
        type=event.type,
        status=DeliveryStatus.HELD if wanted else DeliveryStatus.SKIPPED,
        created_at=event.created_at,
    )
    unit[Event].add(event)
    if wanted:
        delivery = sent_anew(delivery, receives=receives, now=event.created_at)
    unit[Delivery].add(delivery)
    if account is not None and account.endpoints is not None:
        _announce_further(ports, unit, event, account.further(event.mode))
    note_letters(ports, unit, [(event.id, event.account_id, event.mode)])
    if receives and wanted:
        ask_to_deliver(ports, unit, event.account_id, event.mode)


def _own_wants(account: Account, event: Event) -> bool:
    """Return whether the account's own endpoint receives the event. It also receives a type of ALWAYS that no endpoint
    lists, because the lists may be from a version that knew fewer types."""
    own = account.settings.webhook_events
    return wants(own, event.type) or event.type in untaken(
        (own, *(each.event_types for each in account.further(event.mode) if each.enabled))
    )


def _announce_further(ports: Ports, unit: Unit, event: Event, endpoints: Iterable[EndpointRef]) -> None:
    for each in endpoints:
        if wants(each.event_types, event.type):
            unit[EndpointDelivery].add(further_delivery(event, each.id))
            ask_to_deliver(ports, unit, event.account_id, event.mode, each.id)


def further_delivery(event: Event, endpoint_id: str, now: datetime | None = None) -> EndpointDelivery:
    """Return the delivery of an event to a further endpoint, due at once. `now`: the current time, if later than the
    event."""
    return EndpointDelivery(
        id=delivery_id(event.id, endpoint_id),
        account_id=event.account_id,
        mode=event.mode,
        type=event.type,
        status=DeliveryStatus.PENDING,
        created_at=event.created_at,
        due=AT_ONCE,
        give_up_at=(now or event.created_at) + LIFETIME,
        endpoint_id=endpoint_id,
    )


def deliver_id(endpoint: str) -> str:
    """Return the id of the one job that sends to a receiver."""
    return f"{DELIVER}:{endpoint}"


def ask_to_deliver(ports: Ports, unit: Unit, account_id: str, mode: Mode, further: str | None = None) -> None:
    """Request delivery of everything due at an endpoint, the account's own or a further one, after this unit commits.
    Call it in the unit that makes something due. It writes the endpoint's one job (dispatcher.py), or renews the
    request if the job exists."""
    now = ports.clock.now()
    endpoint = endpoint_id(account_id, mode, further)
    unit[Job].accrue(Job(id=deliver_id(endpoint), kind=DELIVER, argument=endpoint, due=now, created_at=now, asked=1))


async def release(ports: Ports, unit: Unit, account_id: str) -> None:
    """Send the account's held events. Call it in the unit that completes address and secret."""
    now = ports.clock.now()
    await RELEASE.plan(unit, account_id, now, now, anew=True)


async def release_to(ports: Ports, unit: Unit, endpoint: EndpointKey) -> None:
    """Send the held events of a further endpoint. Call it in the unit that enables it."""
    now = ports.clock.now()
    await RELEASE_TO.plan(unit, endpoint.id, now, now, anew=True)


async def release_held(ports: Ports, job: Job) -> None:
    """Run the job of `release`."""
    await _release(ports, job, [EndpointKey(job.argument, mode) for mode in Mode])


async def release_held_to(ports: Ports, job: Job) -> None:
    """Run the job of `release_to`."""
    await _release(ports, job, [EndpointKey.of(job.argument)])


async def _release(ports: Ports, job: Job, endpoints: Iterable[EndpointKey]) -> None:
    """Release in batches, so that a year of held events does not make one huge unit."""

    async def one_batch(unit: Unit, endpoint: EndpointKey) -> int:
        if await receiver_of(unit, endpoint) is None:
            return 0
        deliveries = unit[endpoint.deliveries]
        waiting = endpoint.of_status(DeliveryStatus.HELD, due=None)
        held = await deliveries.find(**waiting, limit=_RELEASE_BATCH, quick=True, readable=True)
        for delivery in held:
            deliveries.save(sent_anew(delivery, receives=True, now=ports.clock.now()))
        if held:
            ask_to_deliver(ports, unit, endpoint.account_id, endpoint.mode, endpoint.further)
        return len(held)

    for endpoint in endpoints:
        async with living_with(ports, endpoint.account_id, endpoint.mode):
            while await retrying(ports.storage, partial(one_batch, endpoint=endpoint)) == _RELEASE_BATCH:
                pass
    passed = job.attempts - 1
    due = ports.clock.now() + _RELEASE_PAUSES[passed] if passed < len(_RELEASE_PAUSES) else None
    await reschedule_at(ports, job, due)
