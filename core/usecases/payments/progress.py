"""Progress of a payment after its creation: poll the bank, expire the payment, and schedule the next poll.

Notifications of the bank arrive in notifications.py.
"""

from datetime import datetime, timedelta

from ....ports.bank import InvoiceState, InvoiceStatus
from ....ports.bundle import Ports
from ....ports.faults import NO_ANSWER
from ....ports.jobs import Job
from ...domain.errors import Refusal
from ...domain.payments.payments import (
    FailureReason,
    Opening,
    Payment,
    PaymentStatus,
)
from ...domain.payments.reports import Report
from ..common.schedule import ASK_AGAIN, pause_after, reschedule_at
from ..gateways.closing import close_invoice
from ..gateways.polling import Looked, is_backed_up, next_late_poll, next_poll, poll
from ..gateways.watch import at_bank
from ..operations.repeating import may_repeat
from .moves import apply, read_arrivals, read_failure
from .opening import find_at_bank, open_at_bank, take_back

_S = PaymentStatus

_REPORTED: dict[InvoiceStatus, PaymentStatus] = {
    InvoiceStatus.OPEN: _S.PENDING,
    InvoiceStatus.PROCESSING: _S.PROCESSING,
    InvoiceStatus.PAID: _S.PAID,
    InvoiceStatus.FAILED: _S.FAILED,
    InvoiceStatus.CANCELLED: _S.CANCELLED,
    InvoiceStatus.EXPIRED: _S.EXPIRED,
}

_BANK_AWAY = timedelta(seconds=30)
"""Poll interval past the deadline, for a payment that is being processed or could not expire."""

MAY_BE_PAID = (_S.PENDING, _S.PROCESSING, _S.EXPIRED)
"""Statuses in which the bank may still report money without a request of ours."""


def _report(state: InvoiceState) -> Report:
    return Report(
        status=_REPORTED[state.status], failure=read_failure(state.failure), arrivals=read_arrivals(state.transfers)
    )


async def look(ports: Ports, payment: Payment) -> Payment:
    """Poll the bank for the invoice, and apply the answer. Raises: faults of the bank port."""
    if payment.bank_reference is None:
        return payment
    return await apply(ports, payment.id, _report(await _ask(ports, payment))) or payment


async def _ask(ports: Ports, payment: Payment) -> InvoiceState:
    """Raises: faults of the bank port."""
    async with at_bank(ports, payment, invoices=True) as bank:
        return await bank.invoice_state(payment.bank_reference or "")


async def watch(ports: Ports, job: Job) -> None:
    """Follow a payment (a job): finish its creation, expire it, and poll for late money."""
    payment = await ports.storage.get(Payment, job.argument)
    if payment is not None and payment.bank_reference is None:
        payment = await _recover(ports, job, payment)
    looked = Looked()
    if payment is not None and payment.bank_reference is not None:
        payment, looked = await _poll_or_expire(ports, payment)
    await reschedule_at(ports, job, None if payment is None else next_status_poll(ports, payment, job.attempts, looked))


async def _poll_or_expire(ports: Ports, payment: Payment) -> tuple[Payment, Looked]:
    """Poll the bank. When it does not answer, or the poll budget is used up, the payment still expires at its deadline:
    `expired` allows a late success.
    """
    state, looked = await poll(ports, payment, _ask)
    if state is None:
        return await _expire_if_due(ports, payment), looked
    after = await apply(ports, payment.id, _report(state)) or payment
    if after.status is _S.EXPIRED and state.status is InvoiceStatus.OPEN:
        await close_invoice(ports, after, after.bank_reference or "")
    return after, looked


async def _expire_if_due(ports: Ports, payment: Payment) -> Payment:
    return await apply(ports, payment.id, Report(status=_S.PENDING)) or payment


async def _recover(ports: Ports, job: Job, payment: Payment) -> Payment | None:
    """Finish a creation that a crash or an unknown outcome left open; return None when it was undone."""
    try:
        found = await find_at_bank(ports, payment)
    except NO_ANSWER:
        return await _expire_if_due(ports, payment) if payment.opening is Opening.UNKNOWN else payment
    if found is not None:
        return found
    if payment.opening is Opening.UNKNOWN:
        if job.attempts < 2:
            # The request may still be on its way, so the bank must answer twice that it never saw the operation.
            return payment
        return await apply(ports, payment.id, Report(status=_S.FAILED, failure=FailureReason.UNKNOWN))
    if ports.clock.now() >= payment.expires_at:
        # The caller got no answer, and no bank knows the payment.
        await take_back(ports, payment)
        return None
    if not may_repeat(ports, payment.bank, payment.created_at):
        return payment
    try:
        # The caller got no answer yet, and an operation id names one operation however often it is sent.
        return await open_at_bank(ports, payment)
    except Refusal:
        return await ports.storage.get(Payment, payment.id)


def next_status_poll(ports: Ports, payment: Payment, polls: int, looked: Looked) -> datetime | None:
    """Return when to poll the bank for this payment next; None when only its notifications matter from now on."""
    now = ports.clock.now()
    if payment.bank_reference is None and payment.status in (_S.PENDING, _S.EXPIRED):
        if payment.opening is Opening.UNKNOWN and polls > len(ASK_AGAIN):
            # After the last retry the operator decides (docs/operations.md "What needs a person").
            return None
        return now + pause_after(polls)
    if payment.status not in MAY_BE_PAID:
        # A second transfer, or one after a failure, may come for as long as the invoice can be paid.
        return payment.expires_at if now < payment.expires_at and is_backed_up(ports, payment.bank) else None
    if payment.status is _S.EXPIRED:
        return next_late_poll(ports, payment, looked)
    at = next_poll(ports, payment, looked)
    if now < payment.expires_at:
        return payment.expires_at if at is None else min(at, payment.expires_at)
    return at or now + _BANK_AWAY
