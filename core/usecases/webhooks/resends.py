"""Resending of events, one or many (docs/webhooks.md "When you do not answer", "Looking, and sending again")."""

from datetime import datetime, timedelta

import msgspec

from ....ports.bundle import Ports
from ....ports.jobs import Job
from ....ports.storage import OneOf, Unit
from ...domain.accounts.accounts import Account, Caller, Mode
from ...domain.errors import shape_error
from ...domain.webhooks.delivery import held, sent_anew
from ...domain.webhooks.endpoints import WebhookEndpoint
from ...domain.webhooks.events import Delivery, EndpointDelivery, Event, delivery_id
from ...domain.webhooks.resends import ResendRun, advanced
from ..common.account_time import in_test_time_of_account, living_with
from ..common.schedule import is_ours
from ..common.units import retrying, unit_of_work
from .events import EventQuery, Told, Wanted, deliveries_of, owner_of, read_query, told_of
from .feed import note_letters
from .outbox import ask_to_deliver, further_delivery
from .receivers import endpoint_of, last_attempts

RESEND = "webhook.resend"
RESEND_TO = "webhook.resend_to"
"""Job kind for a further endpoint. It is a kind of its own, because older versions would resend to the account's own
endpoint."""

_NEW = ("endpoint_deliveries_id",)
_BATCH = 100
"""Events per unit of work. Its statements block other writers, so a unit should take only milliseconds."""


async def resend_event(ports: Ports, caller: Caller | None, event_id: str, endpoint_id: str | None = None) -> Told:
    """Resend an event now, whatever its delivery status. The delivery gets a new backoff schedule, and its attempts are
    numbered on. `endpoint_id`: resend to this further endpoint, even if the event was never sent there. None: resend to
    the account's own endpoint.

    Without a caller the request is an operator's, for any account. Behind an open breaker the event waits for it;
    without a receiver it is held.

    Raises: Refusal EVENT_NOT_FOUND, WEBHOOK_ENDPOINT_NOT_FOUND.
    """

    async def work(unit: Unit) -> Told:
        told = await told_of(unit, event_id, caller)
        if endpoint_id is not None:
            return await _send_further(ports, unit, told, endpoint_id)
        account = await unit[Account].get(told.event.account_id)
        [after] = _send_anew(ports, unit, account, told.event.mode, [told.delivery])
        return msgspec.structs.replace(told, delivery=after)

    async with ports.storage.unit() as unit:
        event = (await told_of(unit, event_id, caller)).event
    async with living_with(ports, event.account_id, event.mode):
        return await retrying(ports.storage, work, again_on=_NEW)


async def _send_further(ports: Ports, unit: Unit, told: Told, endpoint_id: str) -> Told:
    endpoint = await endpoint_of(unit, told.event.account_id, told.event.mode, endpoint_id)
    [after] = await _send_to(ports, unit, endpoint, [told.event])
    return msgspec.structs.replace(told, delivery=after, last=(await last_attempts(unit, [after])).get(after.id))


async def _send_to(ports: Ports, unit: Unit, endpoint: WebhookEndpoint, events: list[Event]) -> list[EndpointDelivery]:
    """Send events to a further endpoint, again or for the first time."""
    if not events:
        return []
    now, repository, key = ports.clock.now(), unit[EndpointDelivery], endpoint.key
    wanted = tuple(delivery_id(event.id, endpoint.id) for event in events)
    found = {each.id: each for each in await repository.find(id=OneOf(wanted), limit=len(wanted), readable=True)}
    sent = []
    for event, made in zip(events, wanted, strict=True):
        present = found.get(made)
        if present is None:
            first = further_delivery(event, endpoint.id, now)
            sent.append(repository.add(first if endpoint.enabled else held(first)))
        else:
            sent.append(repository.save(sent_anew(present, receives=endpoint.enabled, now=now)))
    if endpoint.enabled:
        ask_to_deliver(ports, unit, key.account_id, key.mode, key.further)
    return sent


def _send_anew(
    ports: Ports, unit: Unit, account: Account | None, mode: Mode, deliveries: list[Delivery]
) -> list[Delivery]:
    receives = account is not None and account.receives
    now = ports.clock.now()
    if account is not None and receives and deliveries:
        ask_to_deliver(ports, unit, account.id, mode)
    note_letters(ports, unit, [(each.id, each.account_id, mode) for each in deliveries], resent=True)
    return [unit[Delivery].save(sent_anew(each, receives=receives, now=now)) for each in deliveries]


