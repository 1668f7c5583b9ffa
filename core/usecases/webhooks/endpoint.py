"""State of a merchant's receiver, and a test webhook (docs/webhooks.md "Looking, and sending again")."""

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from ....ports.bundle import Ports
from ....ports.notifier import DeliveryResult
from ....ports.storage import Unit
from ...domain import ids
from ...domain.accounts.accounts import Account, Caller, Mode
from ...domain.days import iso
from ...domain.errors import Refusal
from ...domain.webhooks.breaker import Breaker, after_outcome, endpoint_id, new_breaker
from ...domain.webhooks.delivery import Outcome
from ...domain.webhooks.endpoints import EndpointKey, Receiver, own_receiver
from ...domain.webhooks.events import Delivery, DeliveryStatus
from ...domain.webhooks.static_headers import read_static_headers
from ..common.encrypted import encrypt_webhook_headers
from ..common.units import retrying, unit_of_work
from .outbox import ask_to_deliver
from .signing import Signers, signed_webhook

TEST_EVENT = "webhook.test"


class TestPayload(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Payload of a test webhook. It is not one of the twelve events, is not stored, and is sent only on the merchant's
    explicit call, so no receiver gets it unexpectedly."""

    __test__ = False

    event: Literal["webhook.test"] = "webhook.test"
    timestamp: str
    sandbox: bool | UnsetType = UNSET


class EndpointReport(msgspec.Struct, frozen=True, kw_only=True):
    """The receiver of the caller's account, in the caller's mode."""

    account: Account
    breaker: Breaker
    backlog: dict[DeliveryStatus, int]
    """Numbers of held, pending and failed events."""


class TestReport(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a test webhook."""

    __test__ = False

    event_id: str
    sent_at: datetime
    result: DeliveryResult
    delivered: bool


async def endpoint_state(ports: Ports, caller: Caller) -> EndpointReport:
    """Return the state of the caller's receiver."""
    counted = (DeliveryStatus.HELD, DeliveryStatus.PENDING, DeliveryStatus.FAILED)
    async with ports.storage.snapshot() as seen:
        account = await seen[Account].get(caller.account_id)
        breaker = await seen[Breaker].get(endpoint_id(caller.account_id, caller.mode))
        backlog = {
            status: await seen[Delivery].total(account_id=caller.account_id, mode=caller.mode, status=status)
            for status in counted
        }
    return EndpointReport(
        account=account or caller.account,
        breaker=breaker or new_breaker(caller.account_id, caller.mode),
        backlog=backlog,
    )


async def set_own_headers(ports: Ports, account_id: str, headers: Mapping[str, str]) -> Account:
    """Replace the static headers of the account's own webhook endpoint; an empty mapping removes them
    (docs/webhooks.md "Your own headers"). Raises: Refusal ACCOUNT_NOT_FOUND, VALIDATION_ERROR."""
    wanted = read_static_headers(headers)

    async def work(unit: Unit) -> Account:
        before = await unit[Account].get(account_id) if ids.is_prefixed(ids.ACCOUNT, account_id) else None
        if before is None:
            raise Refusal("ACCOUNT_NOT_FOUND", "There is no account of this id")
        sealed = encrypt_webhook_headers(ports.vault, account_id, wanted)
        names = tuple(wanted) or None
        return unit[Account].save(msgspec.structs.replace(before, webhook_headers=sealed, webhook_header_names=names))

    return await retrying(ports.storage, work)


async def send_test(ports: Ports, caller: Caller) -> TestReport:
    """Post a signed test webhook to the caller's receiver now. A good answer closes its breaker; a bad one changes
    nothing.

    Raises: Refusal INVALID_STATE unless address and secret are both set; VaultError.
    """
    receiver = own_receiver(caller.account)
    if receiver is None:
        raise Refusal("INVALID_STATE", "The webhook address and secret are not both set")
    return await post_test(ports, EndpointKey(caller.account_id, caller.mode), receiver)


async def post_test(ports: Ports, endpoint: EndpointKey, receiver: Receiver) -> TestReport:
    """Post a test webhook to any endpoint of the caller. Raises: VaultError."""
    now = ports.clock.now()
    event_id = ids.prefixed(ids.EVENT, ports.ids.uuid())
    payload = TestPayload(timestamp=iso(now), sandbox=True if endpoint.mode is Mode.TEST else UNSET)
    webhook = signed_webhook(
        Signers(ports.vault),
        receiver,
        endpoint.mode,
        event_id=event_id,
        event=TEST_EVENT,
        sequence=1,
        attempt=1,
        body=msgspec.json.encode(payload),
        now=ports.clock.real(),
    )
    result = await ports.notifier.send(webhook)
    outcome = Outcome(
        answer=result.answer.value,
        status=result.status,
        note=result.note,
        sent_at=now,
        ended_at=ports.clock.now(),
    )
    if outcome.good:
        await _close(ports, endpoint, event_id, outcome)
    return TestReport(event_id=event_id, sent_at=now, result=result, delivered=outcome.good)


@unit_of_work()
async def _close(ports: Ports, unit: Unit, endpoint: EndpointKey, event_id: str, outcome: Outcome) -> None:
    breaker = await unit[Breaker].get(endpoint.id)
    if breaker is None or not breaker.failures:
        return
    unit[Breaker].save(after_outcome(breaker, event_id, outcome))
    if breaker.is_open:
        ask_to_deliver(ports, unit, endpoint.account_id, endpoint.mode, endpoint.further)
