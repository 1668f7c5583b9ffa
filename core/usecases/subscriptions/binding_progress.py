"""The life of a binding at the bank: its notifications, its deadline, and polling when no notification arrives.

Every binding has its own payment, including bindings whose QR has lapsed, because a payer may confirm late. A bank's
answer takes effect in one unit: payment, money, events and subscription.
"""

from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec

from ....ports.bundle import Ports
from ....ports.faults import NO_ANSWER
from ....ports.jobs import Job
from ....ports.mandates import MandateState
from ....ports.storage import Unit
from ...domain.payments.payments import BindingCharge, LinkKind, Payment, PaymentStatus, PaymentTrigger
from ...domain.payments.reports import Decision
from ...domain.subscriptions.binding_reports import (
    TOOK_MONEY,
    BindingReport,
    MandateStanding,
    decide_binding,
    follow_binding,
    is_unknown_mandate,
    symbolically_paid,
)
from ...domain.subscriptions.moves import Mandate
from ...domain.subscriptions.periods import current_period
from ...domain.subscriptions.subscriptions import Subscription, SubscriptionStatus
from ..common.encrypted import mandate_aad, pay_tag
from ..common.schedule import reschedule
from ..common.simulated import is_advanced_over
from ..common.units import retrying
from ..gateways.polling import Looked, next_late_poll, next_poll, poll
from ..gateways.watch import watched
from ..operations.repeating import may_repeat
from ..payments.moves import RACES, carry, read_arrivals, read_failure
from ..payments.opening import link_kind
from ..payments.recurring import any_subscription, binding_operation, bound_by, save_subscription
from .binders import binder
from .bindings import WAITING, ask, find_at_bank, take_back
from .mandate_end import end_open_binding, plan_revoking

ASK_AGAIN = (
    timedelta(seconds=10),
    timedelta(seconds=30),
    timedelta(minutes=2),
    timedelta(minutes=10),
)
"""Backoff schedule for a bank that did not answer or has not issued a link yet; the last step repeats until the
deadline.
"""

PAYER_POLLS = timedelta(minutes=10)
"""Poll interval for a binding that waits for its payer; the last poll is at its deadline."""
ADVANCED_POLLS = timedelta(days=1)
"""Poll interval when the subscription lives on an advanced sandbox clock (simulated.py)."""

_OVER = (PaymentStatus.EXPIRED, PaymentStatus.CANCELLED, PaymentStatus.FAILED)


class Link(NamedTuple):
    """The QR payload and the kind of a binding's link."""

    payload: str | None = None
    kind: LinkKind | None = None


NO_LINK = Link()


def read_state(state: MandateState) -> BindingReport:
    """Convert a bank's mandate state to a domain report."""
    return BindingReport(
        standing=MandateStanding(state.status.value),
        link=state.link,
        overdue=state.overdue,
        arrivals=read_arrivals(state.transfers),
        failure=read_failure(state.failure),
    )


async def on_binding_notification(ports: Ports, operation: str) -> None:
    """Handle a bank's notification about a binding or its mandate. It is only a hint, so poll the bank."""
    payment = await ports.storage.get(Payment, bound_by(operation) or "")
    subscription_id = None if payment is None else payment.subscription_id
    if payment is None or subscription_id is None or operation != binding_operation(payment.id):
        return
    payment = await find_at_bank(ports, payment)
    if payment is not None:
        await look(ports, payment)


async def look(ports: Ports, payment: Payment) -> Payment:
    """Poll the bank for the binding, and apply the answer. Raises: faults of the bank port."""
    return payment if payment.bank_reference is None else await _take(ports, payment, await _ask(ports, payment))


async def _ask(ports: Ports, payment: Payment) -> MandateState:
    """Raises: faults of the bank port."""
    async with watched(ports, payment.mode, payment.bank):
        return await binder(ports, payment.bank).mandate_state(payment.bank_reference or "")


