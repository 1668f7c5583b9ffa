"""Gateways: set and show their status, and route around gateways that are down (docs/webhooks.md "Gateways").

All accounts of a mode share a gateway. In test mode an account may simulate a gateway's status; the simulation is a
separate record, and affects no other account.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, TypeVar

import msgspec

from ....ports.bank import Bank
from ....ports.bundle import Ports
from ....ports.storage import OneOf, Unit
from ...domain import shared_fields as shared
from ...domain.accounts.accounts import TEST, Account, Caller, Mode
from ...domain.errors import Refusal, shape_error
from ...domain.gateways.gateways import BY_HAND, Gateway, GatewayReason, GatewayStatus, announced, changed, own_id
from ..accounts.access import RECENT
from ..common.account_time import as_moved
from ..common.units import retrying
from ..webhooks.outbox import announce
from .announcements import COUNTED, Telling, gateway_event, hold, mode_of, payment_method_of
from .watch import may_be_tried

AnyBank = TypeVar("AnyBank", bound=Bank)


class GatewaySimulation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of POST /sandbox/gateways/{id}/simulate."""

    status: Annotated[str, shared.STATUS, shared.among(GatewayStatus)]


class ShownGateway(msgspec.Struct, frozen=True, kw_only=True):
    """A gateway as it is shown."""

    gateway_id: str
    mode: Mode
    payment_method: str | None
    status: GatewayStatus
    reason: GatewayReason | None
    since: datetime | None


def read_status(text: str) -> GatewayStatus:
    """Parse a status. Raises: Refusal VALIDATION_ERROR."""
    try:
        return GatewayStatus(text)
    except ValueError:
        raise shape_error("status", f"must be one of: {', '.join(GatewayStatus)}") from None


async def list_gateways(ports: Ports, mode: Mode, account_id: str | None = None) -> list[ShownGateway]:
    """Return the gateways of a mode, in the order in which payments try them, with their current status; for an
    account, with its simulated statuses.
    """
    names = ports.banks.order.get(mode, ())
    wanted = (*names, *(() if account_id is None else (own_id(account_id, name) for name in names)))
    async with ports.storage.unit() as unit:
        found = await unit[Gateway].find(id=OneOf(wanted), limit=len(wanted), readable=True) if names else []
    records = {record.id: record for record in found}
    shown = []
    for name in names:
        own = None if account_id is None else records.get(own_id(account_id, name))
        is_simulated = own is not None and own.status is not GatewayStatus.OPERATIONAL
        shown.append(_shown(name, mode, own if is_simulated else records.get(name)))
    return shown


def _shown(name: str, mode: Mode, record: Gateway | None) -> ShownGateway:
    record = record or Gateway(id=name)
    return ShownGateway(
        gateway_id=name,
        mode=mode,
        payment_method=payment_method_of(name),
        status=record.status,
        reason=record.reason,
        since=record.since,
    )


async def set_gateway(
    ports: Ports, gateway_id: str, status: GatewayStatus, reason: GatewayReason | None = None
) -> ShownGateway:
    """Set a gateway's status. Receivers are notified once it has held for a minute, unless it equals the status of
    their last notification.

    Without a reason it counts as the operator's; operational has no reason. Setting the same status again notifies
    nobody. Raises: Refusal GATEWAY_NOT_FOUND.
    """
    mode = mode_of(ports, gateway_id)

    async def work(unit: Unit) -> Gateway:
        before = await unit[Gateway].get(gateway_id)
        now = ports.clock.now()
        after = changed(before or Gateway(id=gateway_id), status, reason or GatewayReason.OPERATOR, now)
        saved = unit[Gateway].add(after) if before is None else unit[Gateway].save(after)
        if before is None or before.status is not status:
            await hold(unit, after, now)
        return saved

    record = await retrying(ports.storage, work, again_on=("gateways_id", "jobs_id"))
    return _shown(gateway_id, mode, record)


async def simulate_gateway(ports: Ports, caller: Caller, gateway_id: str, wanted: GatewaySimulation) -> ShownGateway:
    """Simulate a gateway's status for the caller's account in test mode, and announce it to the account at once. While
    the status is `down`, the account's payments skip the gateway; `operational` ends the simulation.

    Raises: Refusal GATEWAY_NOT_FOUND, VALIDATION_ERROR.
    """
    status = read_status(wanted.status)
    if mode_of(ports, gateway_id) is not caller.mode:
        raise Refusal("GATEWAY_NOT_FOUND", "No gateway of this id")

    async def work(unit: Unit) -> Gateway:
        record_id = own_id(caller.account_id, gateway_id)
        before = await unit[Gateway].get(record_id)
        now = ports.clock.now()
        after = changed(before or Gateway(id=record_id), status, GatewayReason.MAINTENANCE, now)
        if after.status is not after.announced:
            after = announced(after)
            await _tell_player(ports, unit, caller, gateway_id, before or Gateway(id=record_id), after)
        return unit[Gateway].add(after) if before is None else unit[Gateway].save(after)

    await retrying(ports.storage, work, again_on=("gateways_id", *COUNTED))
    shown = await list_gateways(ports, caller.mode, caller.account_id)
    return next(each for each in shown if each.gateway_id == gateway_id)


async def _tell_player(
    ports: Ports, unit: Unit, caller: Caller, gateway_id: str, before: Gateway, after: Gateway
) -> None:
    account = await unit[Account].get(caller.account_id)
    with ports.clock.entered(as_moved(ports, account)):
        telling = Telling(
            gateway_id=gateway_id,
            status=after.status,
            previous=before.status,
            reason=after.reason,
            sequence=after.sequence,
            at=ports.clock.now(),
        )
        announce(ports, unit, await gateway_event(ports, unit, caller.account_id, caller.mode, telling), account)


async def first_open(ports: Ports, routes: Sequence[AnyBank], mode: Mode, account_id: str) -> AnyBank | None:
    """Return the first route that accepts new payments; None when all were set down by hand. A gateway judged down
    still gets a few payments, so that its recovery is noticed, and gets all if no other route is left.

    A status set by another process takes effect within some seconds, a simulated one at once.
    """
    last_resort = None
    for bank in routes:
        shared = await ports.storage.recent(Gateway, bank.name, within=RECENT)
        simulated = await ports.storage.recent(Gateway, own_id(account_id, bank.name)) if mode is TEST else None
        if (shared is not None and not shared.takes_payments) or (
            simulated is not None and not simulated.takes_payments
        ):
            continue
        if shared is None or shared.status is not GatewayStatus.DOWN or await may_be_tried(ports, bank.name):
            return bank
        last_resort = last_resort or bank
    return last_resort


def read_reason(text: str) -> GatewayReason:
    """Parse a reason that an operator may give. Raises: Refusal VALIDATION_ERROR."""
    for reason in BY_HAND:
        if reason.value == text:
            return reason
    raise shape_error("reason", f"must be one of: {', '.join(BY_HAND)}")
