"""The effect of a client's money on an exchange: pure functions, so that every case is one row of a test
(docs/exchanges.md "Rules").

Deposits on chain and transfers by SBP follow the same rules, in the smallest unit of their currency. Every poll reports
the same money again, in any order: a transfer is identified by its source, and counted once.
"""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

import msgspec

from ..accounts.accounts import Mode
from ..ledger import Currency
from ..money import Rub, Usdt
from .exchanges import AWAITING, FINAL, NETWORK_STEP, Exchange, ExchangeStatus, ExchangeTrigger, asked_units, held_units
from .returns import (
    MOST_TRIES,
    UNDER_WAY,
    MoneyReturn,
    ReturnStatus,
    rub_return_operation,
    usdt_return_operation,
)

_S = ExchangeStatus
_T = ExchangeTrigger

FINALITY_WAIT = timedelta(minutes=5)
"""After `expires_at`, how long money that came in time may take to become final: TRON takes a minute."""

SUSPENDED_FOR = ("excess", "late", "underpaid", "failed", "not_awaited", *sorted(f"after_{status}" for status in FINAL))
"""All possible values of `reason`."""


class Incoming(msgspec.Struct, frozen=True, kw_only=True):
    """Money that was seen for an exchange. `source` identifies it forever: see `deposit_source`; for a bank's transfer
    it is the bank's id."""

    source: str
    amount: int
    """Units of 0.00000001 USDT, or kopecks."""
    at: datetime
    """When the block was made, or the bank received it."""
    is_final: bool = True
    """If not final, it may be reverted and does not count yet."""
    is_taken_back: bool = False
    """It came and was taken back: it no longer counts."""


class ExchangeTransfer(msgspec.Struct, frozen=True, kw_only=True):
    """One transfer of a client for an exchange, final and booked: `amount` is the sum of its four parts. Its id is
    unique for the exchange and the source, so that the same money is booked once however often it is reported."""

    id: str
    exchange_id: str
    account_id: str
    mode: Mode
    currency: Currency
    amount: int
    received_at: datetime
    counted: int = 0
    """Counts for the exchange."""
    suspended: int = 0
    """Waits for an operator."""
    rounded: int = 0
    """Above the requested amount and too small for the network to move, so it could never be returned."""
    taken_back: int = 0
    """Taken back by the payer's bank (all of it, or nothing)."""
    reason: str | None = None
    """Why a part is suspended."""
    resolved_at: datetime | None = None
    """When the suspended part was returned."""
    sent_back: MoneyReturn | None = None
    """The last attempt to return it."""
    came_by: str | None = None
    """Transaction of the USDT deposit."""
    went_by: str | None = None
    """The last transaction signed to return it, whatever its outcome."""
    return_tag: bytes | None = None
    """The vault's tag of destination and amount of the last return attempt."""
    version: int = 0


