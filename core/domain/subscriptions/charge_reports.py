"""What a bank's word means for a charge, and what may be done about one that nobody knows of: pure functions
(docs/subscriptions.md "When a charge is refused"; ARCHITECTURE.md "Three ends")."""

from datetime import UTC, datetime, timedelta
from enum import StrEnum

import msgspec

from ..payments.payments import Payment, PaymentStatus
from ..payments.reports import Decision, Report, decide
from .subscriptions import Subscription

SEND_LONGEST = timedelta(hours=24)
"""From its creation a charge may be sent again, by the merchant's repeat or by ourselves: later nobody expects it."""
ON_ITS_WAY = timedelta(minutes=10)
"""Far longer than a request that was sent can be under way."""

_NEVER = datetime.max.replace(tzinfo=UTC)


def decide_charge_report(payment: Payment, report: Report, now: datetime) -> Decision:
    """As `reports.decide`, but that a charge never expires: no payer lets it pass, only the bank's word ends it, and
    late money is its money."""
    return decide(msgspec.structs.replace(payment, expires_at=_NEVER), report, now)


class Step(StrEnum):
    """What is done about a charge that its bank says it never saw."""

    SEND = "send"
    """The same operation is sent again, which debits once at most."""
    WAIT = "wait"
    GIVE_UP = "give_up"
    """The charge failed: nobody can have sent it of late, and nobody will."""


def step_of(payment: Payment, subscription: Subscription, now: datetime) -> Step:
    """What may be done about a charge that has no outcome and is not known to its bank.

    Only what the payer still agrees to is sent, and only to the bank that may have it already. It is given up when no
    request can be under way any more: else its period would be free, and two debits of one period could meet.
    """
    if subscription.is_final:
        # No request begins after the end, and every change since then is later than that.
        return Step.GIVE_UP if now >= subscription.updated_at + ON_ITS_WAY else Step.WAIT
    if now < payment.created_at + SEND_LONGEST:
        sends = subscription.can_be_charged and subscription.mandate_bank == payment.bank
        return Step.SEND if sends else Step.WAIT
    return Step.GIVE_UP if now >= payment.created_at + SEND_LONGEST + ON_ITS_WAY else Step.WAIT


def has_no_outcome(payment: Payment) -> bool:
    """The charge is neither paid nor failed, nor under review: it holds its period."""
    return payment.status in (PaymentStatus.PENDING, PaymentStatus.PROCESSING)
