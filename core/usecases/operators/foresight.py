"""What an act is about to move, and what will be left: read before an operator confirms it. Others go on meanwhile, so
these are numbers of the moment; the act itself takes what there is when it is done."""

from datetime import datetime

import msgspec

from ....ports.bundle import Ports
from ....ports.faults import NotConfigured
from ....ports.storage import Unit
from ...domain.accounts.accounts import Mode
from ...domain.ledger import Currency, Purse, currency_of
from ...domain.money import Rub, Usdt
from ...domain.payments.payments import Payment
from ...domain.refunds.refunds import Refund
from ...domain.settlement.rates import KnownRate
from ...domain.settlement.withdrawals import payable
from ..accounts.accounts import find_account
from ..ledger.ledger import purses
from ..refunds.money import market_value
from ..refunds.waiting import kept_for_refunds
from ..settlement.settlement import batch_asked
from .dashboard import pending_before
from .settlement import due_by_account


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """What a merchant's purse holds, and what an act adds to it, in the smallest part of its currency."""

    purse: Purse
    currency: Currency
    holds: int
    adds: int
    is_covered: bool = True
    """False: there is less than is to be taken, so that nothing is taken yet."""


class DuePayout(msgspec.Struct, frozen=True, kw_only=True):
    """What a payout asked for now would take of a merchant's available USDT."""

    amount: Usdt
    """Zero: there is nothing that the network can move, or no network."""
    available: Usdt
    kept: Usdt
    """For refunds that wait for money."""
    wallet: str | None


class DueSettlement(msgspec.Struct, frozen=True, kw_only=True):
    """What a settlement of a mode asked for now would take."""

    mode: Mode
    payments: int
    merchants: int
    amount: Rub
    """What waits of them, without what refunds took."""
    rate: str | None
    """The last market rate; the settlement fetches its own. None: none is known."""


async def foresee_purse(ports: Ports, account_id: str, mode: Mode, purse: Purse, adds: int) -> Held:
    """The merchant's purse before an act that adds so much to it."""
    async with ports.storage.unit() as unit:
        return await _held(unit, account_id, mode, purse, adds)


async def foresee_refund(ports: Ports, refund: Refund) -> tuple[Payment | None, Held | None]:
    """Of a refund that takes its money yet: the payment, and the purse that pays."""
    async with ports.storage.unit() as unit:
        payment = await unit[Payment].get(refund.payment_id)
        if payment is None:
            return None, None
        if payment.settlement_id is None:
            purse, takes = Purse.PENDING, refund.amount.kopecks
        else:
            purse, takes = Purse.AVAILABLE, (await market_value(unit, payment, refund)).units
        held = await _held(unit, refund.account_id, refund.mode, purse, -takes)
        account = await find_account(unit, refund.account_id)
        overdraft = account.settings.refund_overdraft_usdt.units if purse is Purse.AVAILABLE else 0
        return payment, msgspec.structs.replace(held, is_covered=held.holds + overdraft >= takes)


async def foresee_payout(ports: Ports, account_id: str, mode: Mode) -> DuePayout:
    """What `pay_out_now` would take. Raises: Refusal ACCOUNT_NOT_FOUND."""
    async with ports.storage.unit() as unit:
        account = await find_account(unit, account_id)
        kept = await kept_for_refunds(unit, account, mode)
        available = Usdt((await purses(unit, account_id, mode)).get(Purse.AVAILABLE, 0))
    try:
        step = ports.senders.of_mode(mode).capabilities.step
    except NotConfigured:
        amount = Usdt(0)
    else:
        amount = payable(available - kept, step)
    return DuePayout(amount=amount, available=available, kept=kept, wallet=account.settings.payout_wallet)


async def foresee_settlement(ports: Ports, mode: Mode, cutoff: datetime | None) -> DueSettlement:
    """What `settle_asked` would settle; `cutoff` as it has it."""
    _, until = batch_asked(ports, mode, cutoff)
    async with ports.storage.unit() as unit:
        due = await due_by_account(unit, mode, until)
        rate = await unit[KnownRate].get(mode)
    async with ports.storage.snapshot() as seen:
        waiting = await pending_before(seen, until, ports.clock.now())
    return DueSettlement(
        mode=mode,
        payments=sum(due.values()),
        merchants=len(due),
        amount=waiting[mode].expected,
        rate=None if rate is None else rate.rate,
    )


async def _held(unit: Unit, account_id: str, mode: Mode, purse: Purse, adds: int) -> Held:
    holds = (await purses(unit, account_id, mode)).get(purse, 0)
    return Held(purse=purse, currency=currency_of(purse), holds=holds, adds=adds)
