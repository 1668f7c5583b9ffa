"""Journal entries of exchanges: pure constructors, one for each step, in both directions (ARCHITECTURE.md "Money").

           USDT to RUB                              RUB to USDT
received   chain -> exchanging, suspense, rounding  bank -> exchanging, suspense
given      stock -> remitting                       stock -> sending
delivered  remitting -> bank, for each part         (with completed)
completed  exchanging -> stock, available, rounding exchanging -> stock -> available, sending -> chain
lost                                                losses -> bank, when a payer's bank takes it back after that
failed     remitting -> stock, exchanging ->        sending -> stock, exchanging -> suspense
           suspense; as completed for the
           amount already delivered

The merchant is credited only at the end, so nothing has to be taken back from a balance that may already be spent.
"""

from collections.abc import Mapping
from datetime import datetime

from ..ledger import BalanceType, Currency, EntryKind, JournalEntry, journal_entry
from ..money import Rub
from .exchanges import Exchange, ExchangeStatus, held_units
from .funds import ExchangeTransfer
from .money import Shares, shares
from .payouts import PartStatus, PayoutPart, paid_out
from .returns import MoneyReturn
from .reversals import TakenBack

_K, _P, _S = EntryKind, BalanceType, ExchangeStatus

_OUTSIDE = {Currency.USDT: _P.CHAIN, Currency.RUB: _P.BANK}
_HELD = {Currency.USDT: _P.EXCHANGING_USDT, Currency.RUB: _P.EXCHANGING_RUB}
_SUSPENSE = {Currency.USDT: _P.SUSPENSE_USDT, Currency.RUB: _P.SUSPENSE}


def money_received(exchange: Exchange, transfer: ExchangeTransfer, at: datetime) -> JournalEntry:
    """Return the entry for a new transfer of the client: book it in the unit that adds the transfer."""
    postings = {
        _OUTSIDE[transfer.currency]: -transfer.amount,
        _HELD[transfer.currency]: transfer.counted,
        _SUSPENSE[transfer.currency]: transfer.suspended,
    }
    if transfer.rounded:
        postings[_P.ROUNDING] = transfer.rounded
    return _entry(_K.EXCHANGE_RECEIVED, exchange, at, postings, object_id=transfer.id)


def money_suspended(exchange: Exchange, released: int, at: datetime) -> JournalEntry | None:
    """Return the entry for the amount that an expired exchange releases (`FundsDecision.released`); None for zero."""
    currency = Currency.USDT if exchange.takes_usdt else Currency.RUB
    if not released:
        return None
    postings = {_HELD[currency]: -released, _SUSPENSE[currency]: released}
    return _entry(_K.EXCHANGE_SUSPENDED, exchange, at, postings)


def money_taken_back(exchange: Exchange, gone: TakenBack, at: datetime) -> JournalEntry:
    """Return the entry for transfers that the payer's bank took back: book it in the unit that saves the changes."""
    postings = {
        _P.BANK: sum(transfer.amount for transfer in gone.lost),
        _P.EXCHANGING_RUB: -gone.counted,
        _P.SUSPENSE: -gone.suspended,
        _P.LOSSES_RUB: -gone.loss,
    }
    return _entry(_K.EXCHANGE_TAKEN_BACK, exchange, at, postings, object_id=gone.lost[0].id)


def money_returned(exchange: Exchange, transfer: ExchangeTransfer, at: datetime) -> JournalEntry:
    """Return the entry for a transfer whose suspended money was returned to the client. An amount too small for the
    network is rounded away. If the payer's bank had already taken the money back, the return is a loss. Book it in the
    unit that resolves the transfer. Raises: ValueError for a transfer without a return."""
    sent, number = _return_of(transfer).amount, _return_of(transfer).number
    waited = sent if transfer.taken_back else transfer.suspended
    postings = {_waited_in(transfer): -waited, _OUTSIDE[transfer.currency]: sent}
    if waited != sent:
        postings[_P.ROUNDING] = waited - sent
    return _entry(_K.EXCHANGE_RETURNED, exchange, at, postings, object_id=transfer.id, revision=number)


def return_reversed(exchange: Exchange, transfer: ExchangeTransfer, at: datetime) -> JournalEntry:
    """Return the entry for a returned amount that came back to us: it is in suspense again, or it covers the loss if
    the payer's bank had also taken the money back. Raises: ValueError for a transfer without a return."""
    sent, number = _return_of(transfer).amount, _return_of(transfer).number
    postings = {_OUTSIDE[transfer.currency]: -sent, _waited_in(transfer): sent}
    return _entry(_K.EXCHANGE_SUSPENDED, exchange, at, postings, object_id=transfer.id, revision=number)


