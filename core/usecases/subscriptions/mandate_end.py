"""Ending a subscription at its banks: its mandate and open bindings (docs/subscriptions.md "Changing and ending")."""

from datetime import datetime

from ....ports.bundle import Ports
from ....ports.faults import NO_ANSWER, Refused
from ....ports.jobs import Job
from ....ports.storage import Unit
from ...domain.payments.payments import BindingCharge, Opening, Payment, PaymentTrigger
from ...domain.payments.reports import Decision
from ...domain.subscriptions.binding_reports import may_bind
from ...domain.subscriptions.moves import revoked
from ...domain.subscriptions.subscriptions import Subscription, SubscriptionStatus
from ..common.schedule import FollowUp, pause_after, reschedule
from ..gateways.watch import watched
from ..payments.moves import move
from ..payments.recurring import any_subscription, save_subscription
from .binders import binder
from .bindings import WAITING, find_at_bank

REVOKE = FollowUp("mandate.revoke")

_MOST = 1000
"""Bindings read per subscription and kind; far above the number that payers open."""


async def plan_revoking(ports: Ports, unit: Unit, subscription: Subscription) -> None:
    """Plan the job that ends the subscription's unused bindings and mandates at the banks. Call it in the unit that
    makes them unused.
    """
    now = ports.clock.now()
    await REVOKE.plan(unit, subscription.id, now, now, anew=True)


async def end_open_binding(ports: Ports, unit: Unit, subscription: Subscription, *, but: Payment | None = None) -> None:
    """End the open binding payment of a subscription that is over, in the caller's unit.

    Money that still arrives belongs to no subscription and waits for the operator (docs/subscriptions.md "How the payer
    binds"). `but` is a payment that the unit has saved already.
    """
    binding = subscription.binding
    if binding is None or binding.payment_id is None or (but is not None and but.id == binding.payment_id):
        return
    payment = await unit[Payment].get(binding.payment_id)
    if payment is None or payment.status not in WAITING:
        return
    is_symbolic = payment.binding is BindingCharge.NONE
    expired = is_symbolic or subscription.status is SubscriptionStatus.EXPIRED
    trigger = PaymentTrigger.LAPSED if expired else PaymentTrigger.SUBSCRIPTION_OVER
    await move(ports, unit, payment, Decision(trigger=trigger))


async def revoke(ports: Ports, job: Job) -> None:
    """Run the job of `plan_revoking` until every bank has confirmed."""
    async with ports.storage.unit() as unit:
        subscription = await any_subscription(unit, job.argument)
        payments = [] if subscription is None else await _bindings(unit, subscription)
    done = True
    for payment in payments:
        if subscription is not None and not _is_needed(subscription, payment):
            done = await end_at_bank(ports, payment, job.attempts) and done

    async def next_due(unit: Unit) -> datetime | None:
        if not done:
            # Retry without end: we no longer charge the payer, and the payer's bank must show that, too.
            return ports.clock.now() + pause_after(job.attempts)
        before = await any_subscription(unit, job.argument)
        if before is not None and before.is_final:
            await save_subscription(ports, unit, before, revoked(before, ports.clock.now()))
        return None

    await reschedule(ports, job, next_due)


async def _bindings(unit: Unit, subscription: Subscription) -> list[Payment]:
    return [
        payment
        for kind in BindingCharge
        for payment in await unit[Payment].find(
            account_id=subscription.account_id,
            mode=subscription.mode,
            subscription_id=subscription.id,
            binding=kind,
            order="created_at",
            limit=_MOST,
        )
    ]


def _is_needed(subscription: Subscription, payment: Payment) -> bool:
    """Return whether the payment gave the current mandate, or is a binding that the payer may still confirm."""
    if subscription.is_final:
        return False
    if (subscription.mandate_bank, subscription.mandate_reference) == (payment.bank, payment.bank_reference):
        return True
    return may_bind(subscription, payment)


async def end_at_bank(ports: Ports, payment: Payment, attempts: int) -> bool:
    """Ask the bank to end a binding, or the mandate from it. Return whether it is over there; if not, the caller calls
    again. `attempts` counts the calls.
    """
    if payment.bank_reference is None:
        try:
            found = await find_at_bank(ports, payment)
        except NO_ANSWER:
            return False
        if found is not None and found.bank_reference is None:
            # The request may still be on its way, so the bank must answer twice that it never saw it.
            return payment.opening is Opening.OPEN or attempts > 1
        if found is None:
            return True
        payment = found
    try:
        bank = binder(ports, payment.bank)
        async with watched(ports, payment.mode, payment.bank):
            await bank.revoke(payment.bank_reference or "")
    except Refused:
        return True
    except NO_ANSWER:
        return False
    return True
