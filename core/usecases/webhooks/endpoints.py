"""Further webhook endpoints, which merchants create themselves (docs/webhooks.md "Further endpoints").

One unit writes the row of an endpoint and its entry in the account. So the account's version guards the maximum number
of endpoints, and a unit that writes an event needs to read only the account.
"""

from collections.abc import Callable
from datetime import timedelta

import msgspec

from ....ports.bundle import Ports
from ....ports.jobs import Job
from ....ports.storage import Snapshot, Unit
from ...domain import ids
from ...domain.accounts.accounts import Account, Caller, Mode
from ...domain.accounts.idempotency import IdempotencyKey
from ...domain.errors import Refusal
from ...domain.webhooks.breaker import Breaker, new_breaker
from ...domain.webhooks.endpoints import (
    SECRET_OVERLAP_HOURS,
    EndpointKey,
    EndpointOrder,
    EndpointPatch,
    WebhookEndpoint,
    read_headers,
    read_order,
    switched,
    with_endpoint,
    without_endpoint,
)
from ...domain.webhooks.events import DeliveryStatus
from ..common.account_time import living_with
from ..common.encrypted import encrypt_webhook_headers, webhook_secret_aad
from ..common.idempotency import Lock, Made, once, yield_to_maker
from ..common.paging import MomentFilter, Page, newest
from ..common.schedule import FollowUp, reschedule_at
from ..common.units import retrying, unit_of_work
from .endpoint import TestReport, post_test
from .outbox import ask_to_deliver, release_to
from .receivers import endpoint_of, no_endpoint, own_endpoint, remove_rest
from .results import close_breaker

KIND = "webhook_endpoint"

DROP = FollowUp("webhook.drop")

_SECRET_BYTES = 32
_BATCH = 100
_DROP_PAUSES = (timedelta(seconds=30), timedelta(seconds=90))
"""Longer than a webhook is in flight and than a unit stays open."""


class NewEndpoint(msgspec.Struct, frozen=True, kw_only=True):
    """An endpoint with its new secret, or with None if an earlier call created it, because a secret is shown only
    once."""

    endpoint: WebhookEndpoint
    secret: str | None


class FurtherReport(msgspec.Struct, frozen=True, kw_only=True):
    """A further endpoint and its state."""

    endpoint: WebhookEndpoint
    breaker: Breaker
    backlog: dict[DeliveryStatus, int]
    """Numbers of held, pending and failed events."""


async def create_endpoint(
    ports: Ports, caller: Caller, key: str | None, read: Callable[[], EndpointOrder]
) -> Made[NewEndpoint]:
    """Create a further endpoint in the caller's mode, with a secret of its own. From now on it receives events too.

    Raises: Refusal WEBHOOK_ENDPOINT_LIMIT, VALIDATION_ERROR, and those of the idempotency key.
    """

    async def make(lock: Lock) -> NewEndpoint:
        order = read()
        fields = read_order(order, caller.mode)
        headers = read_headers(order)
        endpoint_id = ids.prefixed(ids.ENDPOINT, ports.ids.uuid())
        secret, sealed = _new_secret(ports, endpoint_id)

        async def work(unit: Unit) -> WebhookEndpoint:
            made = WebhookEndpoint(
                id=endpoint_id,
                account_id=caller.account_id,
                mode=caller.mode,
                secret=sealed,
                created_at=ports.clock.now(),
                **{"event_types": None, "description": None, **fields},
            )
            made = _with_headers(ports, made, headers)
            key_record = lock(made.id)
            try:
                await _tell_account(unit, made)
            except Refusal:
                await yield_to_maker(unit, lock)
                raise
            unit[WebhookEndpoint].add(made)
            unit[IdempotencyKey].add(key_record)
            return made

        return NewEndpoint(endpoint=await retrying(ports.storage, work), secret=secret)

    async def recall(endpoint_id: str) -> NewEndpoint:
        async with ports.storage.unit() as unit:
            return NewEndpoint(endpoint=await own_endpoint(unit, caller, endpoint_id), secret=None)

    return await once(ports, caller, key, KIND, make=make, recall=recall)


def _new_secret(ports: Ports, endpoint_id: str) -> tuple[str, bytes]:
    secret = ports.ids.secret(_SECRET_BYTES)
    return secret, ports.vault.encrypt(secret.encode(), webhook_secret_aad(endpoint_id))


async def _tell_account(unit: Unit, endpoint: WebhookEndpoint) -> None:
    account = await unit[Account].get(endpoint.account_id)
    if account is None:
        raise no_endpoint()
    unit[Account].save(with_endpoint(account, endpoint))


