"""What a client brings for an exchange, and what follows from it: decided purely, so that every case is one row of a
test (DECISIONS 6).

Deposits on chain and transfers by SBP are judged alike, in the smallest part of their currency. What is judged is told
again at every look, in any order: a transfer is known by its source for ever, and counted once.
"""

from collections.abc import Collection, Sequence
from datetime import datetime

import msgspec

from .accounts import Mode
from .exchanges import AWAITING, NETWORK_STEP, Exchange, ExchangeStatus, asked_units, held_units
from .ledger import Currency
from .money import Rub, Usdt

_S = ExchangeStatus


class Incoming(msgspec.Struct, frozen=True, kw_only=True):
    """Money that was seen to come for an exchange. `source` names it for ever: see `deposit_source`; of a bank's
    transfer it is the bank's id."""

    source: str
    amount: int
    """Units of 0.00000001 USDT, or kopecks."""
    at: datetime
    """When the block was made, or the bank got it."""
    is_final: bool = True
    """What is not may be taken back: it counts for nothing yet."""


class ExchangeTransfer(msgspec.Struct, frozen=True, kw_only=True):
    """One transfer that a client made for an exchange, final and booked: `amount` is the sum of the three parts. Its id
    is unique for the exchange and the source, so that the same money is booked once however often it is told of."""

    id: str
    exchange_id: str
    account_id: str
    mode: Mode
    currency: Currency
    amount: int
    received_at: datetime
    counted: int = 0
    """For the exchange."""
    suspended: int = 0
    """Waits for an operator."""
    rounded: int = 0
    """Beyond what was asked and less than the network can move, so that it could never be sent back."""
    reason: str | None = None
    """Why something is suspended."""
    resolved_at: datetime | None = None
    """When an operator was done with what is suspended."""
    version: int = 0


class FundsDecision(msgspec.Struct, frozen=True, kw_only=True):
    """What to do. A status without new transfers is time's doing."""

    status: ExchangeStatus | None = None
    """Where the exchange moves; None: it stays."""
    transfers: tuple[ExchangeTransfer, ...] = ()
    """New ones, to be added and booked each (`money_received`)."""
    received: int = 0
    """All that came in time, those new ones included: what the exchange now says it received."""
    released: int = 0
    """What it held until now and holds no more: so much of its earlier transfers goes to suspense
    (`released_transfers`; booked by `money_suspended`)."""


def deposit_source(tx_hash: str, index: int) -> str:
    """What names a deposit: its transaction and its place there."""
    return f"{tx_hash}:{index}"


def transfer_id(exchange_id: str, source: str) -> str:
    """The id of an ExchangeTransfer. All of an exchange are one range of ids (`transfer_ids`)."""
    return f"{exchange_id}:{source}"


def transfer_ids(exchange_id: str) -> tuple[str, str]:
    """The range of ids of an exchange's transfers."""
    return f"{exchange_id}:", f"{exchange_id};"


def judge_deposits(
    exchange: Exchange, deposits: Sequence[Incoming], now: datetime, booked: Collection[str] = ()
) -> FundsDecision:
    """What follows from all deposits seen at the address of an exchange; `booked` are the ids of its transfers so far.

    Only what was seen may expire an exchange: a look that failed decides nothing. A deposit counts when its block was
    made before `expires_at` and it is final at a look; whatever is missing at a look from `expires_at` on, in a block
    or not, ends the exchange, and all that came is suspense. Raises ValueError for the other direction.
    """
    if not exchange.takes_usdt:
        raise ValueError(f"{exchange.id} takes no USDT")
    return _judge(exchange, deposits, now, booked)


def judge_payments(
    exchange: Exchange, payments: Sequence[Incoming], now: datetime, booked: Collection[str] = ()
) -> FundsDecision:
    """The same of the transfers for the invoice of an exchange, RUB to USDT. Raises ValueError for the other
    direction."""
    if exchange.takes_usdt:
        raise ValueError(f"{exchange.id} takes no RUB")
    return _judge(exchange, payments, now, booked)


def with_received(exchange: Exchange, decision: FundsDecision) -> Exchange:
    """The exchange that knows what came; to be done before it is moved."""
    if exchange.takes_usdt:
        return msgspec.structs.replace(exchange, amount_usdt_received=Usdt(decision.received))
    return msgspec.structs.replace(exchange, amount_rub_received=Rub(decision.received))


