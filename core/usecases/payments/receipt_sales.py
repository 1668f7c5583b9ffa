"""Receipts of banks whose cash register is told once the money has moved (ports/receipts.py: ReceiptBank): a job for
each payment, and for each refund, from the unit in which it moved until the receipt is written (docs/payments.md
"Receipts").

The job is all that is kept of it: as long as it is there the receipt is not. It is asked for again and again under the
operation's number, of which there is one receipt at the bank, whoever asks how often.
"""

import logging
from datetime import datetime, timedelta

from ....ports.bank import Bank
from ....ports.bundle import Ports
from ....ports.faults import NO_ANSWER, NotSupported, Refused
from ....ports.jobs import Job
from ....ports.receipts import ReceiptBank, ReceiptNeed, ReceiptRequest, ReceiptStatus
from ....ports.storage import Unit
from ...domain.payments.payments import BindingCharge, Payment, PaymentMove
from ..schedule import FollowUp, pause_after, reschedule_at
from .receipts import receipt_of

SALE = FollowUp("receipt.sale")

ASKED_FOR = timedelta(days=30)
"""After that a receipt is given up: its merchant writes a correction."""

log = logging.getLogger("cambist.receipts")


def register_of(ports: Ports, payment: Payment) -> tuple[Bank, ReceiptBank] | None:
    """The bank that is told of a receipt of this payment's money by itself; None: nobody is."""
    bank = ports.banks.banks.get(payment.bank or "")
    if bank is None or payment.receipt is None or payment.binding is BindingCharge.NONE:
        return None
    if bank.capabilities.receipts is ReceiptNeed.NONE or not isinstance(bank, ReceiptBank):
        return None
    return bank, bank


async def plan_sale(ports: Ports, unit: Unit, move: PaymentMove) -> None:
    """Have the receipt written of a payment that this unit makes paid for the first time."""
    before, after = move.before, move.after
    if before.paid_at is None and after.paid_at is not None and register_of(ports, after) is not None:
        now = ports.clock.now()
        unit[Job].add(SALE.first(after.id, now, now))


async def write_sale(ports: Ports, job: Job) -> None:
    """The job behind `plan_sale`."""
    payment = await ports.storage.get(Payment, job.argument)
    if payment is None:
        await reschedule_at(ports, job, None)
        return
    came = payment.actual_amount or payment.amount
    await write(ports, job, payment, payment.id, came.kopecks)


async def write(ports: Ports, job: Job, payment: Payment, operation: str, kopecks: int, *, back: bool = False) -> None:
    """A run of a receipt's job: it is over once the receipt is written, and comes back else."""
    register = register_of(ports, payment)
    if register is None:
        await reschedule_at(ports, job, None)
        return
    bank, cash = register
    receipt = receipt_of(ports, payment, bank, kopecks)
    if receipt is None:
        raise ValueError(f"{payment.id} has terms of receipts, and no receipt")
    request = ReceiptRequest(
        operation=operation, reference=payment.bank_reference or "", receipt=receipt, goes_back=back
    )
    why = "not written yet"
    try:
        status = (await cash.write_receipt(request)).status
    except (Refused, NotSupported) as fault:
        why, status = f"refused: {fault}", ReceiptStatus.FAILED
    except NO_ANSWER as fault:
        why, status = str(fault), ReceiptStatus.PROCESSING
    if status is ReceiptStatus.DONE:
        await reschedule_at(ports, job, None)
        return
    now = ports.clock.now()
    if status is ReceiptStatus.FAILED:
        log.error("the receipt of %s is not written by %s: %s", operation, bank.name, why)
    await reschedule_at(ports, job, _next(job, now))
    if now >= job.created_at + ASKED_FOR:
        log.error("the receipt of %s is given up after %s days: %s", operation, ASKED_FOR.days, why)


def _next(job: Job, now: datetime) -> datetime | None:
    return None if now >= job.created_at + ASKED_FOR else now + pause_after(job.attempts)