async def list_endpoints(
    ports: Ports, caller: Caller, asked: MomentFilter, number: int, size: int
) -> Page[FurtherReport]:
    """Return a page of the caller's further endpoints, newest first. Raises: Refusal VALIDATION_ERROR."""
    owner = {"account_id": caller.account_id, "mode": caller.mode}
    made = asked.made()
    async with ports.storage.snapshot() as seen:
        found = await newest(seen, WebhookEndpoint, number, size, created_at=made, **owner)
        return Page([await _report(seen, each) for each in found.records], number, size, found.total)


async def get_endpoint(ports: Ports, caller: Caller, endpoint_id: str) -> FurtherReport:
    """Return a further endpoint and its state. Raises: Refusal WEBHOOK_ENDPOINT_NOT_FOUND."""
    async with ports.storage.snapshot() as seen:
        found = await own_endpoint(seen, caller, endpoint_id)
        return await _report(seen, found)


async def _report(seen: Snapshot, endpoint: WebhookEndpoint) -> FurtherReport:
    breaker, backlog = await _state(seen, endpoint.key)
    return FurtherReport(endpoint=endpoint, breaker=breaker, backlog=backlog)


async def _state(seen: Snapshot, key: EndpointKey) -> tuple[Breaker, dict[DeliveryStatus, int]]:
    breaker = await seen[Breaker].get(key.id) or new_breaker(key.account_id, key.mode, key.further)
    counted = (DeliveryStatus.HELD, DeliveryStatus.PENDING, DeliveryStatus.FAILED)
    return breaker, {status: await seen[key.deliveries].total(**key.of_status(status)) for status in counted}


@unit_of_work()
async def change_endpoint(
    ports: Ports, unit: Unit, caller: Caller, endpoint_id: str, read: Callable[[], EndpointPatch]
) -> WebhookEndpoint:
    """Change the fields in the body. A new address closes the breaker and sends pending events at once. While the
    endpoint is disabled, pending and new events are held.

    Raises: Refusal WEBHOOK_ENDPOINT_NOT_FOUND, VALIDATION_ERROR, INVALID_STATE.
    """
    before, patch = await own_endpoint(unit, caller, endpoint_id), read()
    after = msgspec.structs.replace(before, **read_order(patch, caller.mode))
    after = _with_headers(ports, after, read_headers(patch))
    if patch.enabled is not None:
        after = switched(after, ports.clock.now(), enabled=patch.enabled)
    return await _changed(ports, unit, before, after)


def _with_headers(ports: Ports, endpoint: WebhookEndpoint, headers: dict[str, str] | None) -> WebhookEndpoint:
    """Return the endpoint with these static headers; unchanged for None."""
    if headers is None:
        return endpoint
    sealed = encrypt_webhook_headers(ports.vault, endpoint.id, headers)
    return msgspec.structs.replace(endpoint, headers=sealed, header_names=tuple(headers) or None)


async def switch_endpoint(ports: Ports, endpoint_id: str, *, enabled: bool) -> WebhookEndpoint:
    """Enable or disable any merchant's further endpoint, as an operator. Raises: Refusal WEBHOOK_ENDPOINT_NOT_FOUND,
    INVALID_STATE."""
    is_one = ids.is_prefixed(ids.ENDPOINT, endpoint_id)
    found = await ports.storage.get(WebhookEndpoint, endpoint_id) if is_one else None
    if found is None:
        raise no_endpoint()

    async def work(unit: Unit) -> WebhookEndpoint:
        before = await endpoint_of(unit, found.account_id, found.mode, endpoint_id)
        return await _changed(ports, unit, before, switched(before, ports.clock.now(), enabled=enabled))

    async with living_with(ports, found.account_id, found.mode):
        return await retrying(ports.storage, work)


async def _changed(ports: Ports, unit: Unit, before: WebhookEndpoint, after: WebhookEndpoint) -> WebhookEndpoint:
    """Save a changed endpoint and apply the consequences."""
    if after == before:
        return before
    if after.ref != before.ref:
        await _tell_account(unit, after)
    key, is_switched = after.key, after.enabled is not before.enabled
    moved = after.url != before.url
    if is_switched or moved:
        await close_breaker(ports, unit, key, moved=moved)
    if is_switched and after.enabled:
        await release_to(ports, unit, key)
    elif is_switched:
        # The worker finds the endpoint disabled and holds its pending events.
        ask_to_deliver(ports, unit, key.account_id, key.mode, key.further)
    return unit[WebhookEndpoint].save(after)


