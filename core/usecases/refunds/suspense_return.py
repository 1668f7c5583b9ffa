"""Sending money in suspense back to who paid it (docs/payments.md "Money that cannot count").

The job is the record that it is under way: written before the bank is asked, for the operation of the present attempt
(domain/refunds/suspense_returns.py). The money leaves the books when the bank has sent it, and not before. What the
bank says of an earlier attempt moves nothing.
"""

import logging
from datetime import datetime

import msgspec

from ....ports.bank import RefundRequest, RefundState
from ....ports.bank import RefundStatus as AtBank
from ....ports.bundle import Ports
from ....ports.faults import Stale
from ....ports.jobs import Job
from ....ports.storage import Unit
from ...domain.errors import Refusal
from ...domain.ledger import EntryKind, JournalEntry, Purse, entry_id
from ...domain.payments.payments import Payment, Suspense, suspended_transfer
from ...domain.refunds.suspense_returns import (
    ENDED,
    MOST_TRIES,
    RETURN_FAILED,
    RETURN_REVERSED,
    RETURNED_ANEW,
    return_operation,
    returned_money,
)
from ..accounts.accounts import storable
from ..acts.audit import unaudited
from ..acts.four_eyes import gated
from ..forgotten import may_be_forgotten
from ..ledger.ledger import book
from ..schedule import FollowUp, reschedule
from ..test_clock import in_test_time
from ..units import retrying
from .bank_refunds import look_up, next_look, next_reversal_look, read_refund, send_back

RETURN = FollowUp("suspense.return")
"""The one job that sends this money back."""

log = logging.getLogger("cambist.suspense")


async def plan_return(ports: Ports, unit: Unit, suspense_id: str, *, anew: bool = False) -> None:
    """Have money in suspense sent back, once the caller's unit is committed. `anew`: by another operation, of which the
    bank was never asked."""
    now = ports.clock.now()
    await RETURN.plan(unit, suspense_id, now, now, anew=anew)


@in_test_time(Suspense)
async def return_suspense(ports: Ports, suspense_id: str) -> Suspense:
    """The operator's decision to send money in suspense back; the worker does it. Where the last attempt is over, the
    bank could not send it or it came back, this begins another.

    Raises: Refusal SUSPENSE_NOT_FOUND; INVALID_STATE when it went already, its bank sends no money back or has it under
    way, or after too many attempts; Waits where two operators are needed.
    """
    # What the bank says is nobody's decision.
    await _ask_once_more(unaudited(ports), suspense_id)
    ports = gated(ports, "return_suspense", suspense_id)

    async def work(unit: Unit) -> Suspense:
        suspense = await _found(unit, suspense_id)
        if suspense is None:
            raise Refusal("SUSPENSE_NOT_FOUND", "No money in suspense of this id")
        if suspense.resolved_at is not None:
            raise Refusal("INVALID_STATE", "The money is not in suspense any more")
        payment = await _payment_of(unit, suspense)
        bank = ports.banks.capabilities_of(payment.bank)
        if bank is None or payment.bank_reference is None or not bank.refunds:
            raise Refusal("INVALID_STATE", "The bank of this money does not send any back")
        is_over = suspense.reason in ENDED
        if is_over and suspense.attempt >= MOST_TRIES:
            raise Refusal("INVALID_STATE", f"It was tried {MOST_TRIES} times: settle it with the bank")
        await plan_return(ports, unit, suspense.id, anew=is_over)
        if is_over:
            suspense = msgspec.structs.replace(suspense, attempt=suspense.attempt + 1, reason=RETURNED_ANEW)
        # Saved in any case: of two operators at once one is stale, and finds what the other began.
        return unit[Suspense].save(suspense)

    return await retrying(ports.storage, work, again_on=("jobs_id",))


async def _found(unit: Unit, suspense_id: str) -> Suspense | None:
    return await unit[Suspense].get(suspense_id) if storable(suspense_id) else None


async def _ask_once_more(ports: Ports, suspense_id: str) -> None:
    """Before another attempt, how the bank sees the one that it had failed now: were it done after all, another would
    send the money twice. A bank that is silent keeps nobody from trying."""
    async with ports.storage.unit() as unit:
        suspense = await _found(unit, suspense_id)
        if suspense is None or suspense.resolved_at is not None or suspense.reason != RETURN_FAILED:
            return
        payment = await _payment_of(unit, suspense)
    operation = return_operation(suspense)
    state = await look_up(ports, payment, operation)
    if state is None or state.status is AtBank.FAILED:
        return
    if state.status is AtBank.PROCESSING:
        raise Refusal("INVALID_STATE", "The bank has the last attempt under way again")
    await conclude_return(ports, operation, state)


async def _payment_of(unit: Unit, suspense: Suspense) -> Payment:
    payment = await unit[Payment].get(suspense.payment_id)
    if payment is None:
        # Both were forgotten between the two reads.
        raise Stale(f"{suspense.id} has no payment")
    return payment


