"""The effect of a bank's report about a charge, and the handling of charges without a known outcome: pure functions
(docs/subscriptions.md "When a charge is refused"; ARCHITECTURE.md "Three outcomes")."""

from datetime import UTC, datetime, timedelta
from enum import StrEnum

import msgspec

from ..payments.payments import Payment, PaymentStatus
from ..payments.reports import Decision, Report, decide
from .subscriptions import Subscription

SEND_LONGEST = timedelta(hours=24)
"""How long after its creation a charge may be sent again, by the merchant's repeat or by ourselves: later, nobody
expects it."""
ON_ITS_WAY = timedelta(minutes=10)
"""Far longer than a request can be in flight."""

_NEVER = datetime.max.replace(tzinfo=UTC)


def decide_charge_report(payment: Payment, report: Report, now: datetime) -> Decision:
    """Decide as `reports.decide`, except that a charge never expires: no payer has to act, only the bank's report ends
    it, and late money counts."""
    return decide(msgspec.structs.replace(payment, expires_at=_NEVER), report, now)


class Step(StrEnum):
    """Action for a charge that its bank says it never saw."""

    SEND = "send"
    """Send the same operation again, which debits at most once."""
    WAIT = "wait"
    GIVE_UP = "give_up"
    """The charge failed: no request can be in flight, and none will be sent."""


def step_of(payment: Payment, subscription: Subscription, now: datetime) -> Step:
    """Decide about a charge that has no outcome and that its bank does not know.

    It is sent only if the payer's consent is still valid, and only to the bank that may already have it. It is given up
    only when no request can be in flight any more: otherwise its period would be free, and two debits of one period
    could meet.
    """
    if subscription.is_final:
        # No request begins after the subscription's end, and `updated_at` cannot be earlier than that end.
        return Step.GIVE_UP if now >= subscription.updated_at + ON_ITS_WAY else Step.WAIT
    if now < payment.created_at + SEND_LONGEST:
        sends = subscription.can_be_charged and subscription.mandate_bank == payment.bank
        return Step.SEND if sends else Step.WAIT
    return Step.GIVE_UP if now >= payment.created_at + SEND_LONGEST + ON_ITS_WAY else Step.WAIT


def has_no_outcome(payment: Payment) -> bool:
    """Return whether the charge is neither paid nor failed nor under review: it then occupies its period."""
    return payment.status in (PaymentStatus.PENDING, PaymentStatus.PROCESSING)