class FundsDecision(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a poll. A trigger without new transfers is caused by time."""

    trigger: ExchangeTrigger | None = None
    """Trigger that moves the exchange; None: no move."""
    transfers: tuple[ExchangeTransfer, ...] = ()
    """New transfers, each to be added and booked (`money_received`)."""
    received: int
    """Total that came in time, including the new transfers: the exchange's new received amount."""
    released: int = 0
    """Amount that the exchange held until now and releases: this much of its earlier transfers goes to suspense
    (`released_transfers`; booked by `money_suspended`)."""


def deposit_source(tx_hash: str, index: int) -> str:
    """Return the source of a deposit: its transaction and its position there."""
    return f"{tx_hash}:{index}"


def transfer_id(exchange_id: str, source: str) -> str:
    """Return the id of an ExchangeTransfer. All transfers of an exchange form one range of ids (`transfer_ids`)."""
    return f"{exchange_id}:{source}"


def transfer_source(transfer: ExchangeTransfer) -> str:
    """Return the source of the money: for RUB the bank's id of the transfer."""
    return transfer.id.removeprefix(f"{transfer.exchange_id}:")


def transfer_ids(exchange_id: str) -> tuple[str, str]:
    """Return the range of ids of an exchange's transfers."""
    return f"{exchange_id}:", f"{exchange_id};"


def judge_deposits(
    exchange: Exchange, deposits: Sequence[Incoming], now: datetime, booked: Collection[str] = ()
) -> FundsDecision:
    """Decide about all deposits seen at the address of an exchange; `booked` are the ids of its transfers so far.

    Only a successful poll may expire an exchange; a failed one decides nothing. A deposit counts if its block was made
    before `expires_at` and it is final when polled. From `expires_at` on, an exchange with too little money ends, and
    all its money goes to suspense; but if deposits in earlier blocks would be enough once final, it waits for up to
    FINALITY_WAIT. Raises ValueError for the other direction.
    """
    if not exchange.takes_usdt:
        raise ValueError(f"{exchange.id} takes no USDT")
    return _judge(exchange, deposits, now, booked)


def judge_payments(
    exchange: Exchange, payments: Sequence[Incoming], now: datetime, booked: Collection[str] = ()
) -> FundsDecision:
    """Decide in the same way about the transfers for the invoice of an exchange, RUB to USDT. Raises ValueError for the
    other direction."""
    if exchange.takes_usdt:
        raise ValueError(f"{exchange.id} takes no RUB")
    return _judge(exchange, payments, now, booked)


def with_received(exchange: Exchange, decision: FundsDecision) -> Exchange:
    """Return the exchange with the new received amount; call it before the move."""
    if exchange.takes_usdt:
        return msgspec.structs.replace(exchange, amount_usdt_received=Usdt(decision.received))
    return msgspec.structs.replace(exchange, amount_rub_received=Rub(decision.received))


def released_transfers(transfers: Sequence[ExchangeTransfer], amount: int, reason: str) -> tuple[ExchangeTransfer, ...]:
    """Return the changed transfers when `amount` of the counted money is suspended because the exchange ended without
    it, the latest first. Raises ValueError if less was counted."""
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
        # Money on top of a running exchange is included in its received amount; money after its end is not, because its
        # event has been sent.
        is_on_top = exchange.status is not _S.PENDING and not exchange.is_final
        more = sum(each.amount for each in fresh) if is_on_top else 0
        reason = "excess" if is_on_top else f"after_{exchange.status}" if exchange.is_final else "not_awaited"
        unapplied = tuple(_transfer(exchange, each, reason=reason) for each in fresh)
        return FundsDecision(transfers=unapplied, received=before + more)
    # The exchange still waits for money: split the new transfers into timely and late ones.
    in_time = [each for each in fresh if each.at < exchange.expires_at]
    late = tuple(_transfer(exchange, each, reason="late") for each in fresh if each.at >= exchange.expires_at)
    received = before + sum(each.amount for each in in_time)
    held, asked = held_units(exchange), asked_units(exchange)
    # Expired with too little money, and no deposit in a block can still complete it: release everything.
    if received < asked and now >= exchange.expires_at and not _is_coming(exchange, seen, asked - received, now):
        short = tuple(_transfer(exchange, each, reason="underpaid") for each in in_time)
        return FundsDecision(trigger=_T.LAPSED, transfers=short + late, received=received, released=held)
    # Count the timely transfers up to the requested amount, the oldest first; the rest is excess.
    counted: list[ExchangeTransfer] = []
    for each in in_time:
        part = min(each.amount, asked - held)
        held += part
        counted.append(_transfer(exchange, each, counted=part, reason="excess"))
    return FundsDecision(trigger=_next(exchange, held, asked), transfers=(*counted, *late), received=received)


def _is_coming(exchange: Exchange, seen: Sequence[Incoming], missing: int, now: datetime) -> bool:
    """Return whether the deposits sent in time are enough and only not final yet: the client has done its part."""
    by_source = {each.source: each for each in seen if not each.is_final and not each.is_taken_back}
    on_the_way = sum(each.amount for each in by_source.values() if each.at < exchange.expires_at)
    return on_the_way >= missing and now < exchange.expires_at + FINALITY_WAIT


def _next(exchange: Exchange, held: int, asked: int) -> ExchangeTrigger | None:
    if held == asked:
        return _T.FUNDED
    return _T.UNDERPAID if held and exchange.status is not _S.PARTIAL else None


def _fresh(exchange: Exchange, seen: Sequence[Incoming], booked: Collection[str]) -> list[Incoming]:
    """Return the final, unbooked money, each source once, the oldest first: independent of the order of the reports."""
    by_source = {each.source: each for each in seen if each.is_final and not each.is_taken_back and each.amount > 0}
    fresh = [each for each in by_source.values() if transfer_id(exchange.id, each.source) not in booked]
    return sorted(fresh, key=lambda each: (each.at, each.source))


def _transfer(exchange: Exchange, incoming: Incoming, *, counted: int = 0, reason: str) -> ExchangeTransfer:
    """Return the record of the transfer. If a part is counted, the excess is suspended, unless it is too small to
    send."""
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
        came_by=incoming.source.partition(":")[0] if exchange.takes_usdt else None,
    )


def returnable(transfer: ExchangeTransfer) -> int:
    """Return how much of it can be returned now: the suspended amount, rounded down to a multiple that the network can
    move; zero while a return is in progress."""
    back = transfer.sent_back
    is_going = back is not None and back.status in UNDER_WAY
    is_given_up = back is not None and back.number >= MOST_TRIES
    if transfer.resolved_at is not None or is_going or is_given_up:
        return 0
    step = NETWORK_STEP.units if transfer.currency is Currency.USDT else 1
    return transfer.suspended - transfer.suspended % step


def is_under_way(transfer: ExchangeTransfer) -> bool:
    """Return whether it is being returned."""
    return transfer.sent_back is not None and transfer.sent_back.status in UNDER_WAY


def with_return(
    transfer: ExchangeTransfer, now: datetime, *, address: str | None = None, sender: str | None = None
) -> ExchangeTransfer:
    """Return the transfer with a planned return. Raises: ValueError for a transfer that is not returnable."""
    amount = returnable(transfer)
    if not amount:
        raise ValueError(f"nothing of {transfer.id} can be sent back")
    number = 1 if transfer.sent_back is None else transfer.sent_back.number + 1
    planned = MoneyReturn(
        operation=(rub_return_operation if transfer.currency is Currency.RUB else usdt_return_operation)(
            transfer.id, number
        ),
        number=number,
        amount=amount,
        created_at=now,
        address=address,
        sender=sender,
    )
    return msgspec.structs.replace(transfer, sent_back=planned)


def is_return_of(transfer: ExchangeTransfer, operation: str) -> bool:
    """Return whether an operation is the present return attempt."""
    return transfer.sent_back is not None and operation == transfer.sent_back.operation


def returned(transfer: ExchangeTransfer, now: datetime) -> ExchangeTransfer:
    """Return the transfer after its suspended money was returned; the part that the network could not move is rounded
    away.

    Raises: ValueError for a transfer that was not returned.
    """
    back = transfer.sent_back
    if back is None or back.status is not ReturnStatus.RETURNED:
        raise ValueError(f"{transfer.id} was not sent back")
    dust = transfer.suspended - back.amount
    return msgspec.structs.replace(transfer, suspended=back.amount, rounded=transfer.rounded + dust, resolved_at=now)
