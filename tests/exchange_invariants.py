"""Invariants that tie exchanges to the books (docs/exchanges.md "Rules"), for tests/invariants.py."""

from collections import Counter
from collections.abc import Sequence

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.exchanges.exchanges import Exchange, ExchangeStatus, held_units
from cambist.core.domain.exchanges.funds import ExchangeTransfer
from cambist.core.domain.exchanges.money import shares
from cambist.core.domain.exchanges.payouts import paid_out
from cambist.core.domain.exchanges.returns import ReturnStatus
from cambist.core.domain.exchanges.reversals import LOST
from cambist.core.domain.ledger import SERVICE, BalanceType, Currency

S = ExchangeStatus
Sums = Counter[tuple[str, Mode, BalanceType]]

CLIENT_BALANCE_TYPES = (BalanceType.EXCHANGING_USDT, BalanceType.EXCHANGING_RUB, BalanceType.SUSPENSE_USDT)
SERVICE_BALANCE_TYPES = (
    BalanceType.REMITTING,
    BalanceType.SENDING,
    BalanceType.STOCK_RUB,
    BalanceType.STOCK_USDT,
    BalanceType.LOSSES_RUB,
)


def add_exchanges(sums: Sums, exchanges: Sequence[Exchange], transfers: Sequence[ExchangeTransfer]) -> None:
    """Add what all exchanges hold, have given, and have earned."""
    for exchange in exchanges:
        _add(sums, exchange)
    for transfer in transfers:
        balance_type = BalanceType.SUSPENSE_USDT if transfer.currency is Currency.USDT else BalanceType.SUSPENSE
        if transfer.resolved_at is None:
            sums[transfer.account_id, transfer.mode, balance_type] += transfer.suspended
        back = transfer.sent_back
        if transfer.taken_back and back is not None and back.status is ReturnStatus.RETURNED:
            sums[SERVICE, transfer.mode, BalanceType.LOSSES_RUB] -= back.amount
    for exchange in exchanges:
        sums[SERVICE, exchange.mode, BalanceType.LOSSES_RUB] -= _lost(exchange, transfers)


def _lost(exchange: Exchange, transfers: Sequence[ExchangeTransfer]) -> int:
    """Return the part of a completed RUB exchange's money that the payers' banks took back."""
    if exchange.takes_usdt or exchange.status is not S.COMPLETED:
        return 0
    counted = sum(transfer.counted for transfer in transfers if transfer.exchange_id == exchange.id)
    return exchange.amount_rub.kopecks - counted


def _add(sums: Sums, exchange: Exchange) -> None:
    mode, status = exchange.mode, exchange.status
    held = BalanceType.EXCHANGING_USDT if exchange.takes_usdt else BalanceType.EXCHANGING_RUB
    sums[exchange.account_id, mode, held] += held_units(exchange)
    if not exchange.takes_usdt:
        if status is S.USDT_SENDING:
            sums[SERVICE, mode, BalanceType.SENDING] += exchange.amount_usdt.units
            sums[SERVICE, mode, BalanceType.STOCK_USDT] -= exchange.amount_usdt.units
        if status is S.COMPLETED:
            sums[SERVICE, mode, BalanceType.STOCK_RUB] += exchange.amount_rub.kopecks
            sums[SERVICE, mode, BalanceType.STOCK_USDT] -= shares(exchange).total.units
            sums[exchange.account_id, mode, BalanceType.AVAILABLE] += shares(exchange).merchant.units
        return
    paid = paid_out(exchange.parts)
    sums[SERVICE, mode, BalanceType.STOCK_RUB] -= paid.kopecks
    if status is S.RUB_SENDING:
        sums[SERVICE, mode, BalanceType.REMITTING] += exchange.amount_rub.kopecks - paid.kopecks
        sums[SERVICE, mode, BalanceType.STOCK_RUB] -= exchange.amount_rub.kopecks - paid.kopecks
    if status in (S.COMPLETED, S.FAILED):
        split = shares(exchange, paid)
        sums[SERVICE, mode, BalanceType.STOCK_USDT] += split.stock.units
        sums[exchange.account_id, mode, BalanceType.AVAILABLE] += split.merchant.units


def check_exchanges(exchanges: Sequence[Exchange], transfers: Sequence[ExchangeTransfer]) -> None:
    """Check that a client has one active exchange, that all money received was counted, suspended or rounded exactly
    once, and that nobody is paid more than the quote, or paid for less than the amount required."""
    slots = Counter(exchange.active_slot for exchange in exchanges if exchange.active_slot is not None)
    assert not [slot for slot, times in slots.items() if times > 1]
    for exchange in exchanges:
        assert (exchange.active_slot is None) is exchange.is_final is (exchange.completed_at is not None), exchange
        mine = [transfer for transfer in transfers if transfer.exchange_id == exchange.id]
        assert all(each.amount == each.counted + each.suspended + each.rounded + each.taken_back for each in mine)
        counted = sum(each.counted for each in mine)
        if exchange.parts:
            assert sum(part.amount.kopecks for part in exchange.parts) == exchange.amount_rub.kopecks, exchange
        if not exchange.is_final:
            assert counted == held_units(exchange), exchange
        elif exchange.status in (S.EXPIRED, S.CANCELLED):
            assert counted == 0, exchange
        elif exchange.takes_usdt:
            kept = shares(exchange, paid_out(exchange.parts))
            assert counted == kept.total.units - kept.client.units, exchange
        else:
            lost = sum(each.taken_back for each in mine if each.reason == LOST)
            made_with = exchange.amount_rub.kopecks if exchange.status is S.COMPLETED else 0
            # Money that was lost may have counted before, or may have been above the required amount.
            assert made_with - lost <= counted <= made_with or (lost and not made_with), exchange
