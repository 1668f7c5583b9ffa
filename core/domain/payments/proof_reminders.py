"""When to remind a merchant of a missing delivery proof (docs/payments.md "Delivery proofs";
docs/payloads.md "Delivery proof reminder")."""

from datetime import datetime, timedelta

from .payments import Payment
from .proofs import PROVABLE, DeliveryProof, ProofStatus

REMINDERS = (timedelta(hours=24), timedelta(hours=48), timedelta(hours=72))
"""Counted from the payment; at most one reminder each."""


def reminder_number(paid_at: datetime, now: datetime) -> int:
    """Return the number of the reminder that is due, from 1; 0 before the first.

    If the service was down while several became due, only the last one counts: a merchant never gets two at once.
    """
    return sum(paid_at + pause <= now for pause in REMINDERS)


def next_reminder(paid_at: datetime, number: int) -> datetime | None:
    """Return when the reminder after this one is due; None after the last."""
    return paid_at + REMINDERS[number] if number < len(REMINDERS) else None


def is_missing(payment: Payment, proof: DeliveryProof | None) -> bool:
    """Return whether the payment could have a proof now, and none was submitted or the last one is rejected."""
    return payment.status in PROVABLE and (proof is None or proof.status is ProofStatus.REJECTED)
