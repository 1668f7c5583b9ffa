"""Progress of money in suspense that is returned to its payer (docs/payments.md "Money that cannot count").

Each attempt is an operation of its own (domain/refunds/suspense_returns.py). The money leaves the books only when the
bank has sent it. The bank's answer about an earlier attempt moves nothing.
"""

import logging
from datetime import datetime
from typing import NamedTuple

import msgspec

from ....ports.bank import RefundRequest, RefundState
from ....ports.bank import RefundStatus as AtBank
from ....ports.bundle import Ports
from ....ports.faults import Stale
from ....ports.storage import Unit
from ...domain.ledger import BalanceType, EntryKind, JournalEntry, entry_id
from ...domain.payments.payments import Payment
from ...domain.payments.suspense import (
    RETURN_ENDED,
    RETURN_FAILED,
    RETURN_REVERSED,
    SUSPENSE,
    Suspense,
)
from ...domain.refunds.suspense_returns import (
    attempt_of,
    present_operation,
    return_operation,
    returning_payment,
)
from ..accounts.accounts import storable
from ..common.schedule import FollowUp
from ..ledger.ledger import book
from ..operations.operation import Looked, Want
from .bank_refunds import BankRefunds, next_reversal_poll, next_status_poll

RETURN = FollowUp("suspense.send")
"""The job that returns the money."""

_BATCH = 200

log = logging.getLogger("cambist.suspense")


class Returning(NamedTuple):
    """Money in suspense, the payment for which it came, and the attempt in question."""

    suspense: Suspense
    payment: Payment
    attempt: int


class SuspenseReturns(BankRefunds[Returning]):
    """Returns of money in suspense."""

    follow_up = RETURN
    record = Suspense
    races = ("journal_id",)
    """When two reports arrive at once, the second finds the money booked."""

    def owns(self, operation: str, /) -> bool:
        return operation.startswith(SUSPENSE)

    async def owner(self, unit: Unit, operation: str, /) -> Suspense | None:
        suspended = await suspense_of(unit, operation)
        return None if suspended is None else suspended[0]

    async def load(self, _ports: Ports, unit: Unit, object_id: str, /) -> Returning | None:
        suspense = await find_suspense(unit, object_id)
        return None if suspense is None else await _of_attempt(unit, suspense, suspense.attempt)

    async def of_operation(self, _ports: Ports, unit: Unit, operation: str, /) -> Returning | None:
        found = await suspense_of(unit, operation)
        return None if found is None else await _of_attempt(unit, *found)

    def banked(self, subject: Returning, /) -> Payment:
        return subject.payment

    def request(self, subject: Returning, /) -> RefundRequest:
        suspense, payment, attempt = subject
        is_present = attempt == suspense.attempt
        return RefundRequest(
            operation=present_operation(suspense) if is_present else return_operation(suspense, attempt),
            reference=payment.bank_reference or "",
            amount_kopecks=suspense.amount.kopecks,
            transfer=suspense.transfer_id,
        )

    def wants(self, subject: Returning, /) -> Want:
        if subject.suspense.resolved_at is not None:
            return Want.POLL
        if subject.suspense.reason in RETURN_ENDED:
            return Want.NOTHING
        return Want.PREPARE if subject.suspense.sending_since is None else Want.SEND

    def since(self, subject: Returning, /) -> datetime:
        return subject.suspense.received_at

    def sent_at(self, subject: Returning, /) -> datetime | None:
        suspense = subject.suspense
        # Earlier attempts have no time of their own; they cannot be older than the money.
        return suspense.sending_since if subject.attempt == suspense.attempt else suspense.received_at

    async def prepare(self, ports: Ports, unit: Unit, subject: Returning, /) -> Returning:
        suspense = subject.suspense
        named = return_operation(suspense, suspense.attempt)
        marked = msgspec.structs.replace(suspense, sending_since=ports.clock.now(), operation=named)
        return subject._replace(suspense=unit[Suspense].save(marked))

    async def apply(self, ports: Ports, unit: Unit, subject: Returning, word: RefundState, /) -> Returning:
        suspense, _, attempt = subject
        went = suspense.resolved_at is not None
        if attempt != suspense.attempt:
            await _heard_late(unit, suspense, attempt, word)
            return subject
        if suspense.reason == RETURN_REVERSED:
            # A reversal is the final answer about this operation. Any other answer was requested earlier, and arrives
            # late.
            return subject
        if word.status is AtBank.DONE and not went:
            _book(ports, unit, suspense, EntryKind.SUSPENSE_RETURNED, attempt)
            suspense = msgspec.structs.replace(suspense, resolved_at=ports.clock.now())
        elif word.status is AtBank.FAILED and not went:
            suspense = msgspec.structs.replace(suspense, reason=RETURN_FAILED)
        elif word.status is AtBank.REVERSED:
            if went:
                _book(ports, unit, suspense, EntryKind.SUSPENSE, attempt + 1)
            suspense = msgspec.structs.replace(suspense, resolved_at=None, reason=RETURN_REVERSED)
        else:
            return subject
        return subject._replace(suspense=unit[Suspense].save(suspense))

    def next_status_poll(
        self, ports: Ports, subject: Returning, looked: Looked[Returning, RefundState], /
    ) -> datetime | None:
        """Return when to poll next; None when the money is gone for good, or stays in suspense for the operator."""
        suspense, now = subject.suspense, ports.clock.now()
        if suspense.resolved_at is not None:
            return next_reversal_poll(suspense.resolved_at, now)
        return None if suspense.reason in RETURN_ENDED else next_status_poll(looked.word, looked.asked, now)


SUSPENSE_RETURNS = SuspenseReturns()


async def find_suspense(unit: Unit, suspense_id: str) -> Suspense | None:
    """Return money in suspense by its id; any text is accepted as an id."""
    return await unit[Suspense].get(suspense_id) if storable(suspense_id) else None


async def suspense_of(unit: Unit, operation: str) -> tuple[Suspense, int] | None:
    """Return the suspended money that a bank operation sends back, and the number of the attempt. A QR may be paid any
    number of times, so read in batches.
    """
    payment_id = returning_payment(operation)
    if payment_id is None:
        return None
    offset = 0
    while True:
        batch = await unit[Suspense].find(payment_id=payment_id, order="received_at", limit=_BATCH, offset=offset)
        for suspense in batch:
            attempt = attempt_of(suspense, operation)
            if attempt is not None:
                return suspense, attempt
        if len(batch) < _BATCH:
            return None
        offset += _BATCH


async def _of_attempt(unit: Unit, suspense: Suspense, attempt: int) -> Returning:
    payment = await unit[Payment].get(suspense.payment_id)
    if payment is None:
        # Both were deleted between the two reads.
        raise Stale(f"{suspense.id} has no payment")
    return Returning(suspense, payment, attempt)


async def _heard_late(unit: Unit, suspense: Suspense, attempt: int, state: RefundState) -> None:
    """Log an error if an earlier attempt was executed after all. It is not booked, because the current attempt may be
    executed, too.
    """
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
    book(ports, unit, kind, suspense, {BalanceType.BANK: -amount, BalanceType.SUSPENSE: amount}, revision=revision)