async def _take(ports: Ports, payment: Payment, state: MandateState) -> Payment:
    link = Link(state.payload, link_kind(state.kind))
    return await conclude(ports, payment, read_state(state), link=link, token=state.token) or payment


async def conclude(
    ports: Ports, asked: Payment, report: BindingReport, *, link: Link = NO_LINK, token: str | None = None
) -> Payment | None:
    """Apply a report; each move of the subscription is one unit.

    The report may come late, twice, or from a notification and a poll at the same moment. Return the payment as saved;
    None when the payment does not exist.
    """

    async def work(unit: Unit) -> Payment | None:
        found = await unit[Payment].get(asked.id)
        before = None if found is None else await any_subscription(unit, found.subscription_id or "")
        if found is None or before is None:
            return found
        now = ports.clock.now()
        # Move the payment, with its money and events.
        payment = _with_link(ports, found, report, link)
        decision = decide_binding(payment, before, report, now)
        if decision.trigger is PaymentTrigger.PAID:
            payment = _paid(payment, before, decision, now)
        carried = await carry(ports, unit, payment, decision)
        if carried is payment and payment != found:
            carried = unit[Payment].save(payment)
        # Then move the subscription by the new state of its payment.
        mandate = _mandate(ports, before, payment, token)
        first = await _first(unit, before, carried)
        after = follow_binding(before, carried, report, mandate, first, now)
        ended = after.is_final and not before.is_final
        await save_subscription(ports, unit, before, after)
        if ended:
            await end_open_binding(ports, unit, after, but=carried)
        # Finally end the mandates and bindings that the subscription no longer uses.
        replaced = before.mandate_reference not in (None, after.mandate_reference)
        if ended or replaced or is_unknown_mandate(after, carried, report):
            await plan_revoking(ports, unit, after)
        return carried

    async def moved() -> Payment | None:
        return await retrying(ports.storage, work, again_on=(*RACES, "jobs_id"))

    concluded = await moved()
    # A report of a lost mandate may be the first news of its binding: the first pass binds, the second marks it lost.
    return await moved() if report.standing is MandateStanding.LOST else concluded


def _with_link(ports: Ports, payment: Payment, report: BindingReport, link: Link) -> Payment:
    if payment.bank_link is not None or report.link is None:
        return payment
    linked = msgspec.structs.replace(payment, qr_payload=link.payload, bank_link=report.link, link_kind=link.kind)
    return msgspec.structs.replace(linked, pay_tag=pay_tag(ports.vault, linked))


def _paid(payment: Payment, subscription: Subscription, decision: Decision, now: datetime) -> Payment:
    """Complete a paid binding payment. The first binding opens the first period on the day of its confirmation."""
    if payment.binding is BindingCharge.NONE:
        payment = symbolically_paid(payment)
    if subscription.anchor is not None:
        return payment
    at = now if decision.arrival is None else min(decision.arrival.at, now)
    return msgspec.structs.replace(payment, period_ref=current_period(subscription.terms, at).ref)


def _mandate(ports: Ports, subscription: Subscription, payment: Payment, token: str | None) -> Mandate | None:
    if token is None or payment.bank is None or payment.bank_reference is None:
        return None
    sealed = ports.vault.encrypt(token.encode(), mandate_aad(subscription.id))
    return Mandate(bank=payment.bank, reference=payment.bank_reference, token=sealed)


async def _first(unit: Unit, subscription: Subscription, payment: Payment) -> Payment | None:
    """Return the binding payment that took the first charge, while the subscription waits for its first mandate."""
    if subscription.status is not SubscriptionStatus.PENDING_BINDING:
        return None
    if subscription.first_payment_id in (None, payment.id):
        took = payment.binding is BindingCharge.FIRST and payment.status in TOOK_MONEY
        return payment if took else None
    return await unit[Payment].get(subscription.first_payment_id or "")


