"""Lists of webhook events and their receivers, for operators, over all accounts.

Events in the order of time are listed like all other objects. The status of a delivery is stored for each receiver: an
account in one mode, or a further endpoint. So a list by status merges the receivers' own orders. For failed deliveries
it merges only receivers that ever failed.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import AtLeast, OneOf, Unit
from ...domain.accounts.accounts import Account
from ...domain.days import LONG_AGO, iso
from ...domain.errors import Refusal
from ...domain.webhooks.breaker import Breaker
from ...domain.webhooks.endpoints import EndpointKey, WebhookEndpoint
from ...domain.webhooks.events import Attempt, Delivery, DeliveryStatus, EndpointDelivery, Event, EventType
from ..webhooks.events import EventQuery, deliveries_of
from ..webhooks.receivers import further_deliveries, last_attempts
from ..webhooks.resends import resend_range
from .browse import LOOKED_AT, Wanted, browse, merged, sifted
from .leaves import Leaf, Way

_S = DeliveryStatus
_MANY = frozenset([_S.DELIVERED, _S.SKIPPED, _S.HELD])
"""Statuses that may have as many deliveries as there are events."""
FEW = 500
"""Up to this many deliveries of a status are read one by one to find those of an event type."""
_ACCOUNTS = 1000
_RECEIVERS = 2000


class TrackedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event, its delivery to one receiver, and the last webhook. It changes when the delivery changes."""

    event: Event
    delivery: Delivery
    last: Attempt | None = None

    @property
    def id(self) -> str:
        """Id of the delivery: the event's id, and for a further endpoint also the endpoint's id."""
        return self.delivery.id

    @property
    def version(self) -> int:
        return self.delivery.version

    @property
    def account_id(self) -> str:
        return self.event.account_id


async def browse_events(
    ports: Ports,
    wanted: Wanted,
    after: TrackedEvent | Event | Delivery | None,
    limit: int,
    *,
    kind: EventType | None = None,
) -> Leaf[TrackedEvent]:
    """Return the events that follow `after`. With a delivery status (`wanted.status`) they come in the receivers'
    order; pending deliveries come by due time, soonest first."""
    status = None if wanted.status is None else _S(wanted.status)
    event, delivery = (after.event, after.delivery) if isinstance(after, TrackedEvent) else (after, after)
    if status is None:
        events = await _events(ports, wanted, event, limit, kind)
        async with ports.storage.unit() as unit:
            by_id = {each.id: each for each in await deliveries_of(unit, events)}
            return events.of(await _tracked(unit, events, [by_id[each.id] for each in events if each.id in by_id]))
    async with ports.storage.unit() as unit:
        ended: dict[str, Any] = {} if status is _S.PENDING else {"due": None}
        receivers = await _receivers(unit, wanted, failing=status is _S.FAILED)
        ways = [Way(each.deliveries, {**each.of_status(status), **ended}) for each in receivers]
        if kind is not None and status in _MANY and await _are_many(unit, ways):
            return await _of_type(unit, wanted, kind, status, event, limit)
        deliveries = await sifted(
            unit,
            ways,
            delivery,
            limit,
            None if kind is None else lambda each: bool(each.type == kind),
            by="due" if status is _S.PENDING else "id",
            newest_first=wanted.newest_first and status is not _S.PENDING,
        )
        if not deliveries:
            return deliveries
        found = await unit[Event].find(
            id=OneOf(tuple({each.event_id for each in deliveries})), limit=len(deliveries), readable=True
        )
        return deliveries.of(await _tracked(unit, found, deliveries))


async def _events(ports: Ports, wanted: Wanted, after: Any, limit: int, kind: EventType | None) -> Leaf[Event]:
    if kind is None:
        return await browse(ports, Event, wanted, after, limit)
    async with ports.storage.unit() as unit:
        ways = await _ways_of_type(unit, wanted, kind)
        return await merged(unit, ways, after, limit, newest_first=wanted.newest_first)


async def _ways_of_type(unit: Unit, wanted: Wanted, kind: EventType) -> list[Way]:
    return [
        Way(Event, {"account_id": each.account_id, "mode": each.mode, "type": kind})
        for each in await _receivers(unit, wanted)
        if each.further is None
    ]


async def _are_many(unit: Unit, ways: Sequence[Way]) -> bool:
    """Return whether the ways hold more than FEW deliveries. No index of deliveries holds the event type, so the search
    for a type would read all of them."""
    left = FEW
    for way in ways:
        left -= len(await unit[way.kind].find(order="id", limit=left, readable=True, **way.criteria))
        if left <= 0:
            return True
    return False


