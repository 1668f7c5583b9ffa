"""Operators, who now and then handle what waits for a person: payments of another amount, refunds, unapplied money."""

from contextlib import suppress
from typing import TYPE_CHECKING

from cambist.core.domain.errors import Refusal
from cambist.core.domain.payments.payments import Payment, PaymentStatus
from cambist.core.domain.refunds.refunds import Refund, RefundStatus
from cambist.core.usecases.exchanges.returns import list_suspended, return_money
from cambist.core.usecases.operators.review import list_suspense, resolve_mismatch
from cambist.core.usecases.refunds.refunds import approve_refund, reject_refund
from cambist.core.usecases.refunds.suspense_return import return_suspense
from cambist.ports.faults import Fault
from tests.simulation.plan import ENDS, HOUR

if TYPE_CHECKING:
    from tests.simulation.world import World

POLLS = (0.3 * HOUR, 0.6 * HOUR, 8 * HOUR, 13 * HOUR, 13.1 * HOUR, 14.5 * HOUR, 20 * HOUR, 24 * HOUR, 30 * HOUR)
"""The last visit is before the last settlement."""


async def reject(world: "World", refund: Refund) -> Refund:
    return await reject_refund(world.office, refund.id, "not as described")


async def return_exchanged(world: "World") -> None:
    """Send back what waits of exchanges that are over: USDT to where the client says."""
    waiting = {money.exchange_id for money in await list_suspended(world.office)}
    for deal in (deal for desk in world.desks for deal in desk.deals):
        if deal.exchange_id in waiting:
            world.trace.tell(f"operator: sends back what waits of {deal.exchange_id}")
            with suppress(Refusal, Fault):  # it is not over, or the provider is down: at the next visit
                await return_money(world.office, deal.exchange_id, deal.wallet if deal.swap.takes_usdt else None)


async def operate(world: "World") -> None:
    """Work at intervals. Unreadable or changed records are left to the next round."""
    for look in POLLS:
        await world.network.sleep(look - world.loop.time())
        for work in (judge_mismatches, judge_refunds, return_exchanged, return_unapplied):
            with suppress(Refusal, Fault):
                await work(world)
    assert world.loop.time() < ENDS


async def judge_mismatches(world: "World") -> None:
    """Accept or send back each payment of another amount."""
    async with world.office.storage.unit() as unit:
        waiting = await unit[Payment].find(status=PaymentStatus.AMOUNT_MISMATCH, readable=True)
    for payment in waiting:
        outcome = world.chance.of("operators").choice(("paid", "failed"))
        world.trace.tell(f"operator: {payment.id} counts as {outcome}")
        with suppress(Refusal, Fault):  # it was moved meanwhile, or the bank is down: at the next visit
            await resolve_mismatch(world.office, payment.id, outcome)


async def judge_refunds(world: "World") -> None:
    """Approve most refunds that wait for it."""
    async with world.office.storage.unit() as unit:
        asked = await unit[Refund].find(status=RefundStatus.PENDING, readable=True)
    for refund in asked:
        if refund.approved_at is None:
            approves = world.chance.of("operators").random() < 0.8
            world.trace.tell(f"operator: {'approves' if approves else 'rejects'} {refund.id}")
            with suppress(Refusal, Fault):
                await (approve_refund(world.office, refund.id) if approves else reject(world, refund))


async def return_unapplied(world: "World") -> None:
    """Send back what cannot count."""
    for money in await list_suspense(world.office):
        world.trace.tell(f"operator: sends back {money.id}")
        with suppress(Refusal, Fault):
            await return_suspense(world.office, money.id)
