"""When a merchant is reminded of a missing delivery proof (docs/payments.md "Delivery proofs";
docs/payloads.md "Delivery proof reminder")."""

from datetime import datetime, timedelta

from .payments import Payment
from .proofs import PROVABLE, DeliveryProof, ProofStatus

REMINDERS = (timedelta(hours=24), timedelta(hours=48), timedelta(hours=72))
"""After payment; at most one reminder each."""


def reminder_number(paid_at: datetime, now: datetime) -> int:
    """Which reminder it is time for, from 1; 0 before the first.

    Where the service stood still over several of them, only the last is left: a merchant is not reminded twice at once.
    """
    return sum(paid_at + pause <= now for pause in REMINDERS)


def next_reminder(paid_at: datetime, number: int) -> datetime | None:
    """When the reminder after the one of this number is due; None after the last."""
    return paid_at + REMINDERS[number] if number < len(REMINDERS) else None


def is_missing(payment: Payment, proof: DeliveryProof | None) -> bool:
    """The payment could have a proof now, and none was submitted or the last one is rejected."""
    return payment.status in PROVABLE and (proof is None or proof.status is ProofStatus.REJECTED)
