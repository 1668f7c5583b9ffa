"""How a charge lives on at the bank: sent, asked about, repeated under one operation id, until there is an end
(docs/subscriptions.md "When a charge is refused"; ARCHITECTURE.md "Three ends").

The payment is written before the bank hears of it, and its id is the operation. So whoever asks or sends again, the
merchant's repeat, the watch or both at once, speaks of one debit.
"""

from datetime import datetime, timedelta

import msgspec

from ....ports.bundle import Ports
from ....ports.faults import NO_ANSWER, NotConfigured, NotSupported, OutcomeUnknown, Refused, Unavailable
from ....ports.jobs import Job
from ....ports.mandates import MANDATE_REVOKED, ChargeRequest, ChargeState, ChargeStatus, MandateBank
from ....ports.storage import Unit
from ...domain.payments.payments import FailureReason, Opening, Payment, PaymentStatus
from ...domain.payments.reports import Report
from ...domain.subscriptions.charge_reports import Step, decide_charge_report, has_no_outcome, step_of
from ...domain.subscriptions.subscriptions import Subscription
from ..gateways.outcomes import follow_outcome, save_unknown
from ..gateways.watch import watched
from ..payments.moves import RACES, carry, read_arrivals, read_failure
from ..schedule import FollowUp, next_ask, reschedule_at
from ..sealed import open_mandate_token
from ..units import retrying

WATCH_CHARGE = FollowUp("charge.watch")
"""The one job that follows a charge until its end."""
FIRST_LOOK = timedelta(seconds=10)
"""When a charge whose request did not come to an end is taken up by the watch."""

_REPORTED = {
    # A charge that the bank works on is pending (docs/subscriptions.md "Periods and attempts").
    ChargeStatus.PROCESSING: PaymentStatus.PENDING,
    ChargeStatus.PAID: PaymentStatus.PAID,
    ChargeStatus.FAILED: PaymentStatus.FAILED,
}
_GONE = "not_found"
"""Refused: the bank knows no such mandate."""


def charging_bank(ports: Ports, name: str | None) -> MandateBank:
    """The bank that holds the mandate. Raises: NotConfigured where it is not wired, or charges no mandates."""
    bank = ports.banks.named(name or "")
    if not isinstance(bank, MandateBank) or not bank.capabilities.mandate_charges:
        raise NotConfigured(f"{bank.name} charges no mandates")
    return bank


async def send(ports: Ports, payment: Payment, subscription: Subscription) -> Payment:
    """Have the bank charge, or hear how this very charge stands. Returns the payment as it then stands: without the
    bank's reference and pending, where nobody knows.

    Raises: NotConfigured, NotSupported: this call did nothing.
    """
    bank = charging_bank(ports, payment.bank)
    request = ChargeRequest(
        operation=payment.id,
        reference=subscription.mandate_reference or "",
        token=open_mandate_token(ports.vault, subscription) or "",
        amount_kopecks=payment.amount.kopecks,
        purpose=subscription.description,
    )
    try:
        async with watched(ports, payment.mode, payment.bank):
            state = await bank.charge(request)
    except Refused as fault:
        return await _fail(ports, payment, FailureReason(MANDATE_REVOKED) if fault.reason == _GONE else _why(fault))
    except (OutcomeUnknown, Unavailable):
        # Not executed for certain is treated alike: it stays pending, and the same request is repeated.
        return await note_unknown(ports, payment)
    return await conclude(ports, payment, state)


def _why(fault: Refused) -> FailureReason:
    reason = read_failure(fault.reason)
    return FailureReason.DECLINED_BY_BANK if reason in (None, FailureReason.UNKNOWN) else reason


async def note_unknown(ports: Ports, payment: Payment) -> Payment:
    """Write down that the bank may have the charge by now."""

    async def work(unit: Unit) -> Payment:
        present = await unit[Payment].get(payment.id) or payment
        if present.opening is not Opening.ASKING:
            return present
        return await save_unknown(unit, present)

    return await retrying(ports.storage, work)


