"""Reminders of missing delivery proofs: 24, 48 and 72 hours after the payment (docs/payments.md "Delivery proofs")."""

from datetime import datetime

from msgspec import UNSET

from ....ports.bundle import Ports
from ....ports.jobs import Job
from ....ports.storage import Unit
from ...domain.accounts.accounts import Account
from ...domain.accounts.shops import Shop
from ...domain.days import iso
from ...domain.payloads import ProofReminderPayload
from ...domain.payments.payments import Payment, PaymentMove, announced
from ...domain.payments.proof_reminders import is_missing, next_reminder, reminder_number
from ...domain.payments.proofs import DeliveryProof, takes_proof
from ...domain.webhooks.events import EventType
from ..accounts.terminals import terminal_of
from ..common.schedule import FollowUp, is_ours, set_due
from ..common.units import unit_of_work
from ..webhooks.outbox import announce_of

REMIND = FollowUp("proof.remind")


async def plan_reminders(_ports: Ports, unit: Unit, move: PaymentMove) -> None:
    """Plan reminders for a payment that this unit makes paid for the first time, if it accepts a hash.

    Rolling back a refund plans none: reminders count from the payment itself.
    """
    before, after = move.before, move.after
    if before.paid_at is not None or after.paid_at is None or not takes_proof(after, await terminal_of(unit, after)):
        return
    due = next_reminder(after.paid_at, 0)
    if due is not None:
        unit[Job].add(REMIND.first(after.id, due, after.paid_at))


@unit_of_work()
async def remind(ports: Ports, unit: Unit, job: Job) -> None:
    """Send the due reminder if the proof is still missing (the job of `plan_reminders`).

    The event, the payment's sequence and the job's next step are one unit, guarded by the job's version: a worker that
    runs the same step again finds the job advanced, and writes nothing.
    """
    present = await unit[Job].get(job.id)
    if present is None or not is_ours(present, job):
        return
    payment = await unit[Payment].get(job.argument)
    if payment is None or payment.paid_at is None:
        unit[Job].remove(present)
        return
    # A machine whose clock lags behind the storage's clock must not repeat the previous step.
    number = reminder_number(payment.paid_at, max(ports.clock.now(), job.due))
    proof = await unit[DeliveryProof].get(payment.id)
    if number and is_missing(payment, proof):
        await _announce(ports, unit, payment, payment.paid_at, proof, number)
    due = next_reminder(payment.paid_at, number)
    is_proven = proof is not None and proof.is_locked
    set_due(unit, present, None if is_proven else due)


async def _announce(
    ports: Ports, unit: Unit, payment: Payment, paid_at: datetime, proof: DeliveryProof | None, number: int
) -> None:
    """Write the event unless the account has turned reminders off; the setting at the time of sending counts."""
    account = await unit[Account].get(payment.account_id)
    if account is None or not account.settings.proof_reminders:
        return
    shop = await unit[Shop].get(payment.shop_id)

    def payload(now: datetime) -> ProofReminderPayload:
        return ProofReminderPayload(
            event="payment.delivery_proof_reminder",
            payment_id=payment.id,
            external_id=payment.external_id,
            paid_at=iso(paid_at),
            reminder=number,
            status="waiting" if proof is None else "rejected",
            timestamp=iso(now),
            reason=UNSET if proof is None or proof.reason is None else proof.reason,
            shop_id=payment.shop_id,
            shop_name=None if shop is None else shop.name,
        )

    after = unit[Payment].save(announced(payment))
    await announce_of(ports, unit, after, EventType.DELIVERY_PROOF_REMINDER, payload)
