"""Withdrawal of a binding that shows the payer an outdated amount (docs/subscriptions.md "Changing and ending").

The unit that changes the amount lets the binding's payment lapse and plans a job; the job ends the QR or link at the
bank. A payer who confirmed before that still counts: the payment may be paid late, and the payer is bound on the terms
that the page showed.
"""

from ....ports.bundle import Ports
from ....ports.faults import NO_ANSWER, Refused
from ....ports.jobs import Job
from ....ports.storage import Unit
from ...domain.payments.payments import Payment, PaymentTrigger
from ...domain.payments.reports import Decision
from ...domain.subscriptions.binding_reports import is_outdated
from ...domain.subscriptions.moves import binding_withdrawn
from ...domain.subscriptions.subscriptions import Subscription
from ..common.schedule import FollowUp, pause_after, reschedule_at
from ..payments.moves import move
from ..payments.recurring import any_subscription
from .binding_progress import look
from .bindings import WAITING
from .mandate_end import end_at_bank

WITHDRAW = FollowUp("binding.withdraw")
"""The job that ends a withdrawn binding at its bank."""


async def withdraw_outdated(ports: Ports, unit: Unit, subscription: Subscription) -> Subscription:
    """Withdraw the current binding, in the caller's unit, if it waits for its payer with an outdated amount. Return the
    subscription, which the caller saves.
    """
    binding = subscription.binding
    payment = None if binding is None else await unit[Payment].get(binding.payment_id or "")
    if payment is None or payment.status not in WAITING or not is_outdated(subscription, payment):
        return subscription
    await move(ports, unit, payment, Decision(trigger=PaymentTrigger.LAPSED))
    now = ports.clock.now()
    unit[Job].add(WITHDRAW.first(payment.id, now, now))
    return binding_withdrawn(subscription, now)


async def withdraw(ports: Ports, job: Job) -> None:
    """Run the job of `withdraw_outdated` until the bank has ended the binding or reports that the payer confirmed
    first.
    """
    payment = await ports.storage.get(Payment, job.argument)
    done = payment is None or await _ended(ports, payment, job.attempts)
    await reschedule_at(ports, job, None if done else ports.clock.now() + pause_after(job.attempts))


async def _ended(ports: Ports, payment: Payment, attempts: int) -> bool:
    try:
        if await _is_used(ports, payment.id):
            return True
        done = await end_at_bank(ports, payment, attempts)
        # The payer may have paid between the two calls.
        await _is_used(ports, payment.id)
    except Refused:  # the bank has no such binding
        return True
    except NO_ANSWER:
        return False
    return done


async def _is_used(ports: Ports, payment_id: str) -> bool:
    """Apply the bank's current answer, and return whether to leave the binding alone: it was paid or confirmed, or its
    amount is correct again. Raises: faults of the bank port.
    """
    payment = await ports.storage.get(Payment, payment_id)
    if payment is not None:
        payment = await look(ports, payment)
    async with ports.storage.unit() as unit:
        subscription = None if payment is None else await any_subscription(unit, payment.subscription_id or "")
    return payment is None or subscription is None or not is_outdated(subscription, payment)
