"""Observation of banks' answers, from which a gateway's status follows automatically (docs/webhooks.md "Gateways").

Every call is counted in the counters. Rows are written only for faults, and for good answers while the gateway is not
operational, so a healthy bank costs no rows. Test mode is not observed: its faults are simulated by merchants.
"""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

import msgspec

from ....ports.bank import Bank
from ....ports.bundle import Ports
from ....ports.counters import Counter
from ....ports.faults import (
    BulkheadFull,
    Fault,
    Held,
    NotConfigured,
    NotSupported,
    OutcomeUnknown,
    Refused,
    Unavailable,
)
from ....ports.notes import ProviderNote
from ....ports.storage import Unit
from ...domain.accounts.accounts import Mode
from ...domain.accounts.rate_limit import WINDOW
from ...domain.gateways.gateways import Gateway, GatewayReason, GatewayStatus, changed
from ...domain.gateways.health import TRIALS, Seen, is_set_by_hand, is_worth_writing, judged, with_counts
from ..common.units import retrying
from .announcements import hold

_NO_LIMIT = 2**62

log = logging.getLogger("cambist.gateways")


def health_id(gateway_id: str) -> str:
    """Return the id of the note that stores a gateway's faults."""
    return f"{gateway_id}:health"


class Banked(Protocol):
    """An object with money at a bank: a payment or an exchange."""

    @property
    def mode(self) -> Mode: ...
    @property
    def bank(self) -> str | None: ...


@asynccontextmanager
async def at_bank(ports: Ports, of: Banked, *, invoices: bool = False) -> AsyncIterator[Bank]:
    """Open the bank of an object for calls, observed as by `watched`. Raises: NotConfigured when the bank is not
    configured, which does not affect the gateway's status.
    """
    bank = ports.banks.named(of.bank or "")
    async with watched(ports, of.mode, of.bank, invoices=invoices):
        yield bank


@asynccontextmanager
async def watched(ports: Ports, mode: Mode, gateway_id: str | None, *, invoices: bool = False) -> AsyncIterator[None]:
    """Observe the calls to a gateway's bank in this block. A refusal is a good answer: the bank is working.

    With `invoices` the block calls only functions that every bank has. NotConfigured then means that the bank no longer
    accepts our credentials, and the gateway is down at once; otherwise it only means that a feature is disabled there.
    """
    try:
        yield
    except (Held, BulkheadFull):
        # The bank was not called.
        raise
    except OutcomeUnknown:
        await _note(ports, mode, gateway_id, GatewayReason.PROVIDER_TIMEOUT)
        raise
    except Unavailable as fault:
        is_late = isinstance(fault.__cause__, TimeoutError)
        reason = GatewayReason.PROVIDER_TIMEOUT if is_late else GatewayReason.PROVIDER_ERRORS
        await _note(ports, mode, gateway_id, reason)
        raise
    except NotConfigured:
        if invoices:
            await _note(ports, mode, gateway_id, GatewayReason.PROVIDER_ERRORS, is_certain=True)
        raise
    except NotSupported:
        raise
    except Refused:
        await _note(ports, mode, gateway_id, None)
        raise
    else:
        await _note(ports, mode, gateway_id, None)


async def _note(
    ports: Ports, mode: Mode, gateway_id: str | None, fault: GatewayReason | None, *, is_certain: bool = False
) -> None:
    """Count an answer or a fault. With `is_certain` this fault alone marks the gateway down. Faults of the storage are
    logged and not raised: the payment continues.
    """
    if mode is not Mode.LIVE or gateway_id is None:
        return
    minute = _minute(ports)
    names = [f"gateway:{gateway_id}:calls"] + ([] if fault is None else [f"gateway:{gateway_id}:{fault}"])
    counts = await ports.counters.count(minute, [Counter(name, _NO_LIMIT) for name in names])
    if not is_worth_writing(counts[-1]):
        return
    errors = counts[-1] if fault is GatewayReason.PROVIDER_ERRORS else 0
    timeouts = counts[-1] if fault is GatewayReason.PROVIDER_TIMEOUT else 0

    async def work(unit: Unit) -> None:
        before = await unit[Gateway].get(gateway_id)
        by_hand = before is not None and is_set_by_hand(before.status, before.reason)
        if fault is None and (before is None or before.status is GatewayStatus.OPERATIONAL or by_hand):
            return
        seen = await _take(ports, unit, gateway_id, minute, calls=counts[0], errors=errors, timeouts=timeouts)
        verdict = (GatewayStatus.DOWN, fault) if is_certain else judged(seen, minute)
        gateway = before or Gateway(id=gateway_id)
        if verdict is None or by_hand:
            return
        now = ports.clock.now()
        after = changed(gateway, *verdict, now)
        if after.status is gateway.status:
            return
        _ = unit[Gateway].add(after) if before is None else unit[Gateway].save(after)
        await hold(unit, after, now)

    try:
        await retrying(ports.storage, work, again_on=("provider_notes_id", "gateways_id", "jobs_id"))
    except Fault:
        log.warning("how gateway %s answered could not be noted", gateway_id)


async def _take(ports: Ports, unit: Unit, gateway_id: str, minute: int, **counts: int) -> Seen:
    note = await unit[ProviderNote].get(health_id(gateway_id))
    seen = with_counts(() if note is None else msgspec.json.decode(note.body, type=Seen), minute, **counts)
    body = msgspec.json.encode(seen)
    if note is None:
        now = ports.clock.now()
        unit[ProviderNote].add(ProviderNote(id=health_id(gateway_id), provider=gateway_id, body=body, created_at=now))
    else:
        unit[ProviderNote].save(msgspec.structs.replace(note, body=body))
    return seen


async def may_be_tried(ports: Ports, gateway_id: str) -> bool:
    """Return whether a gateway that was judged down gets this payment."""
    [number] = await ports.counters.count(_minute(ports), [Counter(f"gateway:{gateway_id}:trials", _NO_LIMIT)])
    return number <= TRIALS


def _minute(ports: Ports) -> int:
    """Return the current window of the counters; a window is a minute of the clock."""
    return int(ports.clock.now().timestamp()) // WINDOW