async def send_suspense(ports: Ports, job: Job) -> None:
    """The job: asks the bank, looks again until there is an end, and later whether the money came back."""
    async with ports.storage.unit() as unit:
        suspense = await unit[Suspense].get(job.argument)
        payment = None if suspense is None else await _payment_of(unit, suspense)
    state = None
    if suspense is not None and payment is not None:
        operation = return_operation(suspense)
        if suspense.resolved_at is not None:
            state = await look_up(ports, payment, operation)
        elif suspense.reason not in ENDED:
            request = RefundRequest(
                operation=operation,
                reference=payment.bank_reference or "",
                amount_kopecks=suspense.amount.kopecks,
                transfer=suspended_transfer(suspense, payment),
            )
            asked_before = job.attempts > 1 or may_be_forgotten(ports, job.created_at)
            state = await send_back(ports, payment, request, asked_before=asked_before)
        if state is not None:
            await conclude_return(ports, operation, state)

    async def next_due(unit: Unit) -> datetime | None:
        present = await unit[Suspense].get(job.argument)
        return None if present is None else _next(present, state, job.attempts, ports.clock.now())

    await reschedule(ports, job, next_due)


async def _money_of(unit: Unit, operation: str) -> tuple[Suspense, int] | None:
    """The money that an operation sends back, and at which attempt."""
    for money_id, attempt in returned_money(operation):
        suspense = await _found(unit, money_id)
        if suspense is not None:
            return suspense, attempt
    return None


async def conclude_return(ports: Ports, operation: str, state: RefundState) -> None:
    """Let the bank's word take effect: what went leaves the books, what came back is in suspense again. Of an attempt
    that is not the present one it moves nothing."""

    async def work(unit: Unit) -> None:
        found = await _money_of(unit, operation)
        if found is None:
            return
        suspense, attempt = found
        went = suspense.resolved_at is not None
        if attempt != suspense.attempt:
            await _heard_late(unit, suspense, attempt, state)
        elif suspense.reason == RETURN_REVERSED:
            # The operation's last word: one that says otherwise was asked for before, and comes late.
            return
        elif state.status is AtBank.DONE and not went:
            _book(ports, unit, suspense, EntryKind.SUSPENSE_RETURNED, attempt)
            unit[Suspense].save(msgspec.structs.replace(suspense, resolved_at=ports.clock.now()))
        elif state.status is AtBank.FAILED and not went:
            unit[Suspense].save(msgspec.structs.replace(suspense, reason=RETURN_FAILED))
        elif state.status is AtBank.REVERSED:
            if went:
                _book(ports, unit, suspense, EntryKind.SUSPENSE, attempt + 1)
            unit[Suspense].save(msgspec.structs.replace(suspense, resolved_at=None, reason=RETURN_REVERSED))

    # Told twice at once, the second finds it booked.
    await retrying(ports.storage, work, again_on=("journal_id",))


async def _heard_late(unit: Unit, suspense: Suspense, attempt: int, state: RefundState) -> None:
    """Say so where an earlier attempt went after all: no entry is made of it, because the present one may go, too."""
    went_then = await unit[JournalEntry].get(entry_id(EntryKind.SUSPENSE_RETURNED, suspense.id, attempt))
    if state.status is AtBank.DONE and went_then is None:
        log.error(
            "the bank says that it sent the money in suspense of payment %s back by attempt %s, which it had failed;"
            " attempt %s is the present one: settle it with the bank",
            suspense.payment_id,
            attempt,
            suspense.attempt,
        )


def _book(ports: Ports, unit: Unit, suspense: Suspense, kind: EntryKind, revision: int) -> None:
    amount = suspense.amount.kopecks if kind is EntryKind.SUSPENSE else -suspense.amount.kopecks
    book(ports, unit, kind, suspense, {Purse.BANK: -amount, Purse.SUSPENSE: amount}, revision=revision)


async def on_return_notice(ports: Ports, operation: str) -> None:
    """The bank says that something happened to money that was sent back. Raises: what the bank port raises."""
    async with ports.storage.unit() as unit:
        found = await _money_of(unit, operation)
        if found is None:
            return
        payment = await _payment_of(unit, found[0])
    state = await read_refund(ports, payment, operation)
    if state is not None:
        await conclude_return(ports, operation, state)


def _next(suspense: Suspense, state: RefundState | None, asked: int, now: datetime) -> datetime | None:
    """When the bank is asked again; None: it went for good, or stays in suspense for the operator."""
    if suspense.resolved_at is not None:
        return next_reversal_look(suspense.resolved_at, now)
    if suspense.reason in ENDED or (state is not None and state.status in (AtBank.FAILED, AtBank.REVERSED)):
        return None
    return next_look(state, asked, now)
