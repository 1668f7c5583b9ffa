"""Refunds of which the bank says otherwise in the end: that it sent one after all which it had failed, or failed one
which it had sent (docs/states.md "Refund": merchants were told).

Whoever has the money by then, nothing is taken from anybody by itself: the refund is marked, and operators settle it
with bank and merchant. Until then the bank holds less than our books say, or more.
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
from ..test_clock import in_test_time
from ..units import retrying


def heard_of_failed(ports: Ports, unit: Unit, refund: Refund, state: RefundState) -> Refund:
    """The refund after the bank's word about one that had failed: the money was sent after all, or came back after
    that."""
    at = refund.contradicted_at
    if state.status is AtBank.DONE and at is None:
        at = ports.clock.now()
    elif state.status is AtBank.REVERSED:
        at = None
    if at == refund.contradicted_at:
        return refund
    return unit[Refund].save(msgspec.structs.replace(refund, contradicted_at=at, contradiction_seen=False))


def heard_of_completed(ports: Ports, unit: Unit, refund: Refund, state: RefundState) -> Refund:
    """The refund after the bank's word about one that was completed: it says that no money went, or again that it
    did."""
    at = refund.contradicted_at
    if state.status is AtBank.FAILED and at is None:
        at = ports.clock.now()
    elif state.status is AtBank.DONE:
        at = None
    if at == refund.contradicted_at:
        return refund
    return unit[Refund].save(msgspec.structs.replace(refund, contradicted_at=at, contradiction_seen=False))


async def list_contradicted(unit: Unit, limit: int) -> list[Refund]:
    """The refunds that wait for an operator, in the order in which we heard of them."""
    found = await unit[Refund].find(
        contradicted_at=AtLeast(LONG_AGO), contradiction_seen=False, order="contradicted_at", limit=limit, readable=True
    )
    return [each for each in found if is_contradicted(each)]


async def contradicted_refunds(ports: Ports, *, limit: int = 1000) -> list[Refund]:
    """The same, for operators."""
    async with ports.storage.unit() as unit:
        return await list_contradicted(unit, limit)


@in_test_time(Refund)
async def settle_contradiction(ports: Ports, refund_id: str) -> Refund:
    """Record the operator's word that the refund is settled with bank and merchant. Raises: Refusal REFUND_NOT_FOUND;
    INVALID_STATE where there is nothing to settle."""

    async def work(unit: Unit) -> Refund:
        refund = await unit[Refund].get(refund_id) if ids.is_prefixed(ids.REFUND, refund_id) else None
        if refund is None:
            raise Refusal("REFUND_NOT_FOUND", "No refund of this id")
        if not is_contradicted(refund):
            raise Refusal("INVALID_STATE", "The bank contradicts nothing of this refund, or it is settled already")
        return unit[Refund].save(msgspec.structs.replace(refund, contradiction_seen=True))

    return await retrying(ports.storage, work)


def is_contradicted(refund: Refund) -> bool:
    """Whether the refund waits for an operator. One that came back since does not."""
    is_told = refund.status in (RefundStatus.FAILED, RefundStatus.COMPLETED)
    return is_told and refund.contradicted_at is not None and not refund.contradiction_seen


def contradiction(refund: Refund) -> str:
    """What the bank says otherwise, in a few words."""
    if refund.status is RefundStatus.COMPLETED:
        return "completed, but the bank says that it failed"
    return "failed, but was sent"
