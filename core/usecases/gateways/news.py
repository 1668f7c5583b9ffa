"""Telling receivers that a gateway changed (docs/webhooks.md "Gateways"): once the change has held for a minute, one
account after another, each exactly once."""

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
from ..schedule import FollowUp, is_ours
from ..sealed import seal_event_body
from ..test_clock import test_clock_of
from ..units import retrying
from ..webhooks.outbox import announce

HOLD = FollowUp("gateway.hold")
TELL = "gateway.tell"

COUNTED = ("gateway_counts_id",)
"""Two units tell an account something for the first time."""

_BATCH = 100
"""Accounts that are told in one unit."""


class Telling(msgspec.Struct, frozen=True, kw_only=True):
    """One announcement on its way to all accounts; the argument of the job that carries it."""

    gateway_id: str
    status: GatewayStatus
    previous: GatewayStatus
    reason: GatewayReason | None
    sequence: int
    """Of the gateway, not of an account's events about it."""
    at: datetime
    after: str = ""
    """The last account that was told."""


def payment_method_of(gateway_id: str) -> str | None:  # noqa: ARG001 - all routes of today take the one method
    """What a gateway takes."""
    return PAYMENT_METHODS[0]


def mode_of(ports: Ports, gateway_id: str) -> Mode:
    """The mode that a gateway serves. Raises: Refusal GATEWAY_NOT_FOUND."""
    for mode in Mode:
        if gateway_id in ports.banks.order.get(mode, ()):
            return mode
    raise Refusal("GATEWAY_NOT_FOUND", "No gateway of this id")


async def hold(unit: Unit, gateway: Gateway, now: datetime) -> None:
    """Have it looked at once the change has held."""
    await HOLD.plan(unit, gateway.id, now + HELD_FOR, now, anew=True)


async def tell_if_held(ports: Ports, job: Job) -> None:
    """The job behind `hold`: the change has held, so it is announced. The record that says so and the job that tells
    all accounts are one unit, so it is announced once."""

    async def work(unit: Unit) -> None:
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

    await retrying(ports.storage, work)


async def tell_accounts(ports: Ports, job: Job) -> None:
    """The job that tells the next accounts which have a receiver, in the order of their ids. Its place is saved with
    their events, so that nobody is told twice or left out."""

    async def work(unit: Unit) -> None:
        present = await unit[Job].get(job.id)
        if present is None or not is_ours(present, job):
            return
        telling = msgspec.json.decode(present.argument, type=Telling)
        accounts = await unit[Account].find(id=AtLeast(f"{telling.after}!"), order="id", limit=_BATCH, readable=True)
        mode = mode_of(ports, telling.gateway_id)
        for account in accounts:
            if account.receives or account.further(mode):
                # What the account is told happened in its own time.
                with ports.clock.entered(test_clock_of(account, mode)):
                    told = msgspec.structs.replace(telling, at=telling.at + (ports.clock.now() - ports.clock.real()))
                    announce(ports, unit, await gateway_event(ports, unit, account.id, mode, told), account)
        if len(accounts) < _BATCH:
            unit[Job].remove(present)
        else:
            left = msgspec.structs.replace(telling, after=accounts[-1].id)
            unit[Job].save(msgspec.structs.replace(present, argument=_text(left), leased_until=None, attempts=0))

    await retrying(ports.storage, work, again_on=COUNTED)


async def _next_number(unit: Unit, account_id: str, mode: Mode, gateway_id: str) -> int:
    """Count an event about a gateway that an account is told in this unit."""
    counts, count_id = unit[GatewayCount], own_id(account_id, gateway_id)
    # A program from before the counts, which serves beside this one, tells without counting.
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
        # Its events say it as well, and nobody else waits for it to be mended.
        return last + 1
    number = max(last, 0 if counted is None else counted.told) + 1
    if counted is None:
        counts.add(GatewayCount(id=count_id, told=number))
    else:
        counts.save(msgspec.structs.replace(counted, told=number))
    return number


async def gateway_event(ports: Ports, unit: Unit, account_id: str, mode: Mode, telling: Telling) -> Event:
    """The event of an announcement, for one account, which counts it in this unit."""
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
        body=seal_event_body(ports.vault, event_id, payload),
        created_at=ports.clock.now(),
    )


def _text(telling: Telling) -> str:
    return msgspec.json.encode(telling).decode()