async def try_endpoint(ports: Ports, caller: Caller, endpoint_id: str) -> TestReport:
    """Post a signed test webhook to the endpoint now (endpoint.py: `send_test`). Raises: Refusal
    WEBHOOK_ENDPOINT_NOT_FOUND; VaultError."""
    async with ports.storage.unit() as unit:
        found = await own_endpoint(unit, caller, endpoint_id)
    return await post_test(ports, found.key, found.receiver)


async def rotate_secret(ports: Ports, caller: Caller, endpoint_id: str) -> NewEndpoint:
    """Create a new secret. The old secret signs beside it for 24 hours. After several changes in that time, the oldest
    secret does, because receivers verify with it (docs/webhooks.md "Changing the secret").

    Raises: Refusal WEBHOOK_ENDPOINT_NOT_FOUND.
    """
    secret, sealed = _new_secret(ports, endpoint_id)

    async def work(unit: Unit) -> WebhookEndpoint:
        before = await own_endpoint(unit, caller, endpoint_id)
        # Receivers verify with real time, whatever the test clock says.
        now, until = ports.clock.real(), before.previous_secret_until
        overlaps = before.previous_secret is not None and until is not None and until > now
        after = msgspec.structs.replace(
            before,
            secret=sealed,
            previous_secret=before.previous_secret if overlaps else before.secret,
            previous_secret_until=now + timedelta(hours=SECRET_OVERLAP_HOURS),
        )
        await close_breaker(ports, unit, after.key, moved=False)
        return unit[WebhookEndpoint].save(after)

    return NewEndpoint(endpoint=await retrying(ports.storage, work), secret=secret)


@unit_of_work()
async def delete_endpoint(ports: Ports, unit: Unit, caller: Caller, endpoint_id: str) -> None:
    """Delete an endpoint and drop its pending events. Raises: Refusal WEBHOOK_ENDPOINT_NOT_FOUND, INVALID_STATE."""
    found = await own_endpoint(unit, caller, endpoint_id)
    account = await unit[Account].get(found.account_id)
    if account is not None:
        unit[Account].save(without_endpoint(account, found.id))
    unit[WebhookEndpoint].remove(found)
    now = ports.clock.now()
    unit[Job].add(DROP.first(found.key.id, now, now))


async def drop_rest(ports: Ports, job: Job) -> None:
    """Run the job of `delete_endpoint`. It deletes in batches and runs again later, because webhooks in flight may
    write results and earlier units may add deliveries."""
    key = EndpointKey.of(job.argument)

    async def one_batch(unit: Unit) -> int:
        return await remove_rest(unit, key, _BATCH)

    while await retrying(ports.storage, one_batch) == _BATCH:
        pass
    passed = job.attempts - 1
    due = ports.clock.now() + _DROP_PAUSES[passed] if passed < len(_DROP_PAUSES) else None
    await reschedule_at(ports, job, due)


class ShownEndpoint(msgspec.Struct, frozen=True, kw_only=True):
    """Any endpoint of an account, for operators."""

    key: EndpointKey
    url: str | None
    event_types: tuple[str, ...] | None
    breaker: Breaker
    backlog: dict[DeliveryStatus, int]
    enabled: bool = True


async def list_all_endpoints(ports: Ports, account_id: str) -> list[ShownEndpoint]:
    """Return the account's own endpoint in each mode, and its further endpoints. Raises: Refusal ACCOUNT_NOT_FOUND."""
    async with ports.storage.snapshot() as seen:
        account = await seen[Account].get(account_id) if ids.is_prefixed(ids.ACCOUNT, account_id) else None
        if account is None:
            raise Refusal("ACCOUNT_NOT_FOUND", "There is no account of this id")
        shown = []
        for mode in Mode:
            own = account.settings
            shown.append(await _shown(seen, EndpointKey(account_id, mode), own.webhook_url, own.webhook_events))
            for ref in account.further(mode):
                found = await seen[WebhookEndpoint].get(ref.id)
                if found is not None:
                    shown.append(await _shown(seen, found.key, found.url, found.event_types, enabled=found.enabled))
        return shown


async def _shown(
    seen: Snapshot, key: EndpointKey, url: str | None, event_types: tuple[str, ...] | None, *, enabled: bool = True
) -> ShownEndpoint:
    breaker, backlog = await _state(seen, key)
    return ShownEndpoint(key=key, url=url, event_types=event_types, breaker=breaker, backlog=backlog, enabled=enabled)
