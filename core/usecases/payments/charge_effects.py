"""Effects of a charge's outcome on its subscription, in the unit that ends the payment; and the event for a period
whose budget is used up (docs/subscriptions.md "Periods and attempts").
"""

import logging
from datetime import datetime

from ....ports.bundle import Ports
from ....ports.jobs import Job
from ....ports.storage import Unit
from ...domain.accounts.accounts import Mode
from ...domain.days import iso
from ...domain.payloads import ChargeExhaustedPayload
from ...domain.payments.payments import FailureReason, Payment, PaymentMove, PaymentStatus
from ...domain.payments.tallies import TOOK_MONEY, took_money
from ...domain.subscriptions.charge_decisions import exhaustion, exhaustion_due_at
from ...domain.subscriptions.charge_moves import charge_failed, charge_succeeded, exhaustion_announced
from ...domain.subscriptions.moves import mandate_lost
from ...domain.subscriptions.subscriptions import Subscription
from ...domain.webhooks.events import EventType
from ..common.schedule import FollowUp, is_ours, set_due
from ..common.units import unit_of_work
from ..webhooks.outbox import announce_of
from .recurring import save_subscription

EXHAUST = FollowUp("subscription.exhaust")

_GAVE_NOTHING = (PaymentStatus.FAILED, PaymentStatus.CANCELLED, PaymentStatus.EXPIRED)

log = logging.getLogger("cambist.charges")


async def follow_charge(ports: Ports, unit: Unit, move: PaymentMove) -> None:
    """Update the subscription after a move of its charge, in the caller's unit: anchor, attempts, mandate and events.
    Do nothing for other payments, or when a paid charge is settled or refunded.
    """
    after = move.after
    if not after.is_charge or move.before.status in TOOK_MONEY:
        return
    subscription = await unit[Subscription].get(after.subscription_id or "")
    if subscription is None:
        return
    changed = subscription
    if took_money(move.before.status, after.status):
        changed = _succeeded(ports, subscription, after)
    elif after.status in _GAVE_NOTHING:
        changed = await _failed(ports, unit, subscription, after)
    await save_subscription(ports, unit, subscription, changed)
    await _plan(unit, changed, ports.clock.now())


def _succeeded(ports: Ports, subscription: Subscription, payment: Payment) -> Subscription:
    if subscription.is_final:
        log.warning("charge %s was paid after the end of subscription %s", payment.id, subscription.id)
    now = ports.clock.now()
    return charge_succeeded(subscription, payment.id, payment.period_ref or "", at=payment.paid_at or now, now=now)


async def _failed(ports: Ports, unit: Unit, subscription: Subscription, payment: Payment) -> Subscription:
    now = ports.clock.now()
    changed = await tell_exhaustion(ports, unit, charge_failed(subscription, payment.id, now))
    if payment.failure_reason is FailureReason.MANDATE_REVOKED and _is_by_present_mandate(subscription, payment):
        changed = mandate_lost(changed, now)
    return changed


def _is_by_present_mandate(subscription: Subscription, payment: Payment) -> bool:
    """Return whether the charge used the current mandate. A charge made before the payer bound anew used the previous
    one.
    """
    binding = subscription.binding
    return binding is None or binding.requested_at <= payment.created_at


async def tell_exhaustion(ports: Ports, unit: Unit, subscription: Subscription) -> Subscription:
    """Write `subscription.charge_exhausted` if it is due, once per period. Return the subscription to save.

    A subscription that is over gets no event, because no further attempt is possible.
    """
    now = ports.clock.now()
    found = None if subscription.is_final else exhaustion(subscription.terms, subscription.charge_state, now)
    if found is None:
        return subscription
    after = exhaustion_announced(subscription, found, now)

    def payload(told_at: datetime) -> ChargeExhaustedPayload:
        return ChargeExhaustedPayload(
            event="subscription.charge_exhausted",
            subscription_id=after.id,
            external_id=after.external_id,
            is_sandbox=after.mode is Mode.TEST,
            period_ref=found.period_ref,
            retries_used=found.retries_used,
            retries_max=found.retries_max,
            retry_window_hours=found.retry_window_hours,
            next_allowed_at=iso(found.next_allowed_at),
            timestamp=iso(told_at),
        )

    await announce_of(ports, unit, after, EventType.CHARGE_EXHAUSTED, payload)
    return after


async def _plan(unit: Unit, subscription: Subscription, now: datetime) -> None:
    """Plan a check for the end of the retry window, in case the merchant sends no further request."""
    due = exhaustion_due_at(subscription.terms, subscription.charge_state)
    if due is None or subscription.is_final:
        return
    await EXHAUST.plan(unit, subscription.id, due, now, anew=True)


@unit_of_work()
async def tell_if_exhausted(ports: Ports, unit: Unit, job: Job) -> None:
    """Write an exhaustion event that no request triggers (a job)."""
    subscription = await unit[Subscription].get(job.argument)
    present = await unit[Job].get(job.id)
    if subscription is not None:
        after = await tell_exhaustion(ports, unit, subscription)
        await save_subscription(ports, unit, subscription, after)
    if present is None or not is_ours(present, job):
        return
    due = None if subscription is None else exhaustion_due_at(subscription.terms, subscription.charge_state)
    set_due(unit, present, due if due is not None and due > ports.clock.now() else None)
