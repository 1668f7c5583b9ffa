"""The effect of a bank's report about a binding and its mandate on the binding payment and the subscription: pure
functions, so that every case is one row of a test (docs/states.md "Subscription";
docs/subscriptions.md "How the payer binds").

Money and mandate arrive in any order, late, twice, or never. A binding with a first charge is complete when both are
there; one without, when the mandate is.
"""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

import msgspec

from ..money import Rub
from ..payments.payments import LATE_WINDOW, BindingCharge, FailureReason, Payment, PaymentStatus, PaymentTrigger
from ..payments.reports import Arrival, Decision, Report, Unapplied, decide
from .moves import (
    Mandate,
    binding_closed,
    bound,
    consent_ended,
    first_paid,
    link_issued,
    mandate_lost,
    mandate_restored,
    past_due,
)
from .subscriptions import Subscription, SubscriptionStatus


class MandateStanding(StrEnum):
    """State of a binding, and then of its mandate, at the bank."""

    OPEN = "open"
    ACTIVE = "active"
    REFUSED = "refused"
    CLOSED = "closed"
    LOST = "lost"
    ENDED = "ended"


class BindingReport(msgspec.Struct, frozen=True, kw_only=True):
    """The bank's view of a binding."""

    standing: MandateStanding
    link: str | None = None
    overdue: bool = False
    arrivals: tuple[Arrival, ...] = ()
    failure: FailureReason | None = None


_P = PaymentStatus
_M = MandateStanding
_REPORTED: Mapping[MandateStanding, PaymentStatus] = {_M.REFUSED: _P.FAILED, _M.CLOSED: _P.EXPIRED}
"""Payment statuses that a binding without money implies; other reports say nothing new."""
_GIVEN = (_M.ACTIVE, _M.LOST)
"""The payer gave the mandate; with LOST, the bank no longer accepts it."""
_WAITING = (_P.PENDING, _P.PROCESSING)
TOOK_MONEY = (_P.PAID, _P.SETTLED, _P.REFUNDED)


def decide_binding(payment: Payment, subscription: Subscription, report: BindingReport, now: datetime) -> Decision:
    """Decide the effect on the binding payment. Money that cannot be its subscription's first charge is an unapplied
    transfer: a payer who paid two QR codes, or for a subscription that is over, is not charged for it
    (docs/payments.md "Money that cannot count"; docs/subscriptions.md "How the payer binds")."""
    if payment.binding is BindingCharge.NONE:
        return _decide_symbolic(payment, subscription, report, now)
    arrivals = report.arrivals
    told = Report(status=_REPORTED.get(report.standing, _P.PENDING), failure=report.failure)
    barrier = _barrier(payment, subscription)
    if barrier is None:
        return decide(payment, msgspec.structs.replace(told, arrivals=arrivals), now)
    unapplied = tuple(Unapplied(arrival, barrier) for arrival in arrivals)
    return msgspec.structs.replace(decide(payment, told, now), unapplied=unapplied)


def _barrier(payment: Payment, subscription: Subscription) -> str | None:
    """Return why this payment may not take money for the subscription; None if it may, or already has."""
    if payment.transfer_id is not None or payment.status not in (*_WAITING, _P.EXPIRED):
        return None
    if subscription.is_final:
        return f"after_{subscription.status.value}"
    if subscription.status is not SubscriptionStatus.PENDING_BINDING or subscription.first_payment_id is not None:
        return "bound_already"
    return None


def _decide_symbolic(payment: Payment, subscription: Subscription, report: BindingReport, now: datetime) -> Decision:
    """Decide for a binding without a debit. A refusal makes it `expired`, not `failed`, because the payer may still
    confirm (docs/payments.md "How it ends")."""
    unapplied = tuple(Unapplied(arrival, "not_to_be_debited") for arrival in report.arrivals)
    trigger: PaymentTrigger | None = None
    if report.standing in _GIVEN and not subscription.is_final:
        late = payment.status is _P.EXPIRED and now <= max(payment.created_at + LATE_WINDOW, payment.expires_at)
        trigger = PaymentTrigger.PAID if late or payment.status in _WAITING else None
    elif payment.status in _WAITING and (report.standing in _REPORTED or now >= payment.expires_at):
        trigger = PaymentTrigger.LAPSED
    return Decision(trigger=trigger, unapplied=unapplied)


def symbolically_paid(payment: Payment) -> Payment:
    """Return the payment confirmed without a debit: `actual_amount_rub` is 0.00."""
    return msgspec.structs.replace(payment, actual_amount=Rub(0))


