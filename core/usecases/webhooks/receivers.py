"""Receivers of an endpoint's webhooks, and deliveries to further endpoints, as stored.

Deleting an endpoint deletes its deliveries. So all further deliveries of an event belong to endpoints that its account
names, and their ids find them.
"""

from collections.abc import Iterable

from ....ports.storage import Between, OneOf, Snapshot, Unit
from ...domain import ids
from ...domain.accounts.accounts import Account, Caller, Mode
from ...domain.errors import Refusal
from ...domain.webhooks.breaker import Breaker
from ...domain.webhooks.delivery import attempt_id, first_attempt, last_attempt_id
from ...domain.webhooks.endpoints import EndpointKey, Receiver, WebhookEndpoint, own_receiver
from ...domain.webhooks.events import Attempt, Delivery, EndpointDelivery, Event, delivery_id


async def receiver_of(unit: Unit, endpoint: EndpointKey) -> Receiver | None:
    """Return the receiver of an endpoint. None when the account has not set one, or the endpoint is disabled or
    deleted."""
    if endpoint.further is None:
        return own_receiver(await unit[Account].get(endpoint.account_id))
    found = await unit[WebhookEndpoint].get(endpoint.further)
    return found.receiver if found is not None and found.enabled else None


def no_endpoint() -> Refusal:
    """Return the refusal for an endpoint that is unknown, deleted, another account's, or of the other mode."""
    return Refusal("WEBHOOK_ENDPOINT_NOT_FOUND", "No further webhook endpoint of this id")


async def own_endpoint(unit: Unit | Snapshot, caller: Caller, endpoint_id: str) -> WebhookEndpoint:
    """Return a further endpoint of the caller's account and mode. Raises: Refusal WEBHOOK_ENDPOINT_NOT_FOUND."""
    return await endpoint_of(unit, caller.account_id, caller.mode, endpoint_id)


async def endpoint_of(unit: Unit | Snapshot, account_id: str, mode: Mode, endpoint_id: str) -> WebhookEndpoint:
    """Return a further endpoint of an account and mode. Raises: Refusal WEBHOOK_ENDPOINT_NOT_FOUND."""
    found = await unit[WebhookEndpoint].get(endpoint_id) if ids.is_prefixed(ids.ENDPOINT, endpoint_id) else None
    if found is None or (found.account_id, found.mode) != (account_id, mode):
        raise no_endpoint()
    return found


async def further_deliveries(seen: Unit | Snapshot, events: Iterable[Event | Delivery]) -> list[EndpointDelivery]:
    """Return the deliveries of these events to further endpoints."""
    events = list(events)
    owners = tuple({each.account_id for each in events})
    if not owners:
        return []
    found = await seen[Account].find(id=OneOf(owners), limit=len(owners), readable=True)
    accounts = {account.id: account for account in found if account.endpoints is not None}
    wanted = tuple(
        delivery_id(each.id, ref.id)
        for each in events
        if each.account_id in accounts
        for ref in accounts[each.account_id].further(each.mode)
    )
    return await seen[EndpointDelivery].find(id=OneOf(wanted), limit=len(wanted), readable=True) if wanted else []


async def last_attempts(seen: Unit | Snapshot, deliveries: Iterable[Delivery]) -> dict[str, Attempt]:
    """Return the last webhook of each delivery, by the delivery's id."""
    found: dict[str, Attempt] = {}
    wanted = {}
    for delivery in deliveries:
        first = first_attempt(delivery)
        if first is not None and first.id == last_attempt_id(delivery):
            found[delivery.id] = first
        else:
            wanted[last_attempt_id(delivery)] = delivery.id
    if wanted:
        rows = await seen[Attempt].find(id=OneOf(tuple(wanted)), limit=len(wanted), readable=True)
        found |= {wanted[row.id]: row for row in rows}
    return found


async def all_attempts(
    seen: Unit | Snapshot, event_id: str, deliveries: Iterable[Delivery], most: int = 1000
) -> list[Attempt]:
    """Return the webhooks of an event to all endpoints, at most `most` rows, in the order sent. `deliveries`: all
    deliveries of the event."""
    rows = await seen[Attempt].find(id=Between(f"{event_id}/", f"{event_id};"), limit=most, readable=True)
    firsts = map(first_attempt, deliveries)
    return sorted([*rows, *(each for each in firsts if each is not None)], key=lambda each: (each.sent_at, each.id))


async def attempts_of(seen: Unit | Snapshot, deliveries: Iterable[Delivery]) -> list[Attempt]:
    """Return the rows of all webhook attempts of these deliveries."""
    wanted = tuple(
        attempt_id(delivery, number)
        for delivery in deliveries
        for number in range(1, delivery.attempts + delivery.probes + 1)
    )
    return await seen[Attempt].find(id=OneOf(wanted), limit=len(wanted), readable=True) if wanted else []


async def remove_rest(unit: Unit, endpoint: EndpointKey, most: int) -> int:
    """Delete the breaker of a deleted further endpoint, and up to `most` of its deliveries with their attempts. Return
    the number of these deliveries."""
    breaker = await unit[Breaker].get(endpoint.id)
    if breaker is not None:
        unit[Breaker].remove(breaker)
    found = await unit[EndpointDelivery].find(endpoint_id=endpoint.further, order="id", limit=most)
    for attempt in await attempts_of(unit, found):
        unit[Attempt].remove(attempt)
    for delivery in found:
        unit[EndpointDelivery].remove(delivery)
    return len(found)
