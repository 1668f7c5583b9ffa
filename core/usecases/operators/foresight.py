"""Preview of an operator action: the amounts that it would move and the balance after it, shown before the operator
confirms. Other processes continue meanwhile, so the figures are a snapshot. The action itself uses the state at the
moment it runs."""

from datetime import datetime

import msgspec

from ....ports.bundle import Ports
from ....ports.faults import NotConfigured
from ....ports.storage import Unit
from ...domain.accounts.accounts import Mode
from ...domain.ledger import BalanceType, Currency, currency_of
from ...domain.money import Rub, Usdt
from ...domain.payments.payments import Payment
from ...domain.refunds.refunds import Refund
from ...domain.settlement.rates import KnownRate
from ...domain.settlement.withdrawals import payable
from ..accounts.accounts import find_account
from ..ledger.ledger import balance_types
from ..refunds.money import market_value
from ..refunds.waiting import kept_for_refunds
from ..settlement.settlement import batch_asked
from .dashboard import pending_before
from .settlement import due_by_account


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """Balance of a merchant's ledger account and the amount that an action adds to it, in the smallest unit of its
    currency."""

    balance_type: BalanceType
    currency: Currency
    holds: int
    adds: int
    is_covered: bool = True
    """False when the balance is lower than the amount to withdraw. The action then withdraws nothing yet."""


class DuePayout(msgspec.Struct, frozen=True, kw_only=True):
    """Preview of a payout of a merchant's available USDT, if it were requested now."""

    amount: Usdt
    """Zero when no amount can be sent on the network, or no network is configured."""
    available: Usdt
    kept: Usdt
    """Amount reserved for refunds that wait for money."""
    wallet: str | None


class DueSettlement(msgspec.Struct, frozen=True, kw_only=True):
    """Preview of a settlement of a mode, if it were requested now."""

    mode: Mode
    payments: int
    merchants: int
    amount: Rub
    """Sum of the waiting payments, less their refunds."""
    rate: str | None
    """The last market rate. The settlement fetches its own rate. None when no rate is known."""


async def foresee_balance_type(ports: Ports, account_id: str, mode: Mode, balance_type: BalanceType, adds: int) -> Held:
    """Return the balance of a merchant's ledger account before an action adds this amount to it."""
    async with ports.storage.unit() as unit:
        return await _held(unit, account_id, mode, balance_type, adds)


async def foresee_refund(ports: Ports, refund: Refund) -> tuple[Payment | None, Held | None]:
    """Return the payment of a refund that has not taken its money yet, and the ledger account that pays for it."""
    async with ports.storage.unit() as unit:
        payment = await unit[Payment].get(refund.payment_id)
        if payment is None:
            return None, None
        if payment.settlement_id is None:
            balance_type, takes = BalanceType.PENDING, refund.amount.kopecks
        else:
            balance_type, takes = BalanceType.AVAILABLE, (await market_value(unit, payment, refund)).units
        held = await _held(unit, refund.account_id, refund.mode, balance_type, -takes)
        account = await find_account(unit, refund.account_id)
        overdraft = account.settings.refund_overdraft_usdt.units if balance_type is BalanceType.AVAILABLE else 0
        return payment, msgspec.structs.replace(held, is_covered=held.holds + overdraft >= takes)


async def foresee_payout(ports: Ports, account_id: str, mode: Mode) -> DuePayout:
    """Return what `pay_out_now` would pay. Raises: Refusal ACCOUNT_NOT_FOUND."""
    async with ports.storage.unit() as unit:
        account = await find_account(unit, account_id)
        kept = await kept_for_refunds(unit, account, mode)
        available = Usdt((await balance_types(unit, account_id, mode)).get(BalanceType.AVAILABLE, 0))
    try:
        step = ports.senders.of_mode(mode).capabilities.step
    except NotConfigured:
        amount = Usdt(0)
    else:
        amount = payable(available - kept, step)
    return DuePayout(amount=amount, available=available, kept=kept, wallet=account.settings.payout_wallet)


async def foresee_settlement(ports: Ports, mode: Mode, cutoff: datetime | None) -> DueSettlement:
    """Return what `settle_asked` would settle with the same `cutoff`."""
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


async def _held(unit: Unit, account_id: str, mode: Mode, balance_type: BalanceType, adds: int) -> Held:
    holds = (await balance_types(unit, account_id, mode)).get(balance_type, 0)
    return Held(balance_type=balance_type, currency=currency_of(balance_type), holds=holds, adds=adds)
