"""Refunds that their banks executed during a period that a restored database does not contain.

An executed refund is a fact, not a decision. It is booked whatever the balance, approved or not, and also while the
installation is quarantined.
"""

import msgspec

from ....ports.bundle import Ports
from ....ports.faults import Unavailable
from ....ports.storage import Unit
from ...domain.accounts.accounts import Mode
from ...domain.refunds.refunds import Refund, RefundStatus
from ..actions.audit import note_outside, unaudited
from ..common.units import retrying
from ..operations.engine import bring, look_up
from .progress import REFUNDS
from .steps import CARRY_OUT, RACES


async def is_executed(ports: Ports, refund_id: str) -> bool:
    """Return whether the bank has executed a pending refund that this database never sent. The bank is polled only in
    an installation that is, or was, quarantined. Raises: Unavailable when it gives no answer.
    """
    async with ports.storage.unit() as unit:
        subject = await REFUNDS.load(ports, unit, refund_id)
    if subject is None or subject.refund.status is not RefundStatus.PENDING:
        return False
    if not await REFUNDS.may_be_executed(ports, subject):
        return False
    told = await look_up(REFUNDS, ports, subject)
    if told.fault is not None:
        raise Unavailable(f"bank {subject.payment.bank} does not say whether it executed {refund_id}: {told.fault}")
    return told.word is not None


async def book_all_executed(ports: Ports) -> list[str]:
    """Poll the banks for every pending refund of live mode and book each executed one; return their ids.

    Raises: Unavailable when a bank gives no answer.
    """
    booked: list[str] = []
    async for batch in ports.storage.scan(Refund, mode=Mode.LIVE, status=RefundStatus.PENDING):
        for refund in batch:
            if await is_executed(ports, refund.id):
                await book_executed(ports, refund.id)
                booked.append(refund.id)
    return booked


async def book_executed(ports: Ports, refund_id: str) -> None:
    """Book a pending refund that its bank executed, with a row in the audit log if an operator started this."""
    await note_outside(ports, refund_id)
    plain = unaudited(ports)

    async def work(unit: Unit) -> None:
        refund = await unit[Refund].get(refund_id)
        if refund is not None and refund.status is RefundStatus.PENDING:
            now = plain.clock.now()
            await CARRY_OUT.plan(unit, refund.id, now, now)
            approved_at = refund.approved_at or now
            unit[Refund].save(msgspec.structs.replace(refund, approved_at=approved_at, pending_reason=None))

    await retrying(plain.storage, work, again_on=RACES)
    told = await bring(REFUNDS, plain, refund_id)
    if told.subject is not None and told.subject.refund.status is RefundStatus.PENDING:
        raise Unavailable(f"bank {told.subject.payment.bank} gives no answer about {refund_id}: {told.fault}")
