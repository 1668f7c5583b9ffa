"""Deletion of a client's personal data by an operator. Records that financial law requires stay (docs/kyc.md
"Forgetting a client").

The work is done in units of some hundred rows, the client last. After an interruption the operator repeats it.
"""

from collections.abc import AsyncIterator
from typing import Any

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import OneOf, Unit
from ...domain.errors import Refusal
from ...domain.exchanges.exchanges import Exchange
from ...domain.exchanges.funds import SUSPENDED_FOR, ExchangeTransfer
from ...domain.kyc.clients import Client, KycStatus, operations_of
from ...domain.kyc.kyc import Upload
from ...domain.payments.payer_contact import masked_contact
from ...domain.payments.payments import Payment
from ...domain.webhooks.events import Event
from ..accounts.accounts import storable
from ..common.encrypted import open_client_phone, open_exchange_phone, open_private_data
from ..common.units import retrying
from ..exchanges.creation import active_digest
from ..kyc.uploads import forget_upload
from ..kyc.verifiers import verifier_of
from ..sandbox.forgetting import forget_clients, forget_events

_AT_ONCE = 100


class ForgottenClient(msgspec.Struct, frozen=True, kw_only=True):
    """Result of forgetting a client: the deleted data, and the data that remains elsewhere."""

    client_id: str
    account_id: str
    uploads: int
    events: int
    verifier: str | None
    """The verifier that still has the client's documents. None if no verifier was involved."""
    checks: tuple[str, ...]
    """Ids of our checks, by which the verifier finds the client."""


def remains(done: ForgottenClient) -> str:
    """Describe what the operator has still to do."""
    if done.verifier is None or not done.checks:
        return "No verifier was asked about the client."
    return f"What was handed in remains at {done.verifier}: have it deleted there, under {', '.join(done.checks)}."


async def forget_client(ports: Ports, record_id: str) -> ForgottenClient:
    """Delete a client with its uploads and jobs, and all events that may name the person. Raises: Refusal
    CLIENT_NOT_FOUND; INVALID_STATE for a blocked client, or while a check or an exchange is under way; Unavailable;
    VaultError."""
    async with ports.storage.unit() as unit:
        client = await _idle(ports, unit, record_id)
    uploads = await _forget_uploads(ports, client)
    events = await _forget_events(ports, client.id)
    async for object_id in _money_of(ports, client):
        events += await _forget_events(ports, object_id)

    async def work(unit: Unit) -> Client:
        present = await _idle(ports, unit, record_id)
        await forget_clients(ports, unit, [present])
        return present

    gone = await retrying(ports.storage, work)
    events += await _forget_events(ports, client.id)  # Include events of changes made meanwhile.
    return ForgottenClient(
        client_id=gone.id,
        account_id=gone.account_id,
        uploads=uploads,
        events=events,
        verifier=gone.verifier,
        checks=operations_of(gone),
    )


async def _idle(ports: Ports, unit: Unit, record_id: str) -> Client:
    """Return the client if nothing is under way. Raises: Refusal."""
    client = await unit[Client].get(record_id) if storable(record_id) else None
    if client is None:
        raise Refusal("CLIENT_NOT_FOUND", "There is no client of this id")
    if client.blocked:
        raise Refusal("INVALID_STATE", "The client is blocked, and deletion would lose the block: end the block first")
    if client.kyc in (KycStatus.REGISTERING, KycStatus.PROCESSING) and verifier_of(ports, client) is not None:
        raise Refusal("INVALID_STATE", "A check of the client is under way: it has to be decided first")
    active = active_digest(ports, client.account_id, client.mode, open_client_phone(ports.vault, client))
    if await unit[Exchange].find(active_slot=active, limit=1, readable=True):
        raise Refusal("INVALID_STATE", "An exchange of the client is under way")
    if await _has_suspended(unit, client):
        raise Refusal("INVALID_STATE", "Money of an exchange of the client is in suspense")
    return client


async def _has_suspended(unit: Unit, client: Client) -> bool:
    """Return whether money of one of the client's exchanges is in suspense. There is little suspended money at any
    time."""
    offset = 0
    while True:
        found = await unit[ExchangeTransfer].find(
            order="received_at",
            offset=offset,
            limit=_AT_ONCE,
            readable=True,
            resolved_at=None,
            reason=OneOf(SUSPENDED_FOR),
            account_id=client.account_id,
            mode=client.mode,
        )
        ids = OneOf(tuple({transfer.exchange_id for transfer in found}))
        exchanges = await unit[Exchange].find(id=ids, limit=_AT_ONCE, readable=True) if found else []
        if any(exchange.client_id == client.id for exchange in exchanges):
            return True
        if len(found) < _AT_ONCE:
            return False
        offset += _AT_ONCE


async def _forget_uploads(ports: Ports, client: Client) -> int:
    """Delete the client's documents. Documents are stored for about a day, so there are few to search."""
    checks, gone = frozenset(operations_of(client)), 0
    async for batch in ports.storage.scan(Upload, readable=True):
        for upload in batch:
            if upload.holder == client.phone_digest or upload.used_by in checks:
                await forget_upload(ports, upload)
                gone += 1
    return gone


async def _money_of(ports: Ports, client: Client) -> AsyncIterator[str]:
    """Yield the ids of the client's exchanges, and of payments with the client's phone. Their events contain the phone
    or name the payer. No index covers either, so this reads all of the account's records in this mode."""
    phone = open_client_phone(ports.vault, client)
    whose: dict[str, Any] = {"account_id": client.account_id, "mode": client.mode}
    async for exchanges in ports.storage.scan(Exchange, readable=True, **whose):
        for exchange in exchanges:
            if open_exchange_phone(ports.vault, exchange) == phone:
                yield exchange.id
    async for payments in ports.storage.scan(Payment, readable=True, payer_contact=masked_contact(phone), **whose):
        for payment in payments:
            private = open_private_data(ports.vault, payment)
            if private is not None and private.client_phone == phone:
                yield payment.id


async def _forget_events(ports: Ports, object_id: str) -> int:
    """Delete all events about an object, and return their number."""

    async def work(unit: Unit) -> int:
        found = await unit[Event].find(object_id=object_id, limit=_AT_ONCE, readable=True)
        return await forget_events(ports, unit, found) if found else 0

    gone = 0
    while some := await retrying(ports.storage, work):
        gone += some
    return gone
