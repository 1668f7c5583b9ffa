"""Progress of an approved refund: take the money, send it back through the bank, give it back on failure, handle
reversals (docs/refunds.md "How it ends").

One unit takes the money and makes the refund `processing`, before the bank is called. From then on only the bank's
answer moves it: while the outcome is unknown, no money is given back to the merchant, and only the same operation is
repeated.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec

from ....ports.bank import RefundRequest, RefundState
from ....ports.bank import RefundStatus as AtBank
from ....ports.bundle import Ports
from ....ports.storage import Unit
from ...domain import ids
from ...domain.accounts.accounts import Mode
from ...domain.payments.payments import Payment
from ...domain.receipts.carts import Cart
from ...domain.refunds.refunds import PendingReason, Refund, RefundStatus, RefundTrigger, gives_up_at, moved_to
from ..common.quarantine import forgotten_since, holds_back
from ..common.simulated import is_advanced_over
from ..operations.operation import Looked, Want
from .bank_refunds import NOT_SUPPORTED, BankRefunds, next_reversal_poll, next_status_poll
from .contradictions import heard_of_completed, heard_of_failed
from .money import take, take_executed
from .receipts import returned_items
from .steps import CARRY_OUT, GIVE_UP, RACES, move, payment_of

_S = RefundStatus
_T = RefundTrigger

_STEPS: Mapping[tuple[RefundStatus, AtBank], Sequence[RefundTrigger]] = {
    (_S.PROCESSING, AtBank.DONE): (_T.PAID,),
    (_S.PROCESSING, AtBank.FAILED): (_T.REFUSED,),
    # The refund was sent before it came back; a poll may only see the final state.
    (_S.PROCESSING, AtBank.REVERSED): (_T.PAID, _T.CAME_BACK),
    (_S.COMPLETED, AtBank.REVERSED): (_T.CAME_BACK,),
}
"""Moves of a refund by the bank's answer; other pairs change nothing."""


class Refunding(NamedTuple):
    """A refund and its payment."""

    refund: Refund
    payment: Payment


