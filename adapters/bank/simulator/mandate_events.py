"""Effects of time and of simulated events on the bindings, mandates and charges of a simulated bank
(mandate_pages.py)."""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from ....ports.bank import InvoiceStatus
from ....ports.faults import Refused
from ....ports.mandates import (
    MANDATE_REVOKED,
    NEXT_PAID,
    NEXT_PENDING,
    NEXT_UNAVAILABLE,
    ChargeRequest,
    ChargeSimulation,
    ChargeStatus,
    MandateEvent,
    MandateSimulation,
    MandateStatus,
)
from .mandate_pages import BindingPart, ChargePart, NextCharge
from .pages import DECLINED, INSUFFICIENT_FUNDS, OUTCOME_UNKNOWN, REACTION, InvoiceEntry, as_of, paid, refunds_as_of

_ACTING: Mapping[int, str] = {INSUFFICIENT_FUNDS: "insufficient_funds", DECLINED: "declined_by_bank"}
"""Amounts in kopecks that fail without a call, and the failure reason. A charge fails at once, a first charge one
second after the link is issued."""

_S, _E = MandateStatus, MandateEvent
_UNBOUND = frozenset((_S.OPEN, _S.REFUSED, _S.CLOSED))
"""A payer may confirm late, even after a refusal."""
_MOVES: Mapping[MandateEvent, tuple[frozenset[MandateStatus], MandateStatus]] = {
    _E.CONFIRM: (_UNBOUND, _S.ACTIVE),
    _E.BOUND: (_UNBOUND, _S.ACTIVE),
    _E.REFUSE: (frozenset((_S.OPEN,)), _S.REFUSED),
    _E.PAID_NOT_BOUND: (frozenset((_S.OPEN,)), _S.REFUSED),
    _E.NO_LINK: (frozenset((_S.OPEN,)), _S.CLOSED),
    _E.MANDATE_LOST: (frozenset((_S.ACTIVE,)), _S.LOST),
    _E.MANDATE_RESTORED: (frozenset((_S.LOST,)), _S.ACTIVE),
    _E.CONSENT_ENDED: (frozenset((_S.ACTIVE, _S.LOST)), _S.ENDED),
}
"""Source states and target state of each event. In any other state the event changes nothing."""
_FAILURES: Mapping[MandateEvent, str] = {
    _E.REFUSE: "cancelled_by_customer",
    _E.PAID_NOT_BOUND: "declined_by_bank",
}
"""Default failure reason of a REFUSED binding."""
_BRING_MONEY = frozenset((_E.CONFIRM, _E.PAID, _E.PAID_NOT_BOUND))


def page_as_of(entry: InvoiceEntry, now: datetime) -> InvoiceEntry:
    """Apply the passage of time to a record of any kind."""
    if entry.binding is not None:
        return _binding_as_of(refunds_as_of(entry, now), entry.binding, now)
    if entry.charge is not None:
        return _charge_as_of(refunds_as_of(entry, now), entry.charge, now)
    return as_of(entry, now)


def _binding_as_of(entry: InvoiceEntry, part: BindingPart, now: datetime) -> InvoiceEntry:
    if part.status is not _S.OPEN:
        return entry
    actions = part.link_at is not None and now >= part.link_at + REACTION and not entry.transfers
    if actions and entry.amount_kopecks in _ACTING:
        return _with(entry, part, status=_S.REFUSED, failure=_ACTING[entry.amount_kopecks])
    return _with(entry, part, status=_S.CLOSED) if now >= entry.expires_at else entry


def _charge_as_of(entry: InvoiceEntry, part: ChargePart, now: datetime) -> InvoiceEntry:
    if entry.status is not InvoiceStatus.PROCESSING or part.paid_at is None or now < part.paid_at:
        return entry
    return paid(entry, entry.amount_kopecks, part.paid_at, None)


def has_link(entry: InvoiceEntry, now: datetime) -> bool:
    """Report whether the binding's link has been issued. A binding that expires before its link is due never gets
    one."""
    part = _binding(entry)
    return part.link_at is not None and part.link_at <= now and part.link_at < entry.expires_at


def wait_of(entry: InvoiceEntry, now: datetime) -> float | None:
    """Return the seconds until an open binding changes by itself, or None if it does not."""
    part = _binding(entry)
    if part.status is not _S.OPEN or part.link_at is None:
        return None
    if part.link_at > now:
        return (part.link_at - now).total_seconds()
    actions = entry.amount_kopecks in _ACTING and not entry.transfers
    return (part.link_at + REACTION - now).total_seconds() if actions else None


def mandate_simulated(
    entry: InvoiceEntry, simulation: MandateSimulation, now: datetime, *, paid_before: str | None = None
) -> InvoiceEntry:
    """Apply a simulated event to a binding. An event that the mandate's state does not allow changes nothing.

    The money of a first charge arrives once, in any state. `paid_before` is the last charge, if it is paid by now.
    Raises: ValueError for money when the binding has no first charge.
    """
    part, event = _binding(entry), simulation.event
    if event in (_E.PAID, _E.PAID_NOT_BOUND) and entry.amount_kopecks == 0:
        raise ValueError("a binding without a first charge brings no money")
    sources, target = _MOVES.get(event, (frozenset[MandateStatus](), part.status))
    moves = part.status in sources and not (part.revoked and target is _S.ACTIVE)
    comes = event in _BRING_MONEY and entry.amount_kopecks > 0 and not entry.transfers
    if event is _E.CONFIRM and not moves and part.status is not _S.ACTIVE:
        comes = False
    if comes:
        entry = paid(entry, entry.amount_kopecks, now, simulation.payer_name)
    if moves:
        return _moved(entry, part, target, simulation, now)
    if event is _E.PAST_DUE and part.status is _S.ACTIVE:
        return _with(entry, part, overdue=True, paid_before=paid_before)
    if event is _E.PAST_DUE_CLEARED:
        return _with(entry, part, overdue=False)
    if event is _E.LINK_READY and part.status is _S.OPEN:
        return _with(entry, part, link_at=now)
    return entry