async def watch_binding(ports: Ports, job: Job) -> None:
    """Follow a binding until it ends (a job).

    Repeat the request where a crash or a lost answer left the binding open, poll for link, money and mandate where the
    bank sends no notification, and let the binding lapse at its deadline.
    """
    payment = await ports.storage.get(Payment, job.argument)
    if payment is not None and payment.bank_reference is None:
        payment = await _recover(ports, payment)
    looked = Looked()
    if payment is not None and payment.bank_reference is not None:
        payment, looked = await poll_or_lapse(ports, payment)
    await _reschedule(ports, job, payment, looked)


async def poll_or_lapse(ports: Ports, payment: Payment) -> tuple[Payment, Looked]:
    """Poll the bank for a binding that has a bank reference.

    When the bank does not answer, or the poll budget is used up, the binding still lapses at its deadline: `expired`
    allows a late success.
    """
    state, looked = await poll(ports, payment, _ask)
    if state is None:
        return await _lapse_if_due(ports, payment), looked
    return await _take(ports, payment, state), looked


async def _lapse_if_due(ports: Ports, payment: Payment) -> Payment:
    return await conclude(ports, payment, BindingReport(standing=MandateStanding.OPEN)) or payment


async def _recover(ports: Ports, payment: Payment) -> Payment | None:
    """Repeat the request under the same operation id.

    After the deadline nobody can confirm, so take back a binding that no bank knows and return None. A binding whose
    subscription ended is left to `mandate_end.revoke`.
    """
    is_awaited = payment.status in WAITING and ports.clock.now() < payment.expires_at
    if is_awaited and may_repeat(ports, payment.bank, payment.created_at):
        return await ask(ports, payment)
    if payment.status not in (*WAITING, PaymentStatus.EXPIRED):
        return payment
    try:
        found = await find_at_bank(ports, payment)
    except NO_ANSWER:
        return await _lapse_if_due(ports, payment)
    if is_awaited or found is None or found.bank_reference is not None or found.status not in WAITING:
        return found

    async def work(unit: Unit) -> None:
        present = await unit[Payment].get(payment.id)
        if present is not None and present.bank_reference is None and present.status in WAITING:
            await take_back(ports, unit, present)

    await retrying(ports.storage, work)
    return None


async def _reschedule(ports: Ports, job: Job, payment: Payment | None, looked: Looked) -> None:
    async def next_due(unit: Unit) -> datetime | None:
        subscription = None if payment is None else await any_subscription(unit, payment.subscription_id or "")
        if payment is None or subscription is None:
            return None
        return next_status_poll(ports, payment, subscription, job.attempts, looked)

    await reschedule(ports, job, next_due)


def next_status_poll(
    ports: Ports, payment: Payment, subscription: Subscription, polls: int, looked: Looked
) -> datetime | None:
    """Return when to poll the bank for this binding next; None when only notifications matter from now on."""
    now = ports.clock.now()
    at = next_poll(ports, payment, looked)
    payer_polls = ADVANCED_POLLS if is_advanced_over(ports, payment.bank) else PAYER_POLLS
    step = ASK_AGAIN[min(max(polls, 1), len(ASK_AGAIN)) - 1]
    if payment.bank_reference is None and payment.status in WAITING:
        return min(now + step, _deadline(payment, now, ASK_AGAIN[0]))
    if payment.status in WAITING:
        if payment.bank_link is None and payment.qr_payload is None and not looked.has_hint:
            at = min(at or now + step, now + step)
        return min(at or now + payer_polls, _deadline(payment, now, ASK_AGAIN[1]))
    if payment.status in _OVER:
        return next_late_poll(ports, payment, looked)
    waits = subscription.status is SubscriptionStatus.PENDING_BINDING
    if waits and payment.status in (PaymentStatus.PAID, PaymentStatus.SETTLED, PaymentStatus.AMOUNT_MISMATCH):
        # Paid but not bound, or under review: the mandate, or the end of the review, may still come.
        return at or now + payer_polls
    return None


def _deadline(payment: Payment, now: datetime, later: timedelta) -> datetime:
    """Return the latest time of the next poll: the binding's own deadline, or `later` from now once it has passed."""
    return payment.expires_at if now < payment.expires_at else now + later
