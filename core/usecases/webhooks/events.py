"""Views of events for merchants and operators: lists, and one event with its webhooks (docs/webhooks.md "Looking, and
sending again")."""

from collections.abc import Callable, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from ....ports.bundle import Ports
from ....ports.storage import Between, OneOf, Snapshot, Unit
from ...domain import ids
from ...domain import shared_fields as shared
from ...domain.accounts.accounts import Caller, Mode
from ...domain.days import read_moment
from ...domain.errors import Refusal, read_choice
from ...domain.list_counts import ListCount
from ...domain.webhooks.events import EVENT_KEPT, Attempt, Delivery, DeliveryStatus, EndpointDelivery, Event, EventType
from ..common.encrypted import open_event_body
from ..common.keyset import Count, Cursor, Listed, Listing, count, cut_page, keyset_page, with_records
from ..common.long_lists import LongList, keep, page_within
from ..common.paging import MomentFilter, Page, Position
from .receivers import all_attempts, further_deliveries, last_attempts, own_endpoint

_OF_ONE_OBJECT = 1000
"""Maximum number of listed events of one object, far more than any object has."""

T = TypeVar("T", bound=StrEnum)


class EventQuery(MomentFilter, frozen=True, kw_only=True):
    """Query values as received; None when absent. `since` (inclusive) and `until` (exclusive) are older names of
    `created_from` and `created_to`."""

    type: str | None = None
    object_id: str | None = None
    delivery_status: str | None = None
    since: str | None = msgspec.field(default=None, name="from")
    until: str | None = msgspec.field(default=None, name="to")


class EventRange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Body of POST /events/resend."""

    since: Annotated[shared.MomentText, Meta(description="Start of the range, inclusive")] = msgspec.field(name="from")
    until: Annotated[shared.MomentText, Meta(description="End of the range, exclusive")] = msgspec.field(name="to")
    type: Annotated[
        Annotated[str, shared.among(EventType)] | None, Meta(description="Only events of this type; all if absent")
    ] = None
    delivery_status: Annotated[
        Annotated[str, shared.among(DeliveryStatus)] | None,
        Meta(description="Only deliveries in this status; all if absent"),
    ] = None
    endpoint_id: Annotated[
        Annotated[str, shared.limits(maxLength=64)] | None,
        Meta(description="Resend to this further endpoint instead of the account's own"),
    ] = None

    @property
    def query(self) -> EventQuery:
        return EventQuery(type=self.type, delivery_status=self.delivery_status, since=self.since, until=self.until)


class Told(msgspec.Struct, frozen=True):
    """An event, its delivery, and the last webhook."""

    event: Event
    delivery: Delivery
    last: Attempt | None


class ToldWhole(msgspec.Struct, frozen=True):
    """An event with its deliveries to further endpoints, and all webhooks in the order sent."""

    told: Told
    payload: bytes
    """The event's unencrypted body."""
    attempts: list[Attempt]
    further: list[EndpointDelivery]


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """A validated query. It is also the argument of the job that resends a range."""

    owner: dict[str, str]
    type: EventType | None = None
    object_id: str | None = None
    status: DeliveryStatus | None = None
    low: datetime | None = None
    high: datetime | None = None
    done: int = 0
    """Number of finished events created exactly at `low`."""
    endpoint_id: str | None = None
    """Further endpoint to resend to. The status then refers to its deliveries."""
    run_id: str | None = None
    """The ResendRun whose progress the job reports."""

    def events(self) -> dict[str, Any]:
        """Return criteria for events, without the delivery status."""
        kind = {} if self.type is None else {"type": self.type}
        return {**self.owner, **kind, "created_at": Between(self.low, self.high)}

    def deliveries(self) -> dict[str, Any]:
        """Return criteria for deliveries of the wanted status. Only pending deliveries have a `due`; requiring its
        absence for the others lets the index give the order."""
        due = {} if self.status is DeliveryStatus.PENDING else {"due": None}
        endpoint = {} if self.endpoint_id is None else {"endpoint_id": self.endpoint_id}
        return {**self.events(), **due, **endpoint, "status": self.status}

    def takes(self, event: Event) -> bool:
        """Return whether an event meets all criteria except the delivery status."""
        return (
            all(getattr(event, name) == value for name, value in self.owner.items())
            and self.type in (None, event.type)
            and (self.low is None or self.low <= event.created_at)
            and (self.high is None or event.created_at < self.high)
        )