def _waited_in(transfer: ExchangeTransfer) -> BalanceType:
    return _P.LOSSES_RUB if transfer.taken_back else _SUSPENSE[transfer.currency]


def _return_of(transfer: ExchangeTransfer) -> MoneyReturn:
    if transfer.sent_back is None:
        raise ValueError(f"nothing of {transfer.id} is sent back")
    return transfer.sent_back


def money_given(exchange: Exchange, at: datetime) -> JournalEntry:
    """Return the entry that takes the client's payout from the stock: book it with the move to `rub_sending` or
    `usdt_sending`."""
    if exchange.takes_usdt:
        postings = {_P.STOCK_RUB: -exchange.amount_rub.kopecks, _P.REMITTING: exchange.amount_rub.kopecks}
    else:
        postings = {_P.STOCK_USDT: -exchange.amount_usdt.units, _P.SENDING: exchange.amount_usdt.units}
    return _entry(_K.EXCHANGE_GIVEN, exchange, at, postings)


def part_delivered(exchange: Exchange, part: PayoutPart, at: datetime) -> JournalEntry:
    """Return the entry for a delivered part of the RUB: book it in the unit that marks the part done.

    Raises ValueError for a part that is not done: money that may not have moved must not be booked as moved.
    """
    if part.status is not PartStatus.DONE:
        raise ValueError(f"{part.operation} is not done")
    postings = {_P.REMITTING: -part.amount.kopecks, _P.BANK: part.amount.kopecks}
    return _entry(_K.EXCHANGE_DELIVERED, exchange, at, postings, object_id=part.operation)


def exchange_completed(exchange: Exchange, at: datetime) -> JournalEntry:
    """Return the entry for the move to `completed`. For USDT to RUB, every part must already be booked as delivered."""
    split = shares(exchange)
    if exchange.takes_usdt:
        postings = {_P.EXCHANGING_USDT: -split.total.units, **_earned(split)}
    else:
        postings = {
            _P.EXCHANGING_RUB: -exchange.amount_rub.kopecks,
            _P.STOCK_RUB: exchange.amount_rub.kopecks,
            _P.SENDING: -split.client.units,
            _P.CHAIN: split.client.units,
            _P.STOCK_USDT: -split.merchant.units,
            _P.AVAILABLE: split.merchant.units,
        }
    return _entry(_K.EXCHANGE_COMPLETED, exchange, at, postings)


def failed_release(exchange: Exchange) -> int:
    """Return how much of the client's money goes to suspense if this exchange fails now, in the smallest unit of its
    currency: everything it holds, less the amount whose counter-value the client already has."""
    if exchange.status is _S.RUB_SENDING:
        return shares(exchange, _paid(exchange)).client.units
    return held_units(exchange)


def exchange_failed(exchange: Exchange, at: datetime) -> JournalEntry | None:
    """Return the entry for the move to `failed`; `exchange` is the record before the move. None if it holds no money.

    Raises ValueError while a part of the payout may still be sent.
    """
    held = held_units(exchange)
    if not held:
        return None
    back = failed_release(exchange)
    if not exchange.takes_usdt:
        postings = {_P.EXCHANGING_RUB: -held, _P.SUSPENSE: back}
        if exchange.status is _S.USDT_SENDING:
            postings |= {_P.SENDING: -exchange.amount_usdt.units, _P.STOCK_USDT: exchange.amount_usdt.units}
        return _entry(_K.EXCHANGE_FAILED, exchange, at, postings)
    postings = {_P.EXCHANGING_USDT: -held, _P.SUSPENSE_USDT: back}
    if exchange.status is _S.RUB_SENDING:
        paid = _paid(exchange)
        left = exchange.amount_rub - paid
        postings |= {_P.REMITTING: -left.kopecks, _P.STOCK_RUB: left.kopecks, **_earned(shares(exchange, paid))}
    return _entry(_K.EXCHANGE_FAILED, exchange, at, postings)


def _paid(exchange: Exchange) -> Rub:
    if any(part.status is PartStatus.SENT for part in exchange.parts):
        raise ValueError(f"{exchange.id}: a payout is under way")
    return paid_out(exchange.parts)


def _earned(split: Shares) -> dict[BalanceType, int]:
    return {
        _P.STOCK_USDT: split.stock.units,
        _P.AVAILABLE: split.merchant.units,
        _P.ROUNDING: split.rounding.units,
    }


def _entry(
    kind: EntryKind,
    exchange: Exchange,
    at: datetime,
    postings: Mapping[BalanceType, int],
    *,
    object_id: str | None = None,
    revision: int = 1,
) -> JournalEntry:
    return journal_entry(
        kind,
        object_id or exchange.id,
        account_id=exchange.account_id,
        mode=exchange.mode,
        at=at,
        postings=postings,
        revision=revision,
    )