async def conclude(ports: Ports, payment: Payment, state: ChargeState) -> Payment:
    """Let the bank's word take effect, in one unit: payment, money, events, subscription. It may come late, twice, or
    from a notice and our own question at once."""

    async def work(unit: Unit) -> Payment:
        present = await unit[Payment].get(payment.id)
        if present is None:
            return payment
        if state.check_after is not None:
            await WATCH_CHARGE.hurry(unit, payment.id, next_look(state, 0, ports.clock.now()))
        known = msgspec.structs.replace(present, opening=Opening.OPEN, bank_reference=state.reference)
        await follow_outcome(unit, present, known)
        report = Report(
            status=_REPORTED[state.status],
            failure=read_failure(state.failure),
            arrivals=() if state.transfer is None else read_arrivals((state.transfer,)),
        )
        decision = decide_charge_report(known, report, ports.clock.now())
        carried = await carry(ports, unit, known, decision)
        return unit[Payment].save(known) if carried is known and known != present else carried

    return await retrying(ports.storage, work, again_on=RACES)


async def _fail(ports: Ports, payment: Payment, reason: FailureReason) -> Payment:
    """There is no charge, and there will be none."""

    async def work(unit: Unit) -> Payment:
        present = await unit[Payment].get(payment.id)
        if present is None or not has_no_outcome(present) or present.bank_reference is not None:
            return present or payment
        known = msgspec.structs.replace(present, opening=Opening.OPEN)
        await follow_outcome(unit, present, known)
        report = Report(status=PaymentStatus.FAILED, failure=reason)
        return await carry(ports, unit, known, decide_charge_report(known, report, ports.clock.now()))

    return await retrying(ports.storage, work, again_on=RACES)


async def find(ports: Ports, payment: Payment) -> ChargeState | None:
    """How the bank sees the charge; None where it never saw it. Raises: what the bank port raises."""
    bank = ports.banks.named(payment.bank or "")
    if not isinstance(bank, MandateBank):
        raise NotSupported(f"{bank.name} binds no payers")
    async with watched(ports, payment.mode, payment.bank):
        return await bank.find_charge(payment.id)


async def look(ports: Ports, payment: Payment) -> Payment:
    """Ask the bank how the charge stands, and let the answer take effect. Raises: what the bank port raises."""
    state = await find(ports, payment)
    return payment if state is None else await conclude(ports, payment, state)


async def ask_again(ports: Ports, payment: Payment) -> Payment:
    """Find out about a charge of which nobody knows, by sending the same operation where that may still be done.

    Raises no fault of the bank: then nobody knows still.
    """
    try:
        state = await find(ports, payment)
    except NO_ANSWER:
        return payment
    if state is not None:
        return await conclude(ports, payment, state)
    subscription = await ports.storage.get(Subscription, payment.subscription_id or "")
    step = Step.WAIT if subscription is None else step_of(payment, subscription, ports.clock.now())
    if subscription is not None and step is Step.SEND:
        payment = await note_unknown(ports, payment)
        try:
            return await send(ports, payment, subscription)
        except (NotConfigured, NotSupported):
            return payment
    if subscription is not None and step is Step.GIVE_UP:
        reason = FailureReason.MANDATE_REVOKED if subscription.is_final else FailureReason.UNKNOWN
        return await _fail(ports, payment, reason)
    return payment


async def watch_charge(ports: Ports, job: Job) -> None:
    """The job that follows a charge: finishes what a crash or a lost answer left open, and hears the end where the
    bank sends no notice."""
    payment = await ports.storage.get(Payment, job.argument)
    state, looks = None, job.attempts
    if payment is not None and has_no_outcome(payment):
        if payment.bank_reference is None:
            payment = await ask_again(ports, payment)
            # What the bank took just now has a ladder of its own.
            looks = looks if payment.bank_reference is None else 1
        else:
            try:
                state = await find(ports, payment)
            except NO_ANSWER:
                state = None
            payment = payment if state is None else await conclude(ports, payment, state)
    ended = payment is None or not has_no_outcome(payment)
    await reschedule_at(ports, job, None if ended else next_look(state, looks, ports.clock.now()))


def next_look(state: ChargeState | None, looks: int, now: datetime) -> datetime:
    """When the bank is asked again; for ever, since the charge holds its period while nobody knows."""
    return next_ask(None if state is None else state.check_after, looks, now)