class Refunds(BankRefunds[Refunding]):
    """Refunds from their approval on. The refund's id is the operation id."""

    follow_up = CARRY_OUT
    record = Refund
    races = RACES

    def owns(self, operation: str, /) -> bool:
        return ids.is_prefixed(ids.REFUND, operation)

    async def owner(self, unit: Unit, operation: str, /) -> Refund | None:
        return await unit[Refund].get(operation)

    async def load(self, _ports: Ports, unit: Unit, object_id: str, /) -> Refunding | None:
        refund = await unit[Refund].get(object_id)
        return None if refund is None else Refunding(refund, await payment_of(unit, refund))

    async def of_operation(self, ports: Ports, unit: Unit, operation: str, /) -> Refunding | None:
        subject = await self.load(ports, unit, operation)
        was_sent = subject is not None and subject.refund.status in (_S.PROCESSING, _S.COMPLETED, _S.FAILED)
        return subject if was_sent else None

    def banked(self, subject: Refunding, /) -> Payment:
        return subject.payment

    def returned(self, ports: Ports, subject: Refunding, /) -> Cart | None:
        return returned_items(ports, subject.refund)

    def request(self, subject: Refunding, /) -> RefundRequest:
        return RefundRequest(
            operation=subject.refund.id,
            reference=subject.payment.bank_reference or "",
            amount_kopecks=subject.refund.amount.kopecks,
            transfer=subject.payment.transfer_id,
        )

    def wants(self, subject: Refunding, /) -> Want:
        refund = subject.refund
        if refund.status is _S.PENDING:
            return Want.NOTHING if refund.approved_at is None else Want.PREPARE
        return {_S.PROCESSING: Want.SEND, _S.COMPLETED: Want.POLL}.get(refund.status, Want.NOTHING)

    def since(self, subject: Refunding, /) -> datetime:
        return subject.refund.created_at

    def sent_at(self, subject: Refunding, /) -> datetime | None:
        return subject.refund.executing_since

    async def asks_first(self, ports: Ports, subject: Refunding, /) -> bool:
        """Return whether to poll the bank before the balance decides. A refund that waits for money was polled when it
        began to wait.
        """
        return subject.refund.pending_reason is None and await self.may_be_executed(ports, subject)

    async def may_be_executed(self, ports: Ports, subject: Refunding, /) -> bool:
        """Return whether the bank may have executed a pending refund during a period that the database has forgotten,
        and can be polled.
        """
        refund, payment = subject
        bank = ports.banks.capabilities_of(payment.bank)
        can_be_asked = bank is not None and bank.refunds and payment.bank_reference is not None
        return refund.mode is Mode.LIVE and can_be_asked and await forgotten_since(ports) is not None

    async def adopt(self, ports: Ports, unit: Unit, subject: Refunding, /) -> Refunding:
        """Take the money of a refund that the bank has executed, whatever the balance, even while the installation is
        quarantined.
        """
        return await self._sent(ports, unit, *await take_executed(ports, unit, subject.payment, subject.refund))

    async def _sent(self, ports: Ports, unit: Unit, payment: Payment, refund: Refund) -> Refunding:
        payment, now = unit[Payment].save(payment), ports.clock.now()
        await CARRY_OUT.keep(unit, refund.id, now, now)
        return Refunding(unit[Refund].save(moved_to(refund, _T.SENT, executing_since=now)), payment)

    async def prepare(self, ports: Ports, unit: Unit, subject: Refunding, /) -> Refunding:
        """Take the money. A refund that the balance does not cover waits (waiting.py) until giving_up.py ends it. If
        the bank sends no money back, the refund is rejected. If the bank is not configured, the refund stays as it is.
        """
        refund, payment = subject
        if await holds_back(ports, unit, refund.mode):
            # Take no money until the restored copy has been compared with the providers.
            return subject
        bank = ports.banks.capabilities_of(payment.bank)
        if bank is None and payment.bank_reference is not None:
            return subject
        if bank is None or payment.bank_reference is None or not bank.refunds:
            await CARRY_OUT.drop(unit, refund.id)
            return Refunding(await move(ports, unit, refund, (_T.REJECTED,), failure=NOT_SUPPORTED), payment)
        taken = await take(ports, unit, payment, refund)
        if taken is None:
            await CARRY_OUT.drop(unit, refund.id)
            await GIVE_UP.keep(unit, refund.id, gives_up_at(refund), ports.clock.now())
            waiting = msgspec.structs.replace(refund, pending_reason=PendingReason.INSUFFICIENT_BALANCE)
            return Refunding(unit[Refund].save(waiting), payment)
        return await self._sent(ports, unit, *taken)

    async def apply(self, ports: Ports, unit: Unit, subject: Refunding, word: RefundState, /) -> Refunding:
        refund = subject.refund
        if refund.status is _S.FAILED:
            return subject._replace(refund=heard_of_failed(ports, unit, refund, word))
        if refund.status is _S.COMPLETED and word.status is not AtBank.REVERSED:
            return subject._replace(refund=heard_of_completed(ports, unit, refund, word))
        steps = _STEPS.get((refund.status, word.status), ())
        if not steps:
            return subject
        return subject._replace(refund=await move(ports, unit, refund, steps, failure=word.failure or "unknown"))

    def next_status_poll(
        self, ports: Ports, subject: Refunding, looked: Looked[Refunding, RefundState], /
    ) -> datetime | None:
        refund, now = subject.refund, ports.clock.now()
        if refund.status is _S.PENDING:
            ready = refund.approved_at is not None and refund.pending_reason is None
            return next_status_poll(None, looked.asked, now) if ready else None
        if refund.status is _S.PROCESSING:
            return next_status_poll(looked.word, looked.asked, now)
        if refund.status is _S.COMPLETED and refund.completed_at is not None:
            advanced = is_advanced_over(ports, subject.payment.bank)
            return next_reversal_poll(refund.completed_at, now, advanced=advanced)
        return None


REFUNDS = Refunds()
