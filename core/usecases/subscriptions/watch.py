"""The schedule of a subscription: deadlines of its first binding and of a pause, and a daily poll of its mandate
(docs/states.md "Subscription"; docs/subscriptions.md "How the payer binds").
"""

from datetime import datetime, timedelta

from ....ports.bundle import Ports
from ....ports.faults import NO_ANSWER
from ....ports.jobs import Job
from ....ports.storage import Unit
from ...domain.payments.payments import Payment
from ...domain.subscriptions.binding_reports import follow_mandate
from ...domain.subscriptions.moves import binding_timed_out, pause_timed_out
from ...domain.subscriptions.subscriptions import Subscription, binding_ends_at, pause_ends_at
from ..common.schedule import FollowUp, reschedule_at
from ..common.simulated import is_advanced_over
from ..common.units import retrying, unit_of_work
from ..gateways.watch import watched
from ..payments.recurring import any_subscription, save_subscription
from .binders import binder
from .binding_progress import poll_or_lapse, read_state
from .bindings import find_at_bank
from .mandate_end import end_open_binding, plan_revoking

WATCH_SUBSCRIPTION = FollowUp("subscription.watch")
"""The job that follows a subscription until its end."""

MANDATE_POLLS = timedelta(days=1)
"""Poll interval of a mandate."""
ADVANCED_POLLS = timedelta(days=90)
"""Poll interval when the subscription lives on an advanced sandbox clock (simulated.py)."""


def first_subscription_watch(subscription: Subscription) -> Job:
    """Return the watch job of a new subscription."""
    due = binding_ends_at(subscription) or subscription.created_at + MANDATE_POLLS
    return WATCH_SUBSCRIPTION.first(subscription.id, due, subscription.created_at)


async def watch_subscription(ports: Ports, job: Job) -> None:
    """Poll the open binding and the mandate, end what is overdue, and reschedule the job for the next deadline."""
    async with ports.storage.unit() as unit:
        subscription = await any_subscription(unit, job.argument)
    if subscription is not None and not subscription.is_final:
        await _poll_binding(ports, subscription)
        await poll_mandate(ports, subscription)
        subscription = await end_overdue(ports, subscription.id)
    pause = (
        ADVANCED_POLLS
        if subscription is not None and is_advanced_over(ports, subscription.mandate_bank)
        else MANDATE_POLLS
    )
    await reschedule_at(ports, job, None if subscription is None else next_due(subscription, ports.clock.now(), pause))


async def _poll_binding(ports: Ports, subscription: Subscription) -> None:
    """Poll the binding before its deadline: the payer may have confirmed, and the notification been lost."""
    binding = subscription.binding
    payment = None if binding is None else await ports.storage.get(Payment, binding.payment_id or "")
    if payment is None:
        return
    try:
        payment = await find_at_bank(ports, payment)
    except NO_ANSWER:
        return
    if payment is not None and payment.bank_reference is not None:
        await poll_or_lapse(ports, payment)


async def poll_mandate(ports: Ports, subscription: Subscription) -> None:
    """Poll the bank for the mandate, and apply the answer. A bank that does not answer changes nothing."""
    bank, reference = subscription.mandate_bank, subscription.mandate_reference
    if bank is None or reference is None:
        return
    try:
        async with watched(ports, subscription.mode, bank):
            state = await binder(ports, bank).mandate_state(reference)
    except NO_ANSWER:
        return
    report = read_state(state)

    async def work(unit: Unit) -> None:
        before = await any_subscription(unit, subscription.id)
        if before is None or (before.mandate_bank, before.mandate_reference) != (bank, reference):
            return
        await _save(ports, unit, before, follow_mandate(before, report, ports.clock.now()))

    await retrying(ports.storage, work)


@unit_of_work(again_on=("jobs_id",))
async def end_overdue(ports: Ports, unit: Unit, subscription_id: str) -> Subscription | None:
    """End a binding that nobody confirmed and a pause that lasted too long. Return the subscription."""
    before = await any_subscription(unit, subscription_id)
    if before is None:
        return None
    now = ports.clock.now()
    return await _save(ports, unit, before, pause_timed_out(binding_timed_out(before, now), now))


async def _save(ports: Ports, unit: Unit, before: Subscription, after: Subscription) -> Subscription:
    saved = await save_subscription(ports, unit, before, after)
    if after.is_final and not before.is_final:
        await end_open_binding(ports, unit, after)
        await plan_revoking(ports, unit, after)
    return saved


def next_due(subscription: Subscription, now: datetime, polls: timedelta = MANDATE_POLLS) -> datetime | None:
    """Return when to check the subscription again: its next deadline, or `polls` from now; None once it is over.
    Deadlines only move later, so none is missed.
    """
    if subscription.is_final:
        return None
    ends_at = binding_ends_at(subscription)
    if ends_at is not None:
        return ends_at
    look_at = now + polls
    ends_at = pause_ends_at(subscription)
    return look_at if ends_at is None else min(look_at, ends_at)