def read_query(owner: dict[str, str], asked: EventQuery) -> Wanted:
    kind, made = asked.type, asked.made()
    since = None if asked.since is None else read_moment("from", asked.since)
    until = None if asked.until is None else read_moment("to", asked.until)
    return Wanted(
        owner=owner,
        type=None if kind is None else read_choice("type", kind, EventType),
        object_id=asked.object_id,
        status=None
        if asked.delivery_status is None
        else read_choice("delivery_status", asked.delivery_status, DeliveryStatus),
        low=max((each for each in (since, made.low) if each is not None), default=None),
        high=min((each for each in (until, made.high) if each is not None), default=None),
    )


def owner_of(account_id: str | None, mode: Mode | None) -> dict[str, str]:
    owner = {"account_id": account_id, "mode": mode}
    return {name: value for name, value in owner.items() if value is not None}


async def list_events(ports: Ports, caller: Caller, asked: EventQuery, number: int, size: int) -> Page[Told]:
    """Return a page of the caller's events, newest first. Raises: Refusal VALIDATION_ERROR."""
    wanted = read_query(owner_of(caller.account_id, caller.mode), asked)
    if wanted.object_id is not None or wanted.status is not None:
        async with ports.storage.snapshot() as seen:
            total, events = await _page(seen, wanted, number, size)
        return Page(events, number, size, total)
    name = "events" if wanted.type is None else f"events.{wanted.type}"
    long = LongList(
        kind=Event,
        caller=caller,
        name=name,
        made=Between(wanted.low, wanted.high),
        criteria={} if wanted.type is None else {"type": wanted.type},
        kept=EVENT_KEPT,
    )
    fresh: list[ListCount] = []
    async with ports.storage.snapshot() as seen:
        found = await page_within(seen, long, number, size, ports.clock.now(), fresh)
        told = await _joined(seen, found.records, await deliveries_of(seen, found.records))
    await keep(ports, fresh)
    return Page(told, number, size, found.total)


async def browse_events(
    ports: Ports, caller: Caller, asked: EventQuery, cursor: Cursor | None, size: int
) -> Listed[Told]:
    """Return a page of the caller's events by cursor, newest first. Raises: Refusal VALIDATION_ERROR."""
    wanted = read_query(owner_of(caller.account_id, caller.mode), asked)
    async with ports.storage.snapshot() as seen:
        if wanted.object_id is not None:
            total, told = await _of_object(seen, wanted, wanted.object_id, 0, _OF_ONE_OBJECT)
            page = cut_page(told, _position, cursor, size)
            return Listed(page=page, count=Count(total))
        made = Between(wanted.low, wanted.high)
        kind = {} if wanted.type is None else {"type": wanted.type}
        if wanted.status is None:
            events_of = Listing(kind=Event, criteria={**wanted.owner, **kind}, made=made)
            found = await keyset_page(seen, events_of, cursor, size)
            told = await _joined(seen, found.records, await deliveries_of(seen, found.records))
            return Listed(page=with_records(found, told), count=await count(seen, events_of, cursor, found))
        # Only pending deliveries have a `due`; requiring its absence for the others lets the index give the order.
        due = {} if wanted.status is DeliveryStatus.PENDING else {"due": None}
        criteria = {**wanted.owner, **due, "status": wanted.status}
        sent = Listing(kind=Delivery, criteria=criteria, also=kind, made=made, is_by_id=True)
        deliveries = await keyset_page(seen, sent, cursor, size)
        ids_of = OneOf(tuple(each.id for each in deliveries.records))
        events = await seen[Event].find(id=ids_of, order="-id", limit=size, readable=True) if ids_of.values else []
        told = await _joined(seen, events, deliveries.records)
        return Listed(page=with_records(deliveries, told), count=await count(seen, sent, cursor, deliveries))


def _position(told: Told) -> Position:
    return Position(told.event.created_at, told.event.id)


class EndpointEventFilter(MomentFilter, frozen=True, kw_only=True):
    """Query values of GET /webhook-endpoints/{id}/events as received; None when absent."""

    delivery_status: str | None = None


async def list_endpoint_events(
    ports: Ports,
    caller: Caller,
    endpoint_id: str,
    asked: EndpointEventFilter,
    read_page: Callable[[], tuple[int, int]],
) -> Page[Told]:
    """Return a page of a further endpoint's events with their deliveries there, newest first. `read_page` parses the
    page number and size, after the endpoint has been found.

    Raises: Refusal WEBHOOK_ENDPOINT_NOT_FOUND, VALIDATION_ERROR.
    """
    async with ports.storage.snapshot() as seen:
        await own_endpoint(seen, caller, endpoint_id)
        number, size = read_page()
        criteria: dict[str, Any] = {"endpoint_id": endpoint_id, "created_at": asked.made()}
        if asked.delivery_status is not None:
            criteria["status"] = read_choice("delivery_status", asked.delivery_status, DeliveryStatus)
            # Only pending deliveries have a `due`. Requiring its absence lets the index give the order.
            criteria |= {} if criteria["status"] is DeliveryStatus.PENDING else {"due": None}
        total = await seen[EndpointDelivery].total(**criteria)
        deliveries = await seen[EndpointDelivery].page(number, size, order="-id", readable=True, **criteria)
        ids_of = OneOf(tuple(each.event_id for each in deliveries))
        found = await seen[Event].find(id=ids_of, order="-id", limit=size, readable=True) if deliveries else []
        return Page(await _joined(seen, found, deliveries), number, size, total)


