"""Moves of an exchange, with their ledger entries and, at a final status, their event. Call them in the unit that saves
the exchange (docs/exchanges.md "How it ends", "Rules"; docs/webhooks.md "Events").
"""

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Literal

import msgspec

from ....ports.bundle import Ports
from ....ports.deposits import LateDeposits
from ....ports.faults import Stale
from ....ports.storage import Between, Unit
from ...domain.days import iso
from ...domain.exchanges.entries import (
    exchange_failed,
    failed_release,
    money_received,
    money_suspended,
    money_taken_back,
)
from ...domain.exchanges.exchanges import (
    Exchange,
    ExchangeStatus,
    ExchangeTrigger,
    asked_units,
    moved_to,
    shown_received,
)
from ...domain.exchanges.funds import (
    ExchangeTransfer,
    Incoming,
    judge_deposits,
    judge_payments,
    released_transfers,
    transfer_ids,
    with_received,
)
from ...domain.exchanges.reversals import judge_taken_back
from ...domain.money import Rub
from ...domain.payloads import ExchangePayload
from ...domain.webhooks.events import EventType
from ..common.encrypted import deposit_address, exchange_fits, open_exchange_phone
from ..common.schedule import FollowUp
from ..ledger.ledger import post
from ..webhooks.outbox import announce_of

WATCH_EXCHANGE = FollowUp("exchange.watch")
"""The job that follows an exchange until its end, and for some hours after it."""

RACES = ("exchange_transfers_id", "journal_id")
"""Unique rules whose Conflict means, in a unit that moves an exchange, that another unit moved it first. The unit is
then retried.
"""

log = logging.getLogger("cambist.exchanges")

_BATCH = 200
_S = ExchangeStatus
_T = ExchangeTrigger


async def watch_again(ports: Ports, unit: Unit, exchange_id: str) -> None:
    """Run the watch at once, and plan one anew for an exchange that is no longer watched."""
    now = ports.clock.now()
    await WATCH_EXCHANGE.hurry(unit, exchange_id, now)
    await WATCH_EXCHANGE.keep(unit, exchange_id, now, now)


async def read_exchange(unit: Unit, exchange_id: str) -> Exchange:
    """Return an exchange that existed a moment ago. Raises: Stale when it was deleted with the account's test data."""
    exchange = await unit[Exchange].get(exchange_id)
    if exchange is None:
        raise Stale(f"{exchange_id} is gone")
    return exchange


def is_as_made(ports: Ports, exchange: Exchange) -> bool:
    """Return whether the exchange still has the amounts and destinations that it was made with, and log an error
    otherwise. Check this before anything is sent.
    """
    if exchange_fits(ports.vault, exchange):
        return True
    log.error("exchange %s is not what the vault tagged: nothing is sent, and an operator is to look", exchange.id)
    return False


async def transfers_of(unit: Unit, exchange_id: str) -> list[ExchangeTransfer]:
    """Return all transfers booked for an exchange. An address may receive any number of transfers, so read in
    batches.
    """
    low, high = transfer_ids(exchange_id)
    found: list[ExchangeTransfer] = []
    while True:
        batch = await unit[ExchangeTransfer].find(id=Between(low, high), limit=_BATCH, quick=True)
        found += batch
        if len(batch) < _BATCH:
            return found
        low = f"{batch[-1].id}\x01"


async def enter_funds(ports: Ports, unit: Unit, exchange: Exchange, seen: Sequence[Incoming]) -> Exchange:
    """Apply the transfers seen and the current time: book new transfers and move the exchange. Return the exchange as
    saved; write nothing when nothing is new.
    """
    now = ports.clock.now()
    known = await transfers_of(unit, exchange.id)
    # First handle RUB that the payer's bank took back. One unit judges either these or new transfers.
    gone = judge_taken_back(exchange, seen, known)
    if gone is not None:
        for changed in gone.changed:
            unit[ExchangeTransfer].save(changed)
        post(unit, money_taken_back(exchange, gone, now))
        if exchange.is_final:
            return exchange
        less = msgspec.structs.replace(exchange, amount_rub_received=Rub(gone.received))
        if less.status is _S.RUB_RECEIVED and gone.held < asked_units(less):
            return await move(ports, unit, less, _T.TAKEN_BACK)
        return unit[Exchange].save(less)
    # Then book the new transfers, and count them for the exchange.
    judge = judge_deposits if exchange.takes_usdt else judge_payments
    decision = judge(exchange, seen, now - _lag(ports, exchange), {transfer.id for transfer in known})
    for transfer in decision.transfers:
        unit[ExchangeTransfer].add(transfer)
        post(unit, money_received(exchange, transfer, now))
    after = with_received(exchange, decision)
    if decision.trigger is None:
        return exchange if after == exchange else unit[Exchange].save(after)
    # The exchange moves. Money that it does not use goes to suspense.
    entry = money_suspended(exchange, decision.released, now)
    if entry is not None:
        await _release(unit, exchange, known, decision.released, "underpaid")
        post(unit, entry)
    return await move(ports, unit, after, decision.trigger)


