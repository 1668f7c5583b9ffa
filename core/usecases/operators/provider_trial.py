"""Trial of a bank with one real payment that is sent back. An operator proves a contract with it before merchants use
the bank (docs/providers/index.md "A trial"). The trial exists only at the bank: it creates no payment of ours and no
ledger entry."""

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from uuid import UUID

import msgspec

from ....ports.bank import (
    Bank,
    CancellingBank,
    Invoice,
    InvoiceRequest,
    InvoiceState,
    InvoiceStatus,
    RefundRequest,
    RefundState,
    RefundStatus,
    Transfer,
)
from ....ports.bundle import Ports
from ....ports.faults import Fault, OutcomeUnknown, Unavailable
from ....ports.searching import find_invoice, find_refund
from ...domain import ids
from ...domain.errors import Refusal, shape_error
from ...domain.money import Rub
from ..actions.audit import note_outside

POLL_SECONDS = 3.0
"""Seconds between two polls, unless the bank requests another interval."""
_LOOK_MOST = 30.0
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PURPOSE = "Trial payment, sent back at once"
_ENDED = (InvoiceStatus.FAILED, InvoiceStatus.CANCELLED, InvoiceStatus.EXPIRED)
_REFUND_ENDED = (RefundStatus.DONE, RefundStatus.FAILED, RefundStatus.REVERSED)


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """A trial. Running the same trial again continues it, because the ids of its operations follow from its own."""

    operation: str
    """Operation id of the invoice: `pay_` and a UUID."""
    bank: str
    amount: Rub
    lasts: timedelta
    """Time for the payer to pay, and then the same time for the refund."""

    @property
    def since(self) -> datetime:
        """Return the moment in the id, a UUID of version 7. Nothing was sent earlier."""
        return _EPOCH + timedelta(milliseconds=UUID(self.operation.removeprefix(ids.PAYMENT)).int >> 80)


class TrialStep(StrEnum):
    """Progress of a trial."""

    OPENED = "opened"
    PAID = "paid"
    RETURNING = "returning"
    RETURNED = "returned"
    """All the received money was sent back."""
    NOT_PAID = "not_paid"
    """The trial ended without a payment."""
    NOT_RETURNED = "not_returned"
    """Money arrived, and some of it is still at the bank."""


class TrialNews(msgspec.Struct, frozen=True, kw_only=True):
    """One line of output of a trial."""

    step: TrialStep
    message: str
    invoice: Invoice | None = None
    """Only with OPENED."""


Tell = Callable[[TrialNews], None]


async def run_trial(ports: Ports, trial: Trial, tell: Tell) -> TrialStep:
    """Request a payment, wait for it, and send back all that arrives. Report each step to `tell`. Failed calls are
    repeated until the trial's time is over.

    Raises: Refusal GATEWAY_NOT_FOUND, INVALID_AMOUNT, VALIDATION_ERROR when the id is not of a trial; Refused,
    NotConfigured, NotSupported from the bank; Unavailable, OutcomeUnknown when the bank still does not answer at the
    end.
    """
    bank = _bank(ports, trial.bank, trial.amount)
    if not _is_trial(trial.operation):
        raise shape_error("operation", "must be the id of a trial: pay_ and a UUID of version 7")
    await note_outside(ports, trial.operation)
    deadline = ports.clock.now() + trial.lasts
    invoice = await _opened(ports, bank, trial, deadline)
    tell(TrialNews(step=TrialStep.OPENED, message=f"the bank calls it {invoice.reference}", invoice=invoice))
    state = await _awaited(ports, bank, invoice, deadline)
    came = [each for each in state.transfers if not each.taken_back]
    if not came:
        tell(TrialNews(step=TrialStep.NOT_PAID, message=await _unpaid(bank, state)))
        return TrialStep.NOT_PAID
    total = Rub(sum(each.amount_kopecks for each in came))
    tell(TrialNews(step=TrialStep.PAID, message=_told(came, total)))
    if not bank.capabilities.refunds:
        tell(TrialNews(step=TrialStep.NOT_RETURNED, message="this bank sends nothing back by its interface"))
        return TrialStep.NOT_RETURNED
    last = TrialStep.RETURNED
    for transfer in came:
        if not await _returned(ports, bank, trial, invoice, transfer, tell):
            last = TrialStep.NOT_RETURNED
    return last


def _is_trial(operation: str) -> bool:
    """Return whether the operation is the id of a trial. A UUID of another version holds no moment, or one beyond the
    calendar."""
    return ids.is_prefixed(ids.PAYMENT, operation) and UUID(operation.removeprefix(ids.PAYMENT)).version == 7