def _moved(
    entry: InvoiceEntry, part: BindingPart, target: MandateStatus, simulation: MandateSimulation, now: datetime
) -> InvoiceEntry:
    link_at = _issued(part, now)
    if target is _S.ACTIVE:
        # A payer who confirms must have had the link, so issue it now at the latest.
        return _with(entry, part, status=target, was_bound=True, failure=None, link_at=link_at or now)
    failure = part.failure
    if target is _S.REFUSED:
        failure = simulation.failure or _FAILURES[simulation.event]
    return _with(entry, part, status=target, failure=failure, link_at=link_at)


def _issued(part: BindingPart, now: datetime) -> datetime | None:
    """Return when the link was issued, for a binding that is ending. A link that was still due is never issued."""
    return part.link_at if part.link_at is not None and part.link_at <= now else None


def revoked(entry: InvoiceEntry, now: datetime) -> InvoiceEntry:
    """End the binding on our side: a mandate becomes ENDED, an open binding CLOSED, and no payer can confirm it any
    more."""
    part = _binding(entry)
    status = part.status
    if part.status is _S.OPEN:
        status = _S.CLOSED
    elif part.status in (_S.ACTIVE, _S.LOST):
        status = _S.ENDED
    return _with(entry, part, status=status, revoked=True, link_at=_issued(part, now))


def next_wished(entry: InvoiceEntry, wish: NextCharge) -> InvoiceEntry:
    """Set the result of the binding's next charge. It replaces any earlier wish."""
    return _with(entry, _binding(entry), next_charge=wish)


def charge_begun(entry: InvoiceEntry, request: ChargeRequest) -> tuple[InvoiceEntry, NextCharge]:
    """Record this charge as the binding's last one, and return the planned result.

    A repeat that arrives before the charge has its record gets the same plan. Raises: Refused not_found.
    """
    part = entry.binding
    if part is None or not part.was_bound or part.token != request.token:
        raise Refused("no mandate of this reference and token", reason="not_found")
    if part.status is not _S.ACTIVE:
        return entry, NextCharge(result=MANDATE_REVOKED)
    wish = part.next_charge
    if wish is None or wish.taken_by not in (None, request.operation):
        plan = NextCharge(result=_acting(request.amount_kopecks))
    else:
        plan = wish
        # A charge that was not executed leaves no record that a repeat could find, so its wish ends with this call.
        wish = msgspec.structs.replace(wish, taken_by=request.operation) if wish.executed else None
    status = _S.LOST if plan.result == MANDATE_REVOKED else part.status
    return _with(entry, part, status=status, next_charge=wish, last_charge=request.operation), plan


def _acting(kopecks: int) -> str:
    return NEXT_UNAVAILABLE if kopecks == OUTCOME_UNKNOWN else _ACTING.get(kopecks, NEXT_PAID)


def new_charge(binding: InvoiceEntry, request: ChargeRequest, plan: NextCharge, now: datetime) -> InvoiceEntry:
    """Create the record of a charge whose result `plan` describes."""
    fails = plan.result not in (NEXT_PAID, NEXT_PENDING, NEXT_UNAVAILABLE)
    waits = fails or plan.result == NEXT_PENDING
    return InvoiceEntry(
        operation=request.operation,
        amount_kopecks=request.amount_kopecks,
        purpose=request.purpose,
        payload="",
        created_at=now,
        expires_at=now,
        status=InvoiceStatus.FAILED if fails else InvoiceStatus.PROCESSING,
        failure=plan.result if fails else None,
        charge=ChargePart(binding=binding.operation, paid_at=None if waits else now + REACTION),
    )


def charge_simulated(entry: InvoiceEntry, simulation: ChargeSimulation, now: datetime) -> InvoiceEntry:
    """Apply a simulated status to a charge. A charge that has ended does not change."""
    if entry.charge is None or entry.status is not InvoiceStatus.PROCESSING:
        return entry
    part = msgspec.structs.replace(entry.charge, paid_at=None)
    entry = msgspec.structs.replace(entry, charge=part)
    if simulation.status is ChargeStatus.PAID:
        return paid(entry, entry.amount_kopecks, now, simulation.payer_name)
    if simulation.status is ChargeStatus.FAILED:
        reason = simulation.failure or "declined_by_bank"
        return msgspec.structs.replace(entry, status=InvoiceStatus.FAILED, failure=reason)
    return entry


def _binding(entry: InvoiceEntry) -> BindingPart:
    if entry.binding is None:
        raise Refused(f"{entry.operation} is no binding", reason="not_found")
    return entry.binding


def _with(entry: InvoiceEntry, part: BindingPart, **changes: object) -> InvoiceEntry:
    return msgspec.structs.replace(entry, binding=msgspec.structs.replace(part, **changes))