def released_transfers(transfers: Sequence[ExchangeTransfer], amount: int, reason: str) -> tuple[ExchangeTransfer, ...]:
    """Those transfers of an exchange that change when `amount` of what was counted is suspended, the latest first: it
    ended without that money. Raises ValueError when less was counted."""
    changed: list[ExchangeTransfer] = []
    for transfer in sorted(transfers, key=lambda each: (each.received_at, each.id), reverse=True):
        part = min(transfer.counted, amount)
        if part:
            amount -= part
            counted, suspended = transfer.counted - part, transfer.suspended + part
            changed.append(msgspec.structs.replace(transfer, counted=counted, suspended=suspended, reason=reason))
    if amount:
        raise ValueError("more is released than was counted")
    return tuple(changed)


def _judge(exchange: Exchange, seen: Sequence[Incoming], now: datetime, booked: Collection[str]) -> FundsDecision:
    fresh = _fresh(exchange, seen, booked)
    before = exchange.amount_usdt_received.units if exchange.takes_usdt else exchange.amount_rub_received.kopecks
    if exchange.status not in AWAITING:
        # What comes on top while the exchange is under way is shown with it; what comes after it is not: its event
        # has been sent.
        is_on_top = exchange.status is not _S.PENDING and not exchange.is_final
        more = sum(each.amount for each in fresh) if is_on_top else 0
        reason = "excess" if is_on_top else f"after_{exchange.status}" if exchange.is_final else "not_awaited"
        stray = tuple(_transfer(exchange, each, reason=reason) for each in fresh)
        return FundsDecision(transfers=stray, received=before + more)
    in_time = [each for each in fresh if each.at < exchange.expires_at]
    late = tuple(_transfer(exchange, each, reason="late") for each in fresh if each.at >= exchange.expires_at)
    received = before + sum(each.amount for each in in_time)
    held, asked = held_units(exchange), asked_units(exchange)
    if received < asked and now >= exchange.expires_at:
        short = tuple(_transfer(exchange, each, reason="underpaid") for each in in_time)
        return FundsDecision(status=_S.EXPIRED, transfers=short + late, received=received, released=held)
    counted: list[ExchangeTransfer] = []
    for each in in_time:
        part = min(each.amount, asked - held)
        held += part
        counted.append(_transfer(exchange, each, counted=part, reason="excess"))
    return FundsDecision(status=_next(exchange, held, asked), transfers=(*counted, *late), received=received)


def _next(exchange: Exchange, held: int, asked: int) -> ExchangeStatus | None:
    if held == asked:
        return _S.USDT_RECEIVED if exchange.takes_usdt else _S.RUB_RECEIVED
    return _S.PARTIAL if held and exchange.status is not _S.PARTIAL else None


def _fresh(exchange: Exchange, seen: Sequence[Incoming], booked: Collection[str]) -> list[Incoming]:
    """What is final and not booked, each once, the oldest first: the same whatever order it was told in."""
    by_source = {each.source: each for each in seen if each.is_final and each.amount > 0}
    fresh = [each for each in by_source.values() if transfer_id(exchange.id, each.source) not in booked]
    return sorted(fresh, key=lambda each: (each.at, each.source))


def _transfer(exchange: Exchange, incoming: Incoming, *, counted: int = 0, reason: str) -> ExchangeTransfer:
    """The record of it. Of a counted one only what is beyond is suspended, unless nobody could send so little."""
    beyond = incoming.amount - counted
    is_dust = exchange.takes_usdt and reason == "excess" and 0 < beyond < NETWORK_STEP.units
    suspended = 0 if is_dust else beyond
    return ExchangeTransfer(
        id=transfer_id(exchange.id, incoming.source),
        exchange_id=exchange.id,
        account_id=exchange.account_id,
        mode=exchange.mode,
        currency=Currency.USDT if exchange.takes_usdt else Currency.RUB,
        amount=incoming.amount,
        received_at=incoming.at,
        counted=counted,
        suspended=suspended,
        rounded=beyond - suspended,
        reason=reason if suspended else None,
    )
