"""Sending money in suspense back to who paid it (DECISIONS 2: "the money is sent back; nothing is credited").

The job is the record that it is under way: written before the bank is asked, with the suspense id as the operation id.
The money leaves the books when the bank has sent it, and not before.
"""

from datetime import datetime

import msgspec

from ...ports.bank import RefundRequest, RefundState
from ...ports.bank import RefundStatus as AtBank
from ...ports.bundle import Ports
from ...ports.faults import NotConfigured, Stale
from ...ports.jobs import Job
from ...ports.storage import Unit
from ..domain.errors import Refusal
from ..domain.ledger import EntryKind, Purse, journal_entry
from ..domain.payments import Payment, Suspense, suspended_transfer
from .accounts import storable
from .again import set_due
from .bank_refunds import look_up, next_look, next_reversal_look, send_back, sends_back
from .ledger import post
from .units import retrying
from .worlds import in_its_time

RETURN = "suspense.return"

RETURN_FAILED = "return_failed"
RETURN_REVERSED = "return_reversed"
"""Reasons of money that is in suspense still, or again: the bank could not send it, or it came back."""


def return_id(suspense_id: str) -> str:
    """The one job that sends this money back."""
    return f"{RETURN}:{suspense_id}"


async def plan_return(ports: Ports, unit: Unit, suspense_id: str) -> None:
    """Have money in suspense sent back, once the caller's unit is committed."""
    now = ports.clock.now()
    job = await unit[Job].get(return_id(suspense_id))
    if job is None:
        job_id = return_id(suspense_id)
        unit[Job].add(Job(id=job_id, kind=RETURN, argument=suspense_id, due=now, created_at=now))
    else:
        unit[Job].save(msgspec.structs.replace(job, due=now))


@in_its_time(Suspense)
async def return_suspense(ports: Ports, suspense_id: str) -> Suspense:
    """The operator's decision to send money in suspense back; the worker does it.

    Raises: Refusal SUSPENSE_NOT_FOUND; INVALID_STATE when it went already, or its bank sends no money back.
    """

    async def work(unit: Unit) -> Suspense:
        suspense = await unit[Suspense].get(suspense_id) if storable(suspense_id) else None
        if suspense is None:
            raise Refusal("SUSPENSE_NOT_FOUND", "No money in suspense of this id")
        if suspense.resolved_at is not None:
            raise Refusal("INVALID_STATE", "The money is not in suspense any more")
        payment = await _payment_of(unit, suspense)
        try:
            can = payment.bank_reference is not None and sends_back(ports, payment.bank)
        except NotConfigured:
            can = False
        if not can:
            raise Refusal("INVALID_STATE", "The bank of this money does not send any back")
        await plan_return(ports, unit, suspense.id)
        return suspense

    return await retrying(ports.storage, work, again_on=("jobs_id",))


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
        if suspense.resolved_at is not None:
            state = await look_up(ports, payment.bank, suspense.id)
        else:
            request = RefundRequest(
                operation=suspense.id,
                reference=payment.bank_reference or "",
                amount_kopecks=suspense.amount.kopecks,
                transfer=suspended_transfer(suspense, payment),
            )
            state = await send_back(ports, payment.bank, request, asked_before=job.attempts > 1)
    if state is not None:
        await conclude_return(ports, job.argument, state)
    await _come_back(ports, job, state)


async def conclude_return(ports: Ports, suspense_id: str, state: RefundState) -> None:
    """Let the bank's word take effect: what went leaves the books, what came back is in suspense again."""

    async def work(unit: Unit) -> None:
        suspense = await unit[Suspense].get(suspense_id)
        if suspense is None:
            return
        went = suspense.resolved_at is not None
        if suspense.reason == RETURN_REVERSED:
            # The operation's last word: one that says otherwise was asked for before, and comes late.
            return
        if state.status is AtBank.DONE and not went:
            _book(ports, unit, suspense, EntryKind.SUSPENSE_RETURNED)
            unit[Suspense].save(msgspec.structs.replace(suspense, resolved_at=ports.clock.now()))
        elif state.status is AtBank.FAILED and not went:
            unit[Suspense].save(msgspec.structs.replace(suspense, reason=RETURN_FAILED))
        elif state.status is AtBank.REVERSED:
            if went:
                _book(ports, unit, suspense, EntryKind.SUSPENSE, revision=2)
            unit[Suspense].save(msgspec.structs.replace(suspense, resolved_at=None, reason=RETURN_REVERSED))

    # Told twice at once, the second finds it booked.
    await retrying(ports.storage, work, again_on=("journal_id",))


def _book(ports: Ports, unit: Unit, suspense: Suspense, kind: EntryKind, *, revision: int = 1) -> None:
    amount = suspense.amount.kopecks if kind is EntryKind.SUSPENSE else -suspense.amount.kopecks
    post(
        unit,
        journal_entry(
            kind,
            suspense.id,
            account_id=suspense.account_id,
            mode=suspense.mode,
            at=ports.clock.now(),
            postings={Purse.BANK: -amount, Purse.SUSPENSE: amount},
            revision=revision,
        ),
    )


async def on_return_notice(ports: Ports, suspense_id: str) -> None:
    """The bank says that something happened to money that was sent back. Raises: what the bank port raises."""
    async with ports.storage.unit() as unit:
        suspense = await unit[Suspense].get(suspense_id)
        if suspense is None:
            return
        payment = await _payment_of(unit, suspense)
    state = await ports.banks.named(payment.bank or "").find_refund(suspense.id)
    if state is not None:
        await conclude_return(ports, suspense.id, state)


async def _come_back(ports: Ports, job: Job, state: RefundState | None) -> None:
    async def work(unit: Unit) -> None:
        present = await unit[Job].get(job.id)
        if present is None:
            return
        suspense = await unit[Suspense].get(job.argument)
        due = None if suspense is None else _next(suspense, state, job.attempts, ports.clock.now())
        set_due(unit, present, due)

    await retrying(ports.storage, work)


def _next(suspense: Suspense, state: RefundState | None, asked: int, now: datetime) -> datetime | None:
    """When the bank is asked again; None: it went for good, or stays in suspense for the operator."""
    if suspense.resolved_at is not None:
        return next_reversal_look(suspense.resolved_at, now)
    if state is not None and state.status in (AtBank.FAILED, AtBank.REVERSED):
        return None
    return next_look(state, asked, now)
