"""How charges change their subscription: pure functions, as in moves.py (docs/subscriptions.md "Periods and attempts").

They work in any status: a charge may end after its subscription was paused or cancelled, and its effect remains. An
outcome may be reported twice; the second report changes nothing.
"""

from datetime import datetime, timedelta
from typing import Any

import msgspec

from ..accounts.accounts import Scheme
from .charge_decisions import Attempts, Exhaustion, MayCharge
from .moves import anchored, announced, changed
from .periods import Period
from .subscriptions import Subscription, SubscriptionStatus


def charge_started(
    subscription: Subscription, decision: MayCharge, *, payment_id: str, external_id: str | None, now: datetime
) -> Subscription:
    """Record the attempt that `decision` allowed, before the request to the bank. Announce the decision's exhaustion
    first: this call may discard the previous period."""
    earlier = subscription.attempts
    if earlier is None or earlier.period.ref != decision.period.ref:
        attempts = Attempts(
            period=decision.period, used=1, first_at=now, payment_id=payment_id, external_id=external_id, pending=True
        )
    else:
        attempts = msgspec.structs.replace(
            earlier, used=decision.attempt, payment_id=payment_id, external_id=external_id, pending=True
        )
    return changed(subscription, now, attempts=attempts)


def charge_undone(subscription: Subscription, payment_id: str, now: datetime) -> Subscription:
    """Remove an attempt that was certainly not made and whose payment is deleted: the period is as free as before
    it."""
    attempts = _pending(subscription, payment_id)
    if attempts is None:
        return subscription
    before = msgspec.structs.replace(attempts, used=attempts.used - 1, pending=False)
    return changed(subscription, now, attempts=before if before.used else None)


def charge_failed(subscription: Subscription, payment_id: str, now: datetime) -> Subscription:
    """Record that the attempt certainly failed: the period is free for another one, if its budget allows. Then check
    `exhaustion`, and schedule a check at `exhaustion_due_at`."""
    attempts = _pending(subscription, payment_id)
    if attempts is None:
        return subscription
    return changed(subscription, now, attempts=msgspec.structs.replace(attempts, pending=False))


def charge_succeeded(
    subscription: Subscription, payment_id: str, period_ref: str, *, at: datetime, now: datetime
) -> Subscription:
    """Record that a charge for `period_ref` was paid at `at`, by the bank's clock: the anchor moves there, and nothing
    is overdue.

    The anchor is never before the paid period; otherwise a bank's clock that is behind would open that period a second
    time. In the window scheme it may be after it: after a late payment, periods count from then on.
    """
    attempts = subscription.attempts
    changes: dict[str, Any] = {}
    if attempts is not None and attempts.period.ref == period_ref:
        if attempts.paid and attempts.payment_id == payment_id and not attempts.pending:
            return subscription
        at = _within(attempts.period, at, late=subscription.scheme is Scheme.WINDOW)
        if attempts.payment_id == payment_id:
            attempts = msgspec.structs.replace(attempts, pending=False)
        elif not attempts.pending:
            attempts = msgspec.structs.replace(attempts, payment_id=payment_id, external_id=None)
        changes["attempts"] = msgspec.structs.replace(attempts, paid=True)
    changes |= anchored(subscription, at)
    if subscription.status is SubscriptionStatus.ACTIVE:
        changes["past_due"] = False
    after = changed(subscription, subscription.updated_at, **changes)
    return subscription if after == subscription else msgspec.structs.replace(after, updated_at=now)


def exhaustion_announced(subscription: Subscription, exhaustion: Exhaustion, now: datetime) -> Subscription:
    """Record that the event about the exhaustion is sent. Raises: ValueError for a period that is not the one charged
    last."""
    attempts = subscription.attempts
    if attempts is None or attempts.announced or attempts.period.ref != exhaustion.period_ref:
        raise ValueError(f"there is no exhaustion of {exhaustion.period_ref} to announce")
    return announced(changed(subscription, now, attempts=msgspec.structs.replace(attempts, announced=True)))


def _within(period: Period, at: datetime, *, late: bool) -> datetime:
    at = max(at, period.opens_at)
    return at if late else min(at, period.closes_at - timedelta(microseconds=1))


def _pending(subscription: Subscription, payment_id: str) -> Attempts | None:
    attempts = subscription.attempts
    return attempts if attempts is not None and attempts.pending and attempts.payment_id == payment_id else None
