"""Receipts at banks whose cash register gets a request of its own once money has moved (ports/receipts.py: ReceiptBank;
docs/payments.md "Receipts").

Each payment and each refund has a job, planned in the unit that moves the money. The job is the only record: it exists
until the receipt is written. It repeats the request under one operation id, for which the bank writes one receipt.
"""

import logging
from datetime import datetime, timedelta
from enum import StrEnum

from ....ports.bank import Bank
from ....ports.bundle import Ports
from ....ports.faults import NO_ANSWER, NotSupported, Refused
from ....ports.jobs import Job
from ....ports.receipts import ReceiptBank, ReceiptKind, ReceiptNeed, ReceiptRequest, ReceiptStatus
from ....ports.storage import Unit
from ...domain.payments.payments import BindingCharge, Payment, PaymentMove
from ...domain.receipts.carts import Cart
from ..common.schedule import FollowUp, pause_after, reschedule_at
from .receipts import receipt_of

SALE = FollowUp("receipt.sale")

ASKED_FOR = timedelta(days=30)
"""Age at which we give a receipt up; its merchant then writes a correction."""

log = logging.getLogger("cambist.receipts")


class ReceiptState(StrEnum):
    """What is known about the receipt of a payment."""

    BY_BANK = "by_bank"
    """The bank writes it together with the payment; there is nothing to follow."""
    AFTER_PAYMENT = "after_payment"
    """It is requested once the payment is paid."""
    REQUESTED = "requested"
    WRITTEN = "written"


def register_of(ports: Ports, payment: Payment) -> tuple[Bank, ReceiptBank] | None:
    """Return the bank that needs a separate request for this payment's receipt; None when no request is needed."""
    bank = ports.banks.banks.get(payment.bank or "")
    if bank is None or payment.receipt is None or payment.binding is BindingCharge.NONE:
        return None
    if not bank.capabilities.receipts_apart or not isinstance(bank, ReceiptBank):
        return None
    return bank, bank


async def plan_sale(ports: Ports, unit: Unit, move: PaymentMove) -> None:
    """Plan the receipt of a payment that this unit makes paid for the first time."""
    before, after = move.before, move.after
    if before.paid_at is None and after.paid_at is not None and register_of(ports, after) is not None:
        now = ports.clock.now()
        unit[Job].add(SALE.first(after.id, now, now))


async def receipt_state(ports: Ports, payment: Payment) -> ReceiptState | None:
    """Return what is known about the payment's receipt. None: it has none, or the time to follow it is over."""
    bank = ports.banks.capabilities_of(payment.bank)
    if payment.receipt is None or payment.binding is BindingCharge.NONE or bank is None:
        return None
    if bank.receipts is ReceiptNeed.NONE:
        return None
    if register_of(ports, payment) is None:
        return ReceiptState.BY_BANK
    if payment.paid_at is None:
        return ReceiptState.AFTER_PAYMENT
    if await ports.storage.get(Job, SALE.id_of(payment.id)) is not None:
        return ReceiptState.REQUESTED
    # After that time a missing job may also mean that the receipt was given up.
    return ReceiptState.WRITTEN if ports.clock.now() < payment.paid_at + ASKED_FOR else None


async def write_sale(ports: Ports, job: Job) -> None:
    """Write the receipt of a payment (the job of `plan_sale`)."""
    payment = await ports.storage.get(Payment, job.argument)
    if payment is None:
        await reschedule_at(ports, job, None)
        return
    came = payment.actual_amount or payment.amount
    await write(ports, job, payment, payment.id, came.kopecks)


async def write(
    ports: Ports,
    job: Job,
    payment: Payment,
    operation: str,
    kopecks: int,
    *,
    back: bool = False,
    cart: Cart | None = None,
) -> None:
    """Run a receipt's job once: it ends when the receipt is written, and is rescheduled otherwise. `cart`: the receipt
    that the merchant sent for this refund."""
    register = register_of(ports, payment)
    if register is None:
        await reschedule_at(ports, job, None)
        return
    bank, cash = register
    receipt = receipt_of(ports, payment, bank, kopecks, cart)
    if receipt is None:
        raise ValueError(f"{payment.id} has terms of receipts, and no receipt")
    request = ReceiptRequest(
        operation=operation,
        of=operation,
        amount_kopecks=kopecks,
        reference=payment.bank_reference or "",
        receipt=receipt,
        kind=ReceiptKind.REFUND if back else ReceiptKind.SALE,
        requested_at=job.created_at,
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
