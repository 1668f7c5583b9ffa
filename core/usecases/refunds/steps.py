"""The moves of a refund, each with its money, its payment, its events, to be called in the unit that makes them
(docs/refunds.md "How it ends").

Every unit that moves a refund saves its payment too: the payment's version guards the sums over all its refunds,
however many move at once.
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
from ...domain.refunds.refunds import TOLD, Refund, RefundStatus, RefundTrigger, is_open, moved_to, refunded_by
from ...domain.webhooks.events import EventType
from ..ledger.ledger import LEDGER_RULES
from ..payments.moves import follow
from ..payments.tallies import save_moved
from ..schedule import FollowUp
from ..webhooks.outbox import announce_of
from .money import give_back, paid
from .receipts import plan_back

CARRY_OUT = FollowUp("refund.execute")
"""The one job that follows a refund from its approval on."""

GIVE_UP = FollowUp("refund.give_up")
"""The one job that ends a refund which waited for money too long; of one that waits no more it only goes."""

RACES = (*LEDGER_RULES, "journal_id", "corrections_id", "jobs_id")
"""Unique rules whose Conflict means, in a unit that moves a refund, that another one moved it first: read again."""

_S = RefundStatus


async def payment_of(unit: Unit, refund: Refund) -> Payment:
    """The payment that is refunded. Raises: Stale, when both were forgotten between two reads."""
    payment = await unit[Payment].get(refund.payment_id)
    if payment is None:
        raise Stale(f"{refund.id} has no payment")
    return payment


async def refunds_of(unit: Unit, payment_id: str) -> list[Refund]:
    """All refunds of a payment, the oldest first; ten at most."""
    found = await unit[Refund].find(payment_id=payment_id, quick=True)
    return sorted(found, key=lambda refund: (refund.created_at, refund.id))


async def move(
    ports: Ports, unit: Unit, refund: Refund, triggers: Iterable[RefundTrigger], *, failure: str | None = None
) -> Refund:
    """Move a refund on by `triggers`, one after the other, each with its event; it and its payment are saved.

    `failure`: why, for `rejected` and `failed`. Raises: IllegalMove.
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
    """The payment after a refund's move: whether refunds are under way, and whether it is refunded. Only the latter is
    a status, and has an event."""
    refunds = [*others, refund]
    payment = msgspec.structs.replace(payment, refund_pending=any(is_open(each) for each in refunds))
    trigger = refunded_by(payment, refunds)
    if trigger is None:
        return payment
    after = payments.moved_to(payment, trigger)
    await follow(ports, unit, payment, after)
    return after


async def _announce(ports: Ports, unit: Unit, refund: Refund) -> None:
    """Write the refund's event for where it stands."""
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
