"""The life of a charge at the bank: send it, poll it, repeat it under one operation id until it has an outcome
(docs/subscriptions.md "When a charge is refused"; ARCHITECTURE.md "Three outcomes").

The payment is written before the bank is called, and its id is the operation id. A repeat by the merchant and a repeat
by the watch, even at the same moment, therefore concern one debit.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec

from ....ports.bank import Bank
from ....ports.bundle import Ports
from ....ports.faults import NotConfigured, NotSupported, Refused, Stale
from ....ports.mandates import ChargeRequest, ChargeState, ChargeStatus, MandateBank
from ....ports.searching import SearchesCharges
from ....ports.storage import Unit
from ...domain.payments.payments import FailureReason, Opening, Payment, PaymentStatus
from ...domain.payments.reports import Report
from ...domain.subscriptions.charge_reports import Step, decide_charge_report, has_no_outcome, step_of
from ...domain.subscriptions.subscriptions import Subscription
from ..common.encrypted import open_mandate_token
from ..common.forgotten import sent_at_earliest
from ..common.schedule import FollowUp, next_ask
from ..gateways.outcomes import follow_outcome, save_unknown
from ..gateways.watch import at_bank
from ..operations.operation import Followed, Looked, Want
from ..operations.repeating import repeats_until
from ..payments.moves import RACES, carry, read_arrivals, read_failure
from ..payments.receipts import receipt_of

WATCH_CHARGE = FollowUp("charge.watch")
"""The job that follows a charge until its outcome."""
FIRST_POLL = timedelta(seconds=10)
"""Delay until the watch takes over a charge whose request was interrupted."""

_REPORTED = {
    # A charge that the bank is processing is pending (docs/subscriptions.md "Periods and attempts").
    ChargeStatus.PROCESSING: PaymentStatus.PENDING,
    ChargeStatus.PAID: PaymentStatus.PAID,
    ChargeStatus.FAILED: PaymentStatus.FAILED,
}
_GONE = "not_found"
"""Reason of a refusal because the bank knows no such mandate."""


Word = ChargeState | FailureReason | Opening
"""New information about a charge: the bank's answer, the reason for a failure without an answer, or `UNKNOWN` for an
unknown outcome.
"""


class Charging(NamedTuple):
    """A charge, and the subscription whose mandate it uses (needed to send it)."""

    payment: Payment
    subscription: Subscription | None = None


class Charges(Followed[Charging, Word, MandateBank]):
    """Charges by mandate. The request that makes a charge sends it first (charges.py), and may still take it back until
    its outcome is in doubt; the charge is marked from then on.
    """

    follow_up = WATCH_CHARGE
    record = Payment
    races = RACES

    async def load(self, _ports: Ports, unit: Unit, object_id: str, /) -> Charging | None:
        payment = await unit[Payment].get(object_id)
        return None if payment is None else await _with_subscription(unit, payment)

    async def of_operation(self, _ports: Ports, unit: Unit, operation: str, /) -> Charging | None:
        payment = await unit[Payment].get(operation)
        return None if payment is None else Charging(payment)

    def operation(self, subject: Charging, /) -> str:
        return subject.payment.id

    def wants(self, subject: Charging, /) -> Want:
        if not has_no_outcome(subject.payment):
            return Want.NOTHING
        return Want.SEND if subject.payment.bank_reference is None else Want.POLL

    @asynccontextmanager
    async def at_provider(self, ports: Ports, subject: Charging, /) -> AsyncIterator[MandateBank]:
        async with at_bank(ports, subject.payment) as bank:
            if not isinstance(bank, MandateBank):
                raise NotSupported(f"{bank.name} binds no payers")
            yield bank

    async def find(self, ports: Ports, provider: MandateBank, subject: Charging, /) -> ChargeState | None:
        payment = subject.payment
        if not isinstance(provider, SearchesCharges):
            return await provider.find_charge(payment.id)
        # The notification handler does not load the subscription.
        subscription = subject.subscription or await ports.storage.get(Subscription, payment.subscription_id or "")
        if subscription is None:
            raise Stale(f"the subscription of {payment.id} is gone")
        since = await sent_at_earliest(ports, payment.created_at)
        return await provider.search_charge(_request(ports, payment, subscription, provider), since)

    async def send(self, ports: Ports, provider: MandateBank, subject: Charging, /) -> ChargeState:
        payment, subscription = subject
        if subscription is None or not provider.capabilities.mandate_charges:
            raise NotConfigured(f"{provider.name} charges no mandates")
        return await provider.charge(_request(ports, payment, subscription, provider))

    def refused(self, _subject: Charging, fault: Refused | NotSupported, /) -> FailureReason | None:
        if isinstance(fault, NotSupported):
            return None
        if fault.reason == _GONE:
            return FailureReason.MANDATE_REVOKED
        reason = read_failure(fault.reason)
        return FailureReason.DECLINED_BY_BANK if reason in (None, FailureReason.UNKNOWN) else reason

    def unknown(self, _subject: Charging, /) -> Opening:
        return Opening.UNKNOWN

    def may_send(self, ports: Ports, subject: Charging, /) -> bool:
        return _step(ports, subject) is Step.SEND

    def repeats_until(self, ports: Ports, subject: Charging, /) -> datetime | None:
        return repeats_until(ports, subject.payment.bank, subject.payment.created_at)

    def given_up(self, ports: Ports, subject: Charging, /) -> FailureReason | None:
        if subject.subscription is None or _step(ports, subject) is not Step.GIVE_UP:
            return None
        return FailureReason.MANDATE_REVOKED if subject.subscription.is_final else FailureReason.UNKNOWN

    async def apply(self, ports: Ports, unit: Unit, subject: Charging, word: Word, /) -> Charging:
        payment = subject.payment
        if isinstance(word, Opening):
            marked = await save_unknown(unit, payment) if payment.opening is Opening.ASKING else payment
            return await _with_subscription(unit, marked)
        if isinstance(word, ChargeState):
            return Charging(await _heard(ports, unit, payment, word))
        if not has_no_outcome(payment) or payment.bank_reference is not None:
            return subject
        return Charging(await _report(ports, unit, payment, Report(status=PaymentStatus.FAILED, failure=word)))

    def next_status_poll(self, ports: Ports, subject: Charging, looked: Looked[Charging, Word], /) -> datetime | None:
        if not has_no_outcome(subject.payment):
            return None
        was_taken = looked.began is not None and looked.began.payment.bank_reference is not None
        # A charge that the bank accepted in this run starts its own backoff schedule.
        asked = looked.asked if was_taken or subject.payment.bank_reference is None else 1
        state = looked.word if isinstance(looked.word, ChargeState) else None
        # Poll without end: the charge occupies its period while the outcome is unknown.
        return next_ask(None if state is None else state.check_after, asked, ports.clock.now())


CHARGES = Charges()


def charger(ports: Ports, name: str | None) -> MandateBank | None:
    """Return the bank that holds a mandate, if it is configured and charges mandates."""
    bank = ports.banks.banks.get(name or "")
    return bank if isinstance(bank, MandateBank) and bank.capabilities.mandate_charges else None


def _request(ports: Ports, payment: Payment, subscription: Subscription, bank: Bank) -> ChargeRequest:
    return ChargeRequest(
        operation=payment.id,
        reference=subscription.mandate_reference or "",
        token=open_mandate_token(ports.vault, subscription) or "",
        amount_kopecks=payment.amount.kopecks,
        purpose=subscription.description,
        receipt=receipt_of(ports, payment, bank),
    )


async def _with_subscription(unit: Unit, payment: Payment) -> Charging:
    return Charging(payment, await unit[Subscription].get(payment.subscription_id or ""))


def _step(ports: Ports, subject: Charging) -> Step:
    if subject.subscription is None:
        return Step.WAIT
    return step_of(subject.payment, subject.subscription, ports.clock.now())


async def _heard(ports: Ports, unit: Unit, payment: Payment, state: ChargeState) -> Payment:
    """Save the bank's answer: payment, money, events and subscription."""
    now = ports.clock.now()
    if state.check_after is not None:
        await WATCH_CHARGE.hurry(unit, payment.id, next_ask(state.check_after, 0, now))
    report = Report(
        status=_REPORTED[state.status],
        failure=read_failure(state.failure),
        arrivals=() if state.transfer is None else read_arrivals((state.transfer,)),
    )
    return await _report(ports, unit, payment, report, reference=state.reference)


async def _report(
    ports: Ports, unit: Unit, payment: Payment, report: Report, *, reference: str | None = None
) -> Payment:
    known = msgspec.structs.replace(payment, opening=Opening.OPEN, bank_reference=reference)
    await follow_outcome(unit, payment, known)
    carried = await carry(ports, unit, known, decide_charge_report(known, report, ports.clock.now()))
    return unit[Payment].save(known) if carried is known and known != payment else carried