async def find_events(
    ports: Ports, asked: EventQuery, *, account_id: str | None, mode: Mode | None, limit: int
) -> list[Told]:
    """Return the newest events of all accounts, of one account, or of one mode. Raises: Refusal VALIDATION_ERROR."""
    wanted = read_query(owner_of(account_id, mode), asked)
    async with ports.storage.snapshot() as seen:
        _, events = await _page(seen, wanted, 1, limit)
    return events


async def _page(seen: Snapshot, wanted: Wanted, number: int, size: int) -> tuple[int, list[Told]]:
    """Return the total and a page. An unreadable row is counted, and its position on the page stays empty."""
    if wanted.object_id is not None:
        return await _of_object(seen, wanted, wanted.object_id, (number - 1) * size, size)
    if wanted.status is not None:
        criteria = wanted.deliveries()
        total = await seen[Delivery].total(**criteria)
        deliveries = await seen[Delivery].page(number, size, readable=True, **criteria)
        ids_of = OneOf(tuple(each.id for each in deliveries))
        found = await seen[Event].find(id=ids_of, order="-id", limit=size, readable=True)
        return total, await _joined(seen, found, deliveries)
    criteria = wanted.events()
    total = await seen[Event].total(**criteria)
    events = await seen[Event].page(number, size, order="-created_at", readable=True, **criteria)
    return total, await _joined(seen, events, await deliveries_of(seen, events))


async def _of_object(seen: Snapshot, wanted: Wanted, object_id: str, offset: int, size: int) -> tuple[int, list[Told]]:
    """Read all events of an object, because it has few, and filter them here."""
    if not object_id or "\0" in object_id or not object_id.isascii():
        return 0, []
    found = await seen[Event].find(object_id=object_id, order="-created_at", limit=_OF_ONE_OBJECT, readable=True)
    events = [event for event in found if wanted.takes(event)]
    deliveries = [each for each in await deliveries_of(seen, events) if wanted.status in (None, each.status)]
    told = await _joined(seen, events, deliveries)
    return len(told), told[offset : offset + size]


async def deliveries_of(seen: Snapshot | Unit, events: list[Event]) -> list[Delivery]:
    if not events:
        return []
    ids_of = OneOf(tuple(event.id for event in events))
    return await seen[Delivery].find(id=ids_of, limit=len(events), readable=True)


async def _joined(seen: Snapshot, events: list[Event], deliveries: Sequence[Delivery]) -> list[Told]:
    """Join events with their deliveries and last webhooks. Events without a delivery are left out."""
    of_event = {delivery.event_id: delivery for delivery in deliveries}
    last = {attempt.event_id: attempt for attempt in (await last_attempts(seen, deliveries)).values()}
    return [Told(event, of_event[event.id], last.get(event.id)) for event in events if event.id in of_event]


async def get_event(ports: Ports, caller: Caller, event_id: str) -> ToldWhole:
    """Return one event of the caller's account and mode. Raises: Refusal EVENT_NOT_FOUND; VaultError."""
    async with ports.storage.snapshot() as seen:
        told = await told_of(seen, event_id, caller)
        further = await further_deliveries(seen, [told.event])
        attempts = await all_attempts(seen, event_id, (told.delivery, *further))
        return ToldWhole(told, open_event_body(ports.vault, told.event), attempts, further)


async def told_of(seen: Snapshot | Unit, event_id: str, caller: Caller | None) -> Told:
    event = delivery = None
    if ids.is_prefixed(ids.EVENT, event_id):
        event, delivery = await seen[Event].get(event_id), await seen[Delivery].get(event_id)
    if event is None or delivery is None or not (caller is None or _owns(caller, event)):
        raise Refusal("EVENT_NOT_FOUND", "No event of this id")
    return Told(event, delivery, (await last_attempts(seen, [delivery])).get(delivery.id))


def _owns(caller: Caller, event: Event) -> bool:
    return event.account_id == caller.account_id and event.mode is caller.mode
