"""Notification of receivers about a gateway's change (docs/webhooks.md "Gateways"): once the change has held for a
minute, account by account, each exactly once.
"""

from datetime import datetime

import msgspec

from ....ports.bundle import Ports
from ....ports.faults import Unreadable
from ....ports.jobs import Job
from ....ports.storage import AtLeast, Unit
from ...domain import ids
from ...domain.accounts.accounts import Account, Mode
from ...domain.accounts.terminals import PAYMENT_METHODS
from ...domain.days import iso
from ...domain.errors import Refusal
from ...domain.gateways.gateways import HELD_FOR, Gateway, GatewayCount, GatewayReason, GatewayStatus, announced, own_id
from ...domain.payloads import GatewayPayload
from ...domain.webhooks.events import Event, EventType
from ..common.account_time import test_clock_of
from ..common.encrypted import encrypt_event_body
from ..common.schedule import FollowUp, is_ours
from ..common.units import unit_of_work
from ..webhooks.outbox import announce

HOLD = FollowUp("gateway.hold")
TELL = "gateway.tell"

COUNTED = ("gateway_counts_id",)
"""Conflict of two units that notify an account for the first time."""

_BATCH = 100
"""Accounts notified in one unit."""


class Telling(msgspec.Struct, frozen=True, kw_only=True):
    """An announcement to all accounts; the argument of the job that delivers it."""

    gateway_id: str
    status: GatewayStatus
    previous: GatewayStatus
    reason: GatewayReason | None
    sequence: int
    """Sequence of the gateway, not of an account's events about it."""
    at: datetime
    after: str = ""
    """The last account that was notified."""


def payment_method_of(gateway_id: str) -> str | None:  # noqa: ARG001 - all routes of today take the one method
    """Return the payment method of a gateway."""
    return PAYMENT_METHODS[0]


def mode_of(ports: Ports, gateway_id: str) -> Mode:
    """Return the mode that a gateway serves. Raises: Refusal GATEWAY_NOT_FOUND."""
    for mode in Mode:
        if gateway_id in ports.banks.order.get(mode, ()):
            return mode
    raise Refusal("GATEWAY_NOT_FOUND", "No gateway of this id")


async def hold(unit: Unit, gateway: Gateway, now: datetime) -> None:
    """Plan a check for the moment when the change has held long enough."""
    await HOLD.plan(unit, gateway.id, now + HELD_FOR, now, anew=True)


@unit_of_work()
async def tell_if_held(ports: Ports, unit: Unit, job: Job) -> None:
    """Announce a change that has held (the job of `hold`). The gateway's record and the job that notifies all accounts
    are written in one unit, so the change is announced once.
    """
    present = await unit[Job].get(job.id)
    gateway = await unit[Gateway].get(job.argument)
    if present is None or not is_ours(present, job) or gateway is None:
        return
    unit[Job].remove(present)
    if gateway.status is gateway.announced:
        return
    after = unit[Gateway].save(announced(gateway))
    now = ports.clock.now()
    telling = Telling(
        gateway_id=gateway.id,
        status=gateway.status,
        previous=gateway.announced,
        reason=gateway.reason,
        sequence=after.sequence,
        at=now,
    )
    job_id = f"{TELL}:{gateway.id}:{after.sequence}"
    unit[Job].add(Job(id=job_id, kind=TELL, argument=_text(telling), due=now, created_at=now))


@unit_of_work(again_on=COUNTED)
async def tell_accounts(ports: Ports, unit: Unit, job: Job) -> None:
    """Notify the next accounts that have a receiver, in the order of their ids (a job). Its position is saved with
    their events, so no account is notified twice or left out.
    """
    present = await unit[Job].get(job.id)
    if present is None or not is_ours(present, job):
        return
    telling = msgspec.json.decode(present.argument, type=Telling)
    accounts = await unit[Account].find(id=AtLeast(f"{telling.after}!"), order="id", limit=_BATCH, readable=True)
    mode = mode_of(ports, telling.gateway_id)
    for account in accounts:
        if account.receives or account.further(mode):
            # The event's time is on the account's own clock.
            with ports.clock.entered(test_clock_of(account, mode)):
                told = msgspec.structs.replace(telling, at=telling.at + (ports.clock.now() - ports.clock.real()))
                announce(ports, unit, await gateway_event(ports, unit, account.id, mode, told), account)
    if len(accounts) < _BATCH:
        unit[Job].remove(present)
    else:
        left = msgspec.structs.replace(telling, after=accounts[-1].id)
        unit[Job].save(msgspec.structs.replace(present, argument=_text(left), leased_until=None, attempts=0))


async def _next_number(unit: Unit, account_id: str, mode: Mode, gateway_id: str) -> int:
    """Return the next sequence number of an account's events about a gateway, and count it in this unit."""
    counts, count_id = unit[GatewayCount], own_id(account_id, gateway_id)
    # An older version that runs beside this one writes events without counting them.
    found = await unit[Event].find(
        account_id=account_id,
        mode=mode,
        type=EventType.GATEWAY_STATUS_CHANGED,
        object_id=gateway_id,
        order="-created_at",
        limit=1,
        readable=True,
    )
    last = max((event.sequence for event in found), default=0)
    try:
        counted = await counts.get(count_id)
    except Unreadable:
        # The events give the number as well, so a damaged count blocks nothing.
        return last + 1
    number = max(last, 0 if counted is None else counted.told) + 1
    if counted is None:
        counts.add(GatewayCount(id=count_id, told=number))
    else:
        counts.save(msgspec.structs.replace(counted, told=number))
    return number


async def gateway_event(ports: Ports, unit: Unit, account_id: str, mode: Mode, telling: Telling) -> Event:
    """Return the event of an announcement for one account; the unit counts it."""
    payload = GatewayPayload(
        event="gateway.status_changed",
        gateway_id=telling.gateway_id,
        payment_method=payment_method_of(telling.gateway_id),
        status=telling.status,
        previous_status=telling.previous,
        reason=telling.reason,
        timestamp=iso(telling.at),
    )
    event_id = ids.prefixed(ids.EVENT, ports.ids.uuid())
    return Event(
        id=event_id,
        account_id=account_id,
        mode=mode,
        type=EventType.GATEWAY_STATUS_CHANGED.value,
        object_id=telling.gateway_id,
        sequence=await _next_number(unit, account_id, mode, telling.gateway_id),
        body=encrypt_event_body(ports.vault, event_id, payload),
        created_at=ports.clock.now(),
    )


def _text(telling: Telling) -> str:
    return msgspec.json.encode(telling).decode()