async def _release(unit: Unit, exchange: Exchange, known: Sequence[ExchangeTransfer], amount: int, reason: str) -> None:
    """Release `amount` of the exchange's counted transfers to suspense. The caller saves the exchange in the same unit.

    Raises: ValueError when less was counted. If another unit moved the exchange after this one had read it, `known` is
    newer than the exchange: then nothing is released, and the caller's commit is Stale.
    """
    try:
        changed = released_transfers(known, amount, reason)
    except ValueError:
        present = await unit[Exchange].get(exchange.id)
        if present is not None and present.version == exchange.version:
            raise
        return
    for transfer in changed:
        unit[ExchangeTransfer].save(transfer)


def _lag(ports: Ports, exchange: Exchange) -> timedelta:
    """Return the lag of the watcher: all transfers older than this are seen. Expiry uses that moment instead of the
    clock.
    """
    watcher = ports.deposits.watchers.get(exchange.watcher or "")
    return watcher.lag if isinstance(watcher, LateDeposits) else timedelta(0)


async def move(
    ports: Ports, unit: Unit, exchange: Exchange, trigger: ExchangeTrigger, failure: str | None = None
) -> Exchange:
    """Save a move of the exchange, with its event if it is the final one. The caller books the money.

    Raises: IllegalMove.
    """
    after = moved_to(exchange, trigger, ports.clock.now(), failure)
    if after.is_final:
        await _announce(ports, unit, after, exchange.status)
    return unit[Exchange].save(after)


async def fail(ports: Ports, unit: Unit, exchange: Exchange, failure: str) -> Exchange:
    """Fail an exchange that cannot be completed. The client's money, less the part that was paid out, waits in suspense
    for an operator. Raises: IllegalMove; ValueError while a part of its payout may still be sent.
    """
    now = ports.clock.now()
    entry = exchange_failed(exchange, now)
    if entry is not None:
        known = await transfers_of(unit, exchange.id)
        await _release(unit, exchange, known, failed_release(exchange), "failed")
        post(unit, entry)
    return await move(ports, unit, exchange, _T.FAILED, failure)


def _payload(ports: Ports, exchange: Exchange, previous: ExchangeStatus, now: datetime) -> ExchangePayload:
    """Return the payload of `exchange.status_changed`."""
    direction: Literal["usdt_to_rub", "rub_to_usdt"] = "usdt_to_rub" if exchange.takes_usdt else "rub_to_usdt"
    received = shown_received(exchange)
    return ExchangePayload(
        event="exchange.status_changed",
        exchange_id=exchange.id,
        external_id=exchange.external_id,
        direction=direction,
        status=exchange.status.value,
        previous_status=previous.value,
        amount_usdt=str(exchange.amount_usdt),
        amount_usdt_received=None if received is None else str(received),
        amount_rub=str(exchange.amount_rub),
        rate=exchange.rate,
        client_phone=open_exchange_phone(ports.vault, exchange),
        crypto_deposit_address=deposit_address(ports.vault, exchange),
        network=exchange.network,
        expires_at=iso(exchange.expires_at),
        timestamp=iso(now),
    )


async def _announce(ports: Ports, unit: Unit, exchange: Exchange, previous: ExchangeStatus) -> None:
    payload = partial(_payload, ports, exchange, previous)
    await announce_of(ports, unit, exchange, EventType.EXCHANGE_STATUS_CHANGED, payload)