def follow_binding(
    subscription: Subscription,
    payment: Payment,
    report: BindingReport,
    mandate: Mandate | None,
    first: Payment | None,
    now: datetime,
) -> Subscription:
    """Return the subscription after the report. `payment` is the binding payment after `decide_binding`; `mandate` is
    the mandate of the binding, None if there is none so far; `first` is the payment that took the first charge,
    possibly this one."""
    binding = subscription.binding
    is_current = binding is not None and binding.payment_id == payment.id
    after = subscription
    if is_current and report.link is not None:
        after = link_issued(after, report.link, now)
    if first is not None:
        after = first_paid(after, first.id, now)
    if holds_mandate(subscription, payment):
        return follow_mandate(after, report, now)
    if report.standing in _GIVEN and mandate is not None:
        return _bound(after, payment, report, mandate, first, now)
    if report.standing is _M.CLOSED and is_current and now < payment.expires_at:
        # The payment system closed it early. At its normal end it merely expires, and another one may be opened.
        return binding_closed(after, now)
    return after


def _bound(
    subscription: Subscription,
    payment: Payment,
    report: BindingReport,
    mandate: Mandate,
    first: Payment | None,
    now: datetime,
) -> Subscription:
    shown = subscription.amount if payment.shown_amount is None else payment.shown_amount
    if subscription.is_final:
        if report.standing is not _M.ACTIVE:
            return subscription
        return bound(subscription, mandate, shown=shown, at=now, charge=None, now=now)
    if not may_bind(subscription, payment):
        return subscription
    if subscription.status is not SubscriptionStatus.PENDING_BINDING:
        after = bound(subscription, mandate, shown=shown, at=now, charge=None, now=now)
    elif payment.binding is BindingCharge.FIRST and first is None:
        # Bound before paid: the subscription begins when the money arrives.
        return subscription
    else:
        at = now if first is None or first.paid_at is None else first.paid_at
        charge = None if first is None else first.id
        after = bound(subscription, mandate, shown=shown, at=at, charge=charge, now=now)
        if report.standing is _M.LOST:
            # Confirmed and lost since then: two moves, each with its own event. The caller applies a LOST report twice,
            # and the second time makes the second move.
            return after
    return follow_mandate(after, report, now)


def may_bind(subscription: Subscription, payment: Payment) -> bool:
    """Return whether the subscription accepts a mandate from this binding. While it waits for its first mandate: from
    any binding. After a mandate was lost: from bindings opened since. While it is active: from the last binding,
    because the payer has just confirmed it."""
    if subscription.status is SubscriptionStatus.PAUSED and subscription.paused_at is not None:
        return subscription.rebind_required and payment.created_at >= subscription.paused_at
    if subscription.status is SubscriptionStatus.ACTIVE:
        return subscription.binding is not None and subscription.binding.payment_id == payment.id
    return subscription.status is SubscriptionStatus.PENDING_BINDING


def is_outdated(subscription: Subscription, payment: Payment) -> bool:
    """Return whether this unpaid binding shows the payer an amount that is no longer the subscription's. It is ended at
    the bank; a payer who still confirms is bound by the amount shown."""
    is_unpaid = payment.status in (*_WAITING, _P.EXPIRED)
    return is_unpaid and payment.shown_amount not in (None, subscription.amount)


def holds_mandate(subscription: Subscription, payment: Payment) -> bool:
    """Return whether the subscription's mandate comes from this binding."""
    if subscription.mandate_reference is None:
        return False
    return (subscription.mandate_bank, subscription.mandate_reference) == (payment.bank, payment.bank_reference)


def follow_mandate(subscription: Subscription, report: BindingReport, now: datetime) -> Subscription:
    """Apply a report about the present mandate."""
    if report.standing is _M.LOST:
        return mandate_lost(subscription, now)
    if report.standing is _M.ENDED:
        return consent_ended(subscription, now)
    if report.standing is _M.ACTIVE:
        return past_due(mandate_restored(subscription, now), overdue=report.overdue, now=now)
    return subscription


def is_unknown_mandate(subscription: Subscription, payment: Payment, report: BindingReport) -> bool:
    """Return whether the bank has a mandate, or an open binding, that the subscription (in its new state) does not
    need."""
    if report.standing not in (_M.OPEN, *_GIVEN):
        return False
    if subscription.is_final:
        return True
    if report.standing is _M.OPEN or holds_mandate(subscription, payment):
        return False
    return not may_bind(subscription, payment)
