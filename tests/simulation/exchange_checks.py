"""Final checks of exchanges: a client who sent money got the other currency, once, or a return. Compares with the books
of the chain and the banks (docs/reliability.md "What is checked")."""

from typing import TYPE_CHECKING

from cambist.core.domain.exchanges.funds import ExchangeTransfer
from cambist.core.usecases.exchanges.returns import exchange_money
from cambist.ports.remittances import RemittanceStatus
from tests.simulation.exchanges import FINAL, Deal, Desk

if TYPE_CHECKING:
    from datetime import datetime

    from cambist.ports.bank import Transfer
    from tests.simulation.merchants import Merchant
    from tests.simulation.outside import TransferRow
    from tests.simulation.remittances import RemittanceRow
    from tests.simulation.world import World

_HOLD = 300.0
"""Seconds for which RUB are held before USDT are sent for them (docs/decisions.md "Invoices and holds")."""
_DUST = 100
"""Units of USDT that no network moves, of one transfer."""


async def judge_exchanges(world: "World", merchant: "Merchant", desk: Desk) -> None:
    """Find all faults of a merchant's exchanges, and report them to the world."""
    phones = {deal.swap.phone for deal in desk.deals}
    for bank in world.banks.values():
        for operation in bank.overlapping:
            if bank.remittances[operation].phone in phones:
                world.fault(f"{bank.name}: {operation} was begun while another one to its client was under way")
    for deal in desk.deals:
        if len(deal.ids) > 1:
            world.fault(f"exchange {deal.swap.number}: one key, several exchanges: {sorted(deal.ids)}")
        if deal.exchange_id is None:
            continue
        status = await desk.look(deal)
        if status not in FINAL:
            world.fault(f"{deal.exchange_id} has not ended: {status}")
            continue
        if deal.cancelled and status != "cancelled":
            world.fault(f"{deal.exchange_id} was called off, and is {status}")
        told = merchant.receiver.of("exchange_id", deal.exchange_id)
        if [(each.sequence, each.body["status"]) for each in told] != [(1, status)]:
            world.fault(f"{deal.exchange_id} is {status}, and {[each.body['status'] for each in told]} was told")
        _, money = await exchange_money(world.office, deal.exchange_id)
        if deal.swap.takes_usdt:
            _judge_usdt(world, deal, status, money)
        else:
            _judge_rub(world, deal, status, money)


def _judge_usdt(world: "World", deal: Deal, status: str, money: list[ExchangeTransfer]) -> None:
    """Check that the USDT received were exchanged for RUB, returned to the client, or wait for an operator."""
    came = sum(row.units for row in world.deposits.final(deal.address or ""))
    back = sum(row.units for row in world.chain.final() if row.address == deal.wallet)
    if sum(each.amount for each in money) != came:
        world.fault(f"{deal.exchange_id}: {came} units came, known are {[each.amount for each in money]}")
    in_time = [row for row in world.deposits.final(deal.address or "") if _is_in_time(deal, row.included_at)]
    if status == "completed" and sum(row.units for row in in_time) < deal.asked:
        world.fault(
            f"{deal.exchange_id} is completed, and {[row.units for row in in_time]} of {deal.asked} came in time"
        )
    rows = [row for bank in world.banks.values() for row in bank.remittances.values() if row.phone == deal.swap.phone]
    paid, quoted = _paid(world, deal, status, rows)
    used = deal.asked * paid // quoted if quoted else 0
    waiting = sum(each.suspended for each in money if each.resolved_at is None)
    dust = came - back - waiting - used
    if not 0 <= dust <= _DUST * len(money):
        world.fault(
            f"{deal.exchange_id} is {status}: {came} units came, {used} were paid for, {back} went back, {waiting} wait"
        )


def _paid(world: "World", deal: Deal, status: str, rows: "list[RemittanceRow]") -> tuple[int, int]:
    """Return the kopecks that the client received and the kopecks promised."""
    quoted = deal.promised
    done = sum(row.kopecks for row in rows if row.status is RemittanceStatus.DONE)
    if any(row.status is RemittanceStatus.PROCESSING for row in rows):
        world.fault(f"{deal.exchange_id} is {status}, and RUB are on their way")
    if done > quoted or (done == quoted) is not (status == "completed"):
        world.fault(f"{deal.exchange_id} is {status}: {done} of {quoted} kopecks came to the client")
    return done, quoted


def _judge_rub(world: "World", deal: Deal, status: str, money: list[ExchangeTransfer]) -> None:
    """Check that the RUB received, and not taken back by the payer's bank, were exchanged for USDT, returned, or wait
    for an operator."""
    rows = [bank.invoices[deal.invoice] for bank in world.banks.values() if deal.invoice in bank.invoices]
    transfers = [each for row in rows for each in row.transfers]
    kept = sum(each.amount_kopecks for each in transfers if not each.taken_back)
    back = sum(bank.sent_back(deal.invoice) for bank in world.banks.values())
    got = [row for row in world.chain.final() if row.address == deal.wallet]
    if len(got) != (status == "completed") or sum(row.units for row in got) != (deal.promised if got else 0):
        world.fault(f"{deal.exchange_id} is {status}: {[row.units for row in got]} of {deal.promised} units were sent")
    if sorted(each.amount for each in money) != sorted(each.amount_kopecks for each in transfers):
        unseen = [each for each in transfers if each.taken_back]  # it may have come and gone between two polls
        if len(money) + len(unseen) < len(transfers):
            world.fault(f"{deal.exchange_id}: {len(transfers)} transfers came, known are {money}")
    in_time = [each for each in transfers if _is_in_time(deal, each.at)]
    if got and sum(each.amount_kopecks for each in in_time) < deal.asked:
        world.fault(f"{deal.exchange_id} is completed, and {[each.amount_kopecks for each in in_time]} came in time")
    _judge_hold(world, deal, in_time, got)
    waiting = sum(each.suspended for each in money if each.resolved_at is None)
    used = deal.asked if status == "completed" else 0
    # Money that the payer's bank takes back after it was exchanged, or after its return was ordered, is lost.
    lost = any(each.taken_back for each in transfers) and bool(used or back)
    if (kept - back > used + waiting) or (not lost and kept - back != used + waiting):
        world.fault(f"{deal.exchange_id} is {status}: {kept} kopecks came, {back} went back, {waiting} wait")


def _judge_hold(world: "World", deal: Deal, transfers: "list[Transfer]", got: "list[TransferRow]") -> None:
    """Check that USDT are sent once the RUB were held for long enough, by clocks that may be off."""
    came, enough = 0, None
    for each in sorted(transfers, key=lambda transfer: transfer.at):
        came += each.amount_kopecks
        enough = each.at if enough is None and came >= deal.asked else enough
    slack = 5.0 + 2 * world.plan.clocks_off
    for row in got:
        if enough is not None and row.included_at is not None:
            held = (row.included_at - enough).total_seconds()
            if held < _HOLD - slack:
                world.fault(f"{deal.exchange_id}: USDT were sent {held:.0f} s after the RUB came")


def _is_in_time(deal: Deal, at: "datetime | None") -> bool:
    return at is not None and deal.expires_at is not None and at < deal.expires_at