@in_test_time_of_account
async def resend_range(
    ports: Ports, account_id: str, mode: Mode, asked: EventQuery, endpoint_id: str | None = None
) -> int:
    """Schedule all events of a range for resending, and return their number. A job resends them in batches.
    `endpoint_id`: resend to this further endpoint, and match the wanted status against its deliveries. None: resend to
    the account's own endpoint.

    Raises: Refusal VALIDATION_ERROR, WEBHOOK_ENDPOINT_NOT_FOUND.
    """
    now = ports.clock.now()
    wanted = read_range(account_id, mode, asked, endpoint_id, now)
    async with ports.storage.unit() as unit:
        total = await count_range(unit, wanted)
        if total:
            add_range(ports, unit, wanted, now)
            await unit.commit()
    return total


def read_range(account_id: str, mode: Mode, asked: EventQuery, endpoint_id: str | None, now: datetime) -> Wanted:
    """Return the events of a range until now. Raises: Refusal VALIDATION_ERROR."""
    wanted = msgspec.structs.replace(read_query(owner_of(account_id, mode), asked), endpoint_id=endpoint_id)
    if wanted.low is None or wanted.high is None or wanted.low >= wanted.high:
        raise shape_error("to", "must be later than from")
    # Leave out events that are created while the job runs.
    return msgspec.structs.replace(wanted, high=min(wanted.high, now + timedelta(microseconds=1)))


async def count_range(unit: Unit, wanted: Wanted) -> int:
    """Return the number of events of a range. Raises: Refusal WEBHOOK_ENDPOINT_NOT_FOUND."""
    if wanted.endpoint_id is not None:
        await endpoint_of(unit, wanted.owner["account_id"], Mode(wanted.owner["mode"]), wanted.endpoint_id)
    if wanted.status is None:
        return await unit[Event].total(**wanted.events())
    if wanted.endpoint_id is None:
        return await unit[Delivery].total(**wanted.deliveries())
    return await unit[EndpointDelivery].total(**wanted.deliveries())


def add_range(ports: Ports, unit: Unit, wanted: Wanted, now: datetime, *, run_id: str | None = None) -> None:
    """Add the job that resends a range. `run_id`: the run whose progress it reports."""
    argument = msgspec.json.encode(msgspec.structs.replace(wanted, run_id=run_id)).decode()
    kind = RESEND if wanted.endpoint_id is None else RESEND_TO
    unit[Job].add(Job(id=f"{kind}:{ports.ids.uuid()}", kind=kind, argument=argument, due=now, created_at=now))


@unit_of_work(again_on=_NEW)
async def resend_batch(ports: Ports, unit: Unit, job: Job) -> None:
    """Run the job of `resend_range`: resend the next batch, oldest events first. Its progress is in the job's argument,
    saved with the batch, so no event is resent twice."""
    present = await unit[Job].get(job.id)
    if present is None or not is_ours(present, job):
        return
    wanted = msgspec.json.decode(present.argument, type=Wanted)
    run = None if wanted.run_id is None else await unit[ResendRun].get(wanted.run_id)
    if wanted.run_id is not None and (run is None or run.ended_at is not None):
        unit[Job].remove(present)
        return
    events = await unit[Event].find(
        order="created_at", offset=wanted.done, limit=_BATCH, readable=True, **wanted.events()
    )
    if wanted.endpoint_id is None:
        deliveries = [each for each in await deliveries_of(unit, events) if wanted.status in (None, each.status)]
        account = await unit[Account].get(wanted.owner["account_id"])
        sent = len(_send_anew(ports, unit, account, Mode(wanted.owner["mode"]), deliveries))
    else:
        sent = await _send_range_to(ports, unit, wanted, wanted.endpoint_id, events)
    if run is not None:
        unit[ResendRun].save(advanced(run, sent, ports.clock.now(), over=len(events) < _BATCH))
    if len(events) < _BATCH:
        unit[Job].remove(present)
        return
    argument = msgspec.json.encode(_after(wanted, events)).decode()
    unit[Job].save(msgspec.structs.replace(present, argument=argument, leased_until=None, attempts=0))


async def _send_range_to(ports: Ports, unit: Unit, wanted: Wanted, endpoint_id: str, events: list[Event]) -> int:
    """Send events of a range to a further endpoint, and return their number. A deleted endpoint gets none."""
    endpoint = await unit[WebhookEndpoint].get(endpoint_id)
    if endpoint is None:
        return 0
    if wanted.status is not None:
        of = tuple(delivery_id(event.id, endpoint_id) for event in events)
        found = await unit[EndpointDelivery].find(id=OneOf(of), limit=len(of), readable=True) if of else []
        there = {each.event_id for each in found if each.status is wanted.status}
        events = [event for event in events if event.id in there]
    return len(await _send_to(ports, unit, endpoint, events))


def _after(wanted: Wanted, events: list[Event]) -> Wanted:
    """Return the rest of the range after these events."""
    last = events[-1].created_at
    done = sum(event.created_at == last for event in events)
    return msgspec.structs.replace(wanted, low=last, done=done + (wanted.done if last == wanted.low else 0))
