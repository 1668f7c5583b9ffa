"""Refunds that the bank later contradicts: the bank sent a refund that we recorded as failed, or did not send a
completed one (docs/states.md "Refund"). Merchants have been notified of the first status.

No money is moved automatically. The refund is marked, and operators settle it with bank and merchant. Until then our
books show more or less than the bank holds.
"""

import msgspec

from ....ports.bank import RefundState
from ....ports.bank import RefundStatus as AtBank
from ....ports.bundle import Ports
from ....ports.storage import AtLeast, Unit
from ...domain import ids
from ...domain.days import LONG_AGO
from ...domain.errors import Refusal
from ...domain.refunds.refunds import Refund, RefundStatus
from ..common.account_time import in_test_time
from ..common.units import unit_of_work


def heard_of_failed(ports: Ports, unit: Unit, refund: Refund, state: RefundState) -> Refund:
    """Apply the bank's answer about a failed refund: the money was sent after all, or came back after that. Return the
    refund.
    """
    at = refund.contradicted_at
    if state.status is AtBank.DONE and at is None:
        at = ports.clock.now()
    elif state.status is AtBank.REVERSED:
        at = None
    if at == refund.contradicted_at:
        return refund
    return unit[Refund].save(msgspec.structs.replace(refund, contradicted_at=at, contradiction_seen=False))


def heard_of_completed(ports: Ports, unit: Unit, refund: Refund, state: RefundState) -> Refund:
    """Apply the bank's answer about a completed refund: the bank says that no money went, or again that it did. Return
    the refund.
    """
    at = refund.contradicted_at
    if state.status is AtBank.FAILED and at is None:
        at = ports.clock.now()
    elif state.status is AtBank.DONE:
        at = None
    if at == refund.contradicted_at:
        return refund
    return unit[Refund].save(msgspec.structs.replace(refund, contradicted_at=at, contradiction_seen=False))


async def list_contradicted(unit: Unit, limit: int) -> list[Refund]:
    """Return the refunds that wait for an operator, in the order of their contradiction."""
    found = await unit[Refund].find(
        contradicted_at=AtLeast(LONG_AGO), contradiction_seen=False, order="contradicted_at", limit=limit, readable=True
    )
    return [each for each in found if is_contradicted(each)]


async def contradicted_refunds(ports: Ports, *, limit: int = 1000) -> list[Refund]:
    """Return the contradicted refunds, for operators."""
    async with ports.storage.unit() as unit:
        return await list_contradicted(unit, limit)


@in_test_time(Refund)
@unit_of_work()
async def settle_contradiction(_: Ports, unit: Unit, refund_id: str) -> Refund:
    """Record the operator's statement that the refund is settled with bank and merchant. Raises: Refusal
    REFUND_NOT_FOUND; INVALID_STATE when there is nothing to settle.
    """
    refund = await unit[Refund].get(refund_id) if ids.is_prefixed(ids.REFUND, refund_id) else None
    if refund is None:
        raise Refusal("REFUND_NOT_FOUND", "No refund of this id")
    if not is_contradicted(refund):
        raise Refusal("INVALID_STATE", "The bank does not contradict this refund, or the difference is settled already")
    return unit[Refund].save(msgspec.structs.replace(refund, contradiction_seen=True))


def is_contradicted(refund: Refund) -> bool:
    """Return whether the refund waits for an operator. A reversed refund does not."""
    is_told = refund.status in (RefundStatus.FAILED, RefundStatus.COMPLETED)
    return is_told and refund.contradicted_at is not None and not refund.contradiction_seen


def contradiction(refund: Refund) -> str:
    """Return a short description of the contradiction."""
    if refund.status is RefundStatus.COMPLETED:
        return "completed, but the bank says that it failed"
    return "failed, but was sent"