def _bank(ports: Ports, name: str, amount: Rub) -> Bank:
    bank = ports.banks.banks.get(name)
    if bank is None:
        raise Refusal(
            "GATEWAY_NOT_FOUND", f"No bank of this name is configured; there are: {', '.join(ports.banks.banks)}"
        )
    if amount <= Rub(0) or not bank.capabilities.takes(amount.kopecks):
        raise Refusal("INVALID_AMOUNT", "The bank takes no payment of this amount")
    return bank


async def _opened(ports: Ports, bank: Bank, trial: Trial, deadline: datetime) -> Invoice:
    """Open the invoice. After a lost answer, query the bank before sending the request again, because the payer could
    pay a second invoice too."""
    request = InvoiceRequest(
        operation=trial.operation, amount_kopecks=trial.amount.kopecks, purpose=_PURPOSE, expires_at=deadline
    )
    while True:
        try:
            found = await find_invoice(bank, request, trial.since)
            return found or await bank.create_invoice(request)
        except (Unavailable, OutcomeUnknown) as fault:
            await _wait(ports, deadline, fault)


async def _awaited(ports: Ports, bank: Bank, invoice: Invoice, deadline: datetime) -> InvoiceState:
    """Wait for the invoice's final state, or return its state at the deadline."""
    while True:
        try:
            state = await bank.invoice_state(invoice.reference)
        except Unavailable as fault:
            await _wait(ports, deadline, fault)
            continue
        is_over = state.status is InvoiceStatus.PAID or state.status in _ENDED
        if is_over or ports.clock.now() >= deadline:
            return state
        await ports.clock.sleep(_pause(state.check_after))


async def _returned(ports: Ports, bank: Bank, trial: Trial, invoice: Invoice, transfer: Transfer, tell: Tell) -> bool:
    """Send one transfer back and watch the refund. If the answer is lost, query the bank before sending the refund
    again."""
    request = RefundRequest(
        operation=ids.derived(ids.REFUND, trial.operation, transfer.id),
        reference=invoice.reference,
        amount_kopecks=transfer.amount_kopecks,
        transfer=transfer.id,
    )
    deadline = ports.clock.now() + trial.lasts
    told = False
    while True:
        try:
            state = await find_refund(bank, request, trial.since) or await bank.refund(request)
        except (Unavailable, OutcomeUnknown) as fault:
            await _wait(ports, deadline, fault)
            continue
        if state.status in _REFUND_ENDED:
            tell(_end(state, transfer))
            return state.status is RefundStatus.DONE
        if ports.clock.now() >= deadline:
            tell(TrialNews(step=TrialStep.NOT_RETURNED, message="the refund is still under way at the bank"))
            return False
        if not told:
            tell(
                TrialNews(step=TrialStep.RETURNING, message=f"{Rub(transfer.amount_kopecks)} RUB are on their way back")
            )
            told = True
        await ports.clock.sleep(_pause(state.check_after))


async def _unpaid(bank: Bank, state: InvoiceState) -> str:
    """Cancel an unpaid invoice if the bank can, and describe the result."""
    if state.status in _ENDED:
        return f"the bank calls it {state.status}{f' ({state.failure})' if state.failure else ''}"
    if isinstance(bank, CancellingBank) and bank.capabilities.cancels_invoices:
        with suppress(Fault):
            await bank.cancel_invoice(state.reference)
            return "nobody paid in time; it is closed at the bank"
    return f"nobody paid in time, and the bank calls it {state.status}: should it be paid later, try the same id again"


def _end(state: RefundState, transfer: Transfer) -> TrialNews:
    if state.status is RefundStatus.DONE:
        return TrialNews(step=TrialStep.RETURNED, message=f"{Rub(transfer.amount_kopecks)} RUB are back at the payer")
    why = f": {state.failure}" if state.failure else ""
    return TrialNews(step=TrialStep.NOT_RETURNED, message=f"the refund is {state.status}{why}; send it by hand")


def _told(came: list[Transfer], total: Rub) -> str:
    fees = [each.fee_kopecks for each in came if each.fee_kopecks is not None]
    fee = f"; the bank keeps {Rub(sum(fees))} RUB" if fees else ""
    often = f" in {len(came)} transfers" if len(came) > 1 else ""
    return f"{total} RUB came{often}{fee}"


async def _wait(ports: Ports, deadline: datetime, fault: Unavailable | OutcomeUnknown) -> None:
    """Wait before the next attempt. Raises: the fault, once the time is over."""
    if ports.clock.now() >= deadline:
        raise fault
    await ports.clock.sleep(_pause(getattr(fault, "retry_after", None)))


def _pause(said: float | None) -> float:
    return POLL_SECONDS if said is None else min(max(said, 1.0), _LOOK_MOST)
