"""Moves of a refund, with their money, payment and events. Call them in the unit that saves the refund (docs/refunds.md
"How it ends").

Every unit that moves a refund also saves its payment: the payment's version guards the sums over all its refunds when
several move at once.
"""

from collections.abc import Iterable

import msgspec

from ....ports.bundle import Ports
from ....ports.faults import Stale
from ....ports.storage import Unit
from ...domain.accounts.shops import Shop
from ...domain.payloads import RefundPayload
from ...domain.payments import payments
from ...domain.payments.payments import Payment
from ...domain.people.notifications import NotificationKind
from ...domain.refunds.refunds import TOLD, Refund, RefundStatus, RefundTrigger, is_open, moved_to, refunded_by
from ...domain.webhooks.events import EventType
from ..common.schedule import FollowUp
from ..ledger.ledger import LEDGER_RULES
from ..payments.moves import follow
from ..payments.tallies import save_moved
from ..person_events import note_for_people
from ..webhooks.outbox import announce_of
from .money import give_back, paid
from .receipts import plan_back

CARRY_OUT = FollowUp("refund.execute")
"""The job that follows a refund from its approval on."""

GIVE_UP = FollowUp("refund.give_up")
"""The job that rejects a refund which has waited too long for money; it ends without effect once the refund no longer
waits.
"""

RACES = (*LEDGER_RULES, "journal_id", "corrections_id", "jobs_id")
"""Unique rules whose Conflict means, in a unit that moves a refund, that another unit moved it first. The unit is then
retried.
"""

_S = RefundStatus


async def payment_of(unit: Unit, refund: Refund) -> Payment:
    """Return the refunded payment. Raises: Stale when both were deleted between two reads."""
    payment = await unit[Payment].get(refund.payment_id)
    if payment is None:
        raise Stale(f"{refund.id} has no payment")
    return payment


async def refunds_of(unit: Unit, payment_id: str) -> list[Refund]:
    """Return all refunds of a payment, oldest first; at most ten."""
    found = await unit[Refund].find(payment_id=payment_id, quick=True)
    return sorted(found, key=lambda refund: (refund.created_at, refund.id))


async def move(
    ports: Ports, unit: Unit, refund: Refund, triggers: Iterable[RefundTrigger], *, failure: str | None = None
) -> Refund:
    """Move a refund by `triggers`, one after the other, each with its event; save it and its payment.

    `failure` is the reason of `rejected` and `failed`. Raises: IllegalMove.
    """
    payment = before = await payment_of(unit, refund)
    others = [each for each in await refunds_of(unit, payment.id) if each.id != refund.id]
    for trigger in triggers:
        payment, refund = _money(ports, unit, payment, _moved(ports, refund, trigger, failure))
        payment = await _follow(ports, unit, payment, refund, others)
        if refund.status is _S.COMPLETED:
            await plan_back(ports, unit, payment, refund)
        if refund.status in TOLD:
            await _announce(ports, unit, refund)
    if payment.status is before.status:
        unit[Payment].save(payment)
    else:
        save_moved(unit, before, payment)
    return unit[Refund].save(refund)


def _moved(ports: Ports, refund: Refund, trigger: RefundTrigger, failure: str | None) -> Refund:
    after = moved_to(refund, trigger)
    if after.status is _S.COMPLETED:
        return msgspec.structs.replace(after, completed_at=ports.clock.now())
    return msgspec.structs.replace(after, failure_reason=failure) if after.status in (_S.REJECTED, _S.FAILED) else after


def _money(ports: Ports, unit: Unit, payment: Payment, refund: Refund) -> tuple[Payment, Refund]:
    if refund.status is _S.COMPLETED:
        paid(ports, unit, refund)
    elif refund.status is _S.FAILED:
        payment = give_back(ports, unit, payment, refund, reversed_=False)
    elif refund.status is _S.REVERSED:
        payment = give_back(ports, unit, payment, refund, reversed_=True)
    return payment, refund


async def _follow(ports: Ports, unit: Unit, payment: Payment, refund: Refund, others: list[Refund]) -> Payment:
    """Return the payment after a refund's move, with its `refund_pending` flag and its refunded status. Only the status
    has an event.
    """
    refunds = [*others, refund]
    payment = msgspec.structs.replace(payment, refund_pending=any(is_open(each) for each in refunds))
    trigger = refunded_by(payment, refunds)
    if trigger is None:
        return payment
    after = payments.moved_to(payment, trigger)
    await follow(ports, unit, payment, after)
    return after


async def _announce(ports: Ports, unit: Unit, refund: Refund) -> None:
    """Write the event of the refund's current status."""
    shop = await unit[Shop].get(refund.shop_id)
    event = TOLD[refund.status]
    payload = RefundPayload(
        event=event,
        payment_id=refund.payment_id,
        refund_id=refund.id,
        amount_rub=str(refund.amount),
        status=refund.status.value,
        external_id=refund.external_id,
        metadata=refund.metadata,
        shop_id=refund.shop_id,
        shop_name=None if shop is None else shop.name,
    )
    await announce_of(ports, unit, refund, EventType(event), lambda _now: payload)
    if refund.status is _S.COMPLETED:
        note_for_people(ports, unit, NotificationKind.REFUND_DONE, refund.id)
