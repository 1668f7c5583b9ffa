"""Final checks, after faults have stopped: compare the answers and webhooks that merchants received with the API, the
banks' and the chain's own books, and the ledger (docs/reliability.md "What is checked")."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from cambist.core.domain.webhooks.breaker import Breaker
from cambist.core.domain.webhooks.events import Delivery
from cambist.ports.bank import RefundStatus, Transfer
from cambist.ports.jobs import Job
from tests.invariants import check_books, everything
from tests.simulation.bank_checks import judge_banks
from tests.simulation.clock_checks import judge_live_time, judge_sandbox
from tests.simulation.exchange_checks import judge_exchanges
from tests.simulation.fairness import judge_fairness
from tests.simulation.memberships import judge_mandates
from tests.simulation.merchants import Merchant, RefundWish, Sale, rub
from tests.simulation.network import key_of
from tests.simulation.plan import LAST_SETTLEMENT, Payer
from tests.simulation.proof_checks import judge_proofs
from tests.simulation.strands import Strand
from tests.simulation.strangers import judge_bounds
from tests.simulation.told_moves import judge_moves

if TYPE_CHECKING:
    from tests.simulation.world import World

_REFUND_NEXT = {
    None: {"pending"},
    "pending": {"processing", "rejected", "cancelled"},
    "processing": {"completed", "failed"},
    "completed": {"reversed"},
}
_OVER = {"settled", "refunded", "failed", "cancelled", "expired"}
_REFUND_OVER = {"completed", "failed", "rejected", "cancelled", "reversed"}
_PAYOUT_OVER = {"completed", "failed", "cancelled"}
_LATE_COUNTS = 6 * 3600
_CLOCKS_OFF = 1800
_OVERDUE = timedelta(minutes=10)


async def judge(world: "World", office: Strand) -> None:
    """Find all faults, and report them to the world."""
    for merchant in world.merchants:
        for sale in merchant.sales:
            await _judge_sale(world, merchant, sale)
        await world.clubs[merchant.number].judge()
        await world.registries[merchant.number].judge()
        await judge_exchanges(world, merchant, world.desks[merchant.number])
        await judge_sandbox(world, world.sandboxes[merchant.number])
        await _judge_payouts(world, merchant)
        await _judge_balance(world, merchant)
    await judge_proofs(world, world.tills)
    for endpoint in world.endpoints:
        await endpoint.judge()
    judge_banks(world)
    judge_fairness(world)
    await judge_mandates(world)
    rows = [row for bank in world.banks.values() for row in bank.refunds.values()]
    world.counts["sent back"] = len(rows)
    world.counts["refunds at banks"] = sum(row.operation.startswith("ref_") for row in rows)
    await judge_bounds(world)
    with _still(world, office):
        books = world.loop.spawn(office, _judge_books(world))
        while not books.done():
            await asyncio.sleep(0)
    if books.exception() is not None:
        world.fault(f"the books: {type(books.exception()).__name__}: {books.exception()}"[:1500])


@contextmanager
def _still(world: "World", office: Strand) -> Iterator[None]:
    """Stop every strand but the office and the world. The checks wait in the world, so it must run too."""
    others = [process.strand for process in world.processes.values() if process.strand is not None]
    for strand in others:
        world.loop.stop_strand(strand)
    try:
        yield
    finally:
        for strand in others:
            world.loop.go_on(strand)
    del office


async def _judge_books(world: "World") -> None:
    await check_books(world.office)
    now = world.now()
    for breaker in await everything(world.office, Breaker):
        if breaker.opened_at is not None and (breaker.last_success_at or breaker.opened_at) > breaker.opened_at:
            world.fault(f"the breaker of {breaker.id} is open since {breaker.opened_at}, and a webhook was taken since")
    receivers = {merchant.account.account_id: merchant.receiver for merchant in world.merchants}
    for each in await everything(world.office, Delivery):
        known, posted = each.attempts + each.probes, receivers[each.account_id].posted[each.id]
        if known > posted:
            world.fault(f"event {each.id} was sent {posted} times, and {known} times are known")
    for job in await everything(world.office, Job):
        is_held = job.leased_until is not None and job.leased_until > now
        if job.due < now - _OVERDUE and not is_held:
            world.fault(f"job {job.id} is due since {job.due}, tried {job.attempts} times")


async def _judge_sale(world: "World", merchant: Merchant, sale: Sale) -> None:
    order = sale.order
    if len(sale.ids) > 1:
        world.fault(f"order {order.number}: one key, several payments: {sorted(sale.ids)}")
    await _judge_key(world, merchant, sale)
    if sale.payment_id is None:
        if sale.ended not in (400, 502):
            world.fault(f"order {order.number} was never answered: {sale.ended}")
        return
    status = await merchant.look(sale)
    if status is None:
        return
    if status not in _OVER and not (status == "paid" and _came_back_late(world, merchant, sale)):
        world.fault(f"{sale.payment_id} has not ended: {status}")
    _judge_told(world, merchant, sale, status)
    await _judge_money(world, merchant, sale, status)
    for wish in sale.refunds:
        await _judge_refund(world, merchant, sale, wish)


def _came_back_late(world: "World", merchant: Merchant, sale: Sale) -> bool:
    """Whether a refund of the sale came back after the last settlement, and so waits for the next one. Without a
    notification the bank is polled only a day later."""
    since = world.beginning + timedelta(seconds=LAST_SETTLEMENT)
    mine = (each for each in merchant.receiver.told.values() if each.body.get("payment_id") == sale.payment_id)
    return any(each.event == "refund.reversed" and each.at >= since for each in mine)


async def _judge_key(world: "World", merchant: Merchant, sale: Sale) -> None:
    """Check that a repeated request returns the created payment, or the answer that its outcome is unknown."""
    order = sale.order
    if sale.payment_id is None and sale.ended != 502:
        return
    body = {"amount_rub": rub(order.kopecks), "external_id": f"order-{order.number}"}
    answer = await merchant.insist("POST", "/api/v1/payments", body, key_of(world.plan.seed, "order", order.number))
    said = answer.json["id"] if answer.status in (200, 201) else answer.status
    if (sale.payment_id is not None and said != sale.payment_id) or (sale.payment_id is None and said != 502):
        world.fault(f"order {order.number} was answered {sale.payment_id or sale.ended}, and to its key {said} now")


def _judge_told(world: "World", merchant: Merchant, sale: Sale, status: str) -> None:
    """Check that each move was reported, and that another amount went through a review."""
    assert sale.payment_id is not None
    told = [each for each in merchant.receiver.of("payment_id", sale.payment_id) if "refund_id" not in each.body]
    judge_live_time(world, sale, told)
    passed = judge_moves(world.fault, told, sale.payment_id, status)
    if sale.order.payer is Payer.OTHER and "paid" in passed and "amount_mismatch" not in passed:
        world.fault(f"{sale.payment_id}: another amount came, and it was paid without a review")


async def _judge_money(world: "World", merchant: Merchant, sale: Sale, status: str) -> None:
    """Check that the service knows the money that the banks received, and counts the money that came in time."""
    payment_id, order = sale.payment_id, sale.order
    assert payment_id is not None
    assert sale.created is not None
    rows = [bank.invoices[payment_id] for bank in world.banks.values() if payment_id in bank.invoices]
    came = [transfer for row in rows for transfer in row.transfers]
    answer = await merchant.insist("GET", f"/api/v1/payments/{payment_id}/transfers", None, None)
    known = answer.json["data"]
    # After the service stops polling for money, only the bank's notification reports it.
    told = world.post.told.get(payment_id, world.beginning)
    certain = [each for each in came if each.at <= told or (each is came[0] and _is_in_time(world, sale, each))]
    if not len(certain) <= len(known) <= len(came) or not {each["amount_rub"] for each in known} <= {
        rub(each.amount_kopecks) for each in came
    }:
        world.fault(f"{payment_id}: {[rub(each.amount_kopecks) for each in came]} came, known are {known}")
    in_time = [each for each in came if each.amount_kopecks == order.kopecks and _is_in_time(world, sale, each)]
    taken = ("paid", "settled") if _came_back_late(world, merchant, sale) else ("settled",)
    if in_time and status not in (*taken, "refunded"):
        world.fault(f"{payment_id} was paid in time, and is {status}")
    if in_time and in_time[0] is came[0]:
        seen = await merchant.insist("GET", f"/api/v1/payments/{payment_id}", None, None)
        paid_at = seen.json["paid_at"]
        if paid_at is None or abs((datetime.fromisoformat(paid_at) - came[0].at).total_seconds()) > _CLOCKS_OFF:
            world.fault(f"{payment_id}: the money came at {came[0].at}, and it was paid at {paid_at}")
    if not came and status in ("paid", "settled", "refunded"):
        world.fault(f"nobody paid {payment_id}, and it is {status}")


def _is_in_time(world: "World", sale: Sale, transfer: Transfer) -> bool:
    """Return whether the money counts for the payment, however late the bank reported it. A process's clock may be off
    by minutes."""
    return (transfer.at - world.beginning).total_seconds() < sale.order.at + _LATE_COUNTS - _CLOCKS_OFF


async def _judge_refund(world: "World", merchant: Merchant, sale: Sale, wish: RefundWish) -> None:
    answer = await merchant.insist("GET", f"/api/v1/refunds/{wish.refund_id}", None, None)
    if answer.status != 200:
        world.fault(f"{wish.refund_id} was answered, and is {answer.status} now")
        return
    refund = answer.json
    again = await merchant.insist("POST", "/api/v1/refunds", wish.body, wish.key)
    if again.status not in (200, 201) or again.json["refund_id"] != wish.refund_id:
        world.fault(f"{wish.refund_id} was answered, and to its key {again.status} {again.body!r} now")
    status = refund["status"]
    if status not in _REFUND_OVER and refund["pending_reason"] != "insufficient_balance":
        world.fault(f"{wish.refund_id} has not ended: {status}")
    if wish.cancelled and status != "cancelled":
        world.fault(f"{wish.refund_id} was cancelled, and is {status}")
    at_bank = [bank.refunds[wish.refund_id] for bank in world.banks.values() if wish.refund_id in bank.refunds]
    if sum(row.kopecks for row in at_bank) not in (0, wish.kopecks) or len(at_bank) > 1:
        world.fault(f"{wish.refund_id} of {wish.kopecks}: the banks have {at_bank}")
    ended = {RefundStatus.DONE: "completed", RefundStatus.REVERSED: "reversed", RefundStatus.FAILED: "failed"}
    said = ended.get(at_bank[0].status) if at_bank else None
    if (said or status) != status or (status in ("completed", "reversed") and not at_bank):
        world.fault(f"{wish.refund_id} is {status}, and at the bank {said}")
    before: Any = None
    told = merchant.receiver.of("refund_id", wish.refund_id)
    for number, each in enumerate(told, 1):
        if each.sequence != number:
            world.fault(f"{wish.refund_id}: event {number} is missing; {each.sequence} was told")
            return
        previous, present = each.body.get("previous_status", before), each.body["status"]
        if number > 1 and present not in _REFUND_NEXT.get(previous, set()):
            world.fault(f"{wish.refund_id}: told {previous} -> {present}")
        before = present
    if told and before != status:
        world.fault(f"{wish.refund_id} is {status}, and {before} was told last")
    del sale


async def _judge_payouts(world: "World", merchant: Merchant) -> None:
    """Check that each payout has ended, and that every move of it was reported."""
    answer = await merchant.insist("GET", "/api/v1/withdrawals?per_page=100", None, None)
    for payout in answer.json["data"]:
        if payout["status"] not in _PAYOUT_OVER:
            world.fault(f"{payout['id']} has not ended: {payout['status']}")
        told = merchant.receiver.of("withdrawal_id", payout["id"])
        before: Any = None
        for number, each in enumerate(told, 1):
            if (each.sequence, each.body["previous_status"]) != (number, before):
                world.fault(f"{payout['id']}: event {number} is {each.sequence}, after {each.body['previous_status']}")
            before = each.body["status"]
        if before != payout["status"]:
            world.fault(f"{payout['id']} is {payout['status']}, and {before} was told last")


async def _judge_balance(world: "World", merchant: Merchant) -> None:
    """Check that nothing waits, and that the transfers to the merchant's wallet are those on the chain, once each."""
    balance = await merchant.poll_balance()
    await merchant.statement.judge_end(balance)
    # Refunds that came back after the last settlement wait for the next one.
    reversed_ = [
        wish.kopecks
        for sale in merchant.sales
        for wish in sale.refunds
        for bank in world.banks.values()
        if wish.refund_id in bank.refunds and bank.refunds[wish.refund_id].status is RefundStatus.REVERSED
    ]
    if balance["reserved_usdt"] or balance["pending_rub"] * 100 > sum(reversed_):
        world.fault(f"merchant {merchant.number}: money still waits: {balance}")
    moved = [row for row in world.chain.final() if row.address == merchant.wallet]
    total = Decimal(sum(row.units for row in moved)) / 10**8
    if total != balance["total_withdrawn_usdt"]:
        world.fault(f"merchant {merchant.number}: {total} USDT came, said are {balance['total_withdrawn_usdt']}")
    operations = [row.signed.operation for row in moved]
    if len(set(operations)) != len(operations):
        world.fault(f"merchant {merchant.number}: a payout was sent twice: {operations}")
    world.counts["payouts"] += len(moved)