async def _of_type(
    unit: Unit, wanted: Wanted, kind: EventType, status: DeliveryStatus, after: Any, limit: int
) -> Leaf[TrackedEvent]:
    """Return deliveries of this status among the next LOOKED_AT events of a type. All deliveries of an event are on one
    page, which may become longer than `limit` for it."""
    ways, page, seen = await _ways_of_type(unit, wanted, kind), list[TrackedEvent](), 0
    while len(page) < limit and seen < LOOKED_AT:
        most = min(limit + limit // 8, 2 * (limit - len(page)))  # Usually nearly all of them match.
        events = await merged(unit, ways, after, most, newest_first=wanted.newest_first)
        own, further = await deliveries_of(unit, events), await further_deliveries(unit, events)
        found: dict[str, list[Delivery]] = {}
        for each in sorted((*own, *further), key=lambda each: each.id):
            if each.status is status:
                found.setdefault(each.event_id, []).append(each)
        chosen: list[Delivery] = []
        for event in events:
            chosen += found.get(event.id, [])
            if len(page) + len(chosen) >= limit:
                break
        page += await _tracked(unit, events, chosen)
        seen += len(events)
        if len(events) < most:
            return Leaf(page)
        after = events[-1]
    return Leaf(page) if len(page) >= limit else Leaf(page, looked_at=seen, onward=after)


async def _receivers(unit: Unit, wanted: Wanted, *, failing: bool = False) -> list[EndpointKey]:
    """Return the endpoints of the wanted accounts and modes. With `failing`, leave out receivers that never failed."""
    if wanted.account_id is None and failing:
        rows = await unit[Breaker].find(
            last_failure_at=AtLeast(LONG_AGO), order="-last_failure_at", limit=_RECEIVERS, readable=True
        )
        return [EndpointKey.of(row.id) for row in rows if row.mode in wanted.modes]
    of: dict[str, Any] = {} if wanted.account_id is None else {"id": wanted.account_id}
    accounts = {each.id: each for each in await unit[Account].find(limit=_ACCOUNTS, readable=True, **of)}
    own = list(accounts) if wanted.account_id is None else [wanted.account_id]
    keys = [EndpointKey(account_id, mode) for account_id in own for mode in wanted.modes]
    refs = [(each, ref) for each in accounts.values() for mode in wanted.modes for ref in each.further(mode)]
    return keys + [EndpointKey(account.id, ref.mode, ref.id) for account, ref in refs]


async def _tracked(unit: Unit, events: Iterable[Event], deliveries: Sequence[Delivery]) -> list[TrackedEvent]:
    """Return the events of these deliveries, in the order of the deliveries."""
    by_id = {event.id: event for event in events}
    last = await last_attempts(unit, deliveries)
    return [
        TrackedEvent(event=by_id[each.event_id], delivery=each, last=last.get(each.id))
        for each in deliveries
        if each.event_id in by_id
    ]


async def track_event(ports: Ports, delivery_id: str) -> tuple[TrackedEvent, Breaker | None] | None:
    """Return one event of any account by the id of a delivery (`TrackedEvent.id`), with its receiver's breaker. None
    for an unknown id."""
    event_id, _, further = delivery_id.partition("/")
    async with ports.storage.snapshot() as seen:
        event = await seen[Event].get(event_id)
        delivery = await seen[EndpointDelivery if further else Delivery].get(delivery_id)
        if event is None or delivery is None:
            return None
        receiver = EndpointKey(event.account_id, event.mode, further or None)
        found = await seen[Breaker].find(id=receiver.id, limit=1, readable=True)
        last = (await last_attempts(seen, [delivery])).get(delivery.id)
        return TrackedEvent(event=event, delivery=delivery, last=last), next(iter(found), None)


async def browse_receivers(
    ports: Ports, wanted: Wanted, after: Breaker | None, limit: int, *, is_open: bool = False
) -> Leaf[Breaker]:
    """Return receivers that ever failed, the most recent failure first. With `is_open`, return open breakers, the next
    one to be probed first."""
    by = "next_probe_at" if is_open else "last_failure_at"
    criteria: dict[str, Any] = {by: AtLeast(LONG_AGO)}
    if wanted.account_id is not None:
        criteria["account_id"] = wanted.account_id
    if wanted.mode is not None:
        criteria["mode"] = wanted.mode
    async with ports.storage.unit() as unit:
        return await merged(unit, [Way(Breaker, criteria)], after, limit, by=by, newest_first=not is_open)


class TrackedEndpoint(msgspec.Struct, frozen=True, kw_only=True):
    """An endpoint as operators see it, with the account's other endpoints in its mode."""

    url: str | None
    """None when it is not set, or the endpoint was deleted."""
    event_types: tuple[str, ...] | None
    disabled_at: datetime | None = None
    others: tuple[str, ...]
    """Ids of the other endpoints (`EndpointKey`)."""


async def track_endpoint(ports: Ports, endpoint: EndpointKey) -> TrackedEndpoint:
    """Return an endpoint's URL and event types."""
    async with ports.storage.snapshot() as seen:
        account = await seen[Account].get(endpoint.account_id)
        found = None if endpoint.further is None else await seen[WebhookEndpoint].get(endpoint.further)
    refs = () if account is None else account.further(endpoint.mode)
    keys = [EndpointKey(endpoint.account_id, endpoint.mode, further) for further in (None, *(ref.id for ref in refs))]
    others = tuple(key.id for key in keys if key != endpoint)
    if endpoint.further is not None:
        return TrackedEndpoint(
            url=None if found is None else found.url,
            event_types=None if found is None else found.event_types,
            disabled_at=None if found is None else found.disabled_at,
            others=others,
        )
    settings = None if account is None else account.settings
    return TrackedEndpoint(
        url=None if settings is None else settings.webhook_url,
        event_types=None if settings is None else settings.webhook_events,
        others=others,
    )


async def given_up(ports: Ports, endpoint: EndpointKey, most: int = 1000) -> Sequence[Delivery]:
    """Return the deliveries to an endpoint that failed for good, oldest first."""
    async with ports.storage.unit() as unit:
        failed = endpoint.of_status(_S.FAILED, due=None)
        return await unit[endpoint.deliveries].find(**failed, order="id", limit=most, readable=True)


async def resend_given_up(ports: Ports, endpoint: EndpointKey) -> int:
    """Resend all deliveries to a receiver that failed for good, and return their number.

    Raises: Refusal INVALID_STATE if no delivery failed, for example because another operator resent them first.
    """
    oldest = await given_up(ports, endpoint, 1)
    if not oldest:
        raise Refusal("INVALID_STATE", "Nothing is given up there (any more)")
    until = ports.clock.real() + timedelta(days=366 * 100)
    asked = EventQuery(delivery_status=_S.FAILED, since=iso(oldest[0].created_at), until=iso(until))
    return await resend_range(ports, endpoint.account_id, endpoint.mode, asked, endpoint.further)
