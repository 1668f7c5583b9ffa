"""How an exchange's USDT get to the client: after the hold, by one signed transfer that is stored before the network
hears of it (docs/exchanges.md "RUB to USDT"; signed_transfers)."""

import logging
from datetime import timedelta

import msgspec

from ....ports.bundle import Ports
from ....ports.faults import OutcomeUnknown, Refused, Unavailable
from ....ports.payouts import SignedTransfer, TransferState, UsdtSender
from ....ports.storage import Unit
from ...domain.exchanges.entries import exchange_completed, money_given
from ...domain.exchanges.exchanges import Exchange, ExchangeStatus, ExchangeTrigger, signed, unsigned
from ..ledger.ledger import post
from ..signed_transfers.wallet import broadcast, follow, look_pause, sign, sign_pause, stored
from ..units import retrying
from .payout import Paying
from .steps import RACES, fail, is_as_made, move, read_exchange

_S = ExchangeStatus

log = logging.getLogger("cambist.exchanges")


async def begin_sending(ports: Ports, exchange: Exchange) -> Exchange:
    """Choose the wallet and take the USDT out of the stock, once the hold is over; nothing is sent yet.

    Raises: NotConfigured when the mode has no wallet.
    """
    sender = ports.senders.of_mode(exchange.mode)

    async def work(unit: Unit) -> Exchange:
        present = await read_exchange(unit, exchange.id)
        now = ports.clock.now()
        if present.status is not _S.RUB_RECEIVED or present.hold_until is None or now < present.hold_until:
            return present
        if not is_as_made(ports, present):
            return present
        post(unit, money_given(present, now))
        return await move(ports, unit, msgspec.structs.replace(present, sender=sender.name), ExchangeTrigger.HELD)

    return await retrying(ports.storage, work, again_on=RACES)


async def send_usdt(ports: Ports, exchange: Exchange, attempts: int) -> Paying:
    """Sign and send, or look at what was sent, to the end where the network knows it. `attempts`: to sign, so far.

    Raises: NotConfigured when its wallet is not wired any more.
    """
    sender = ports.senders.named(exchange.sender or "")
    if exchange.tx_hash is None:
        if not is_as_made(ports, exchange):
            return Paying(exchange)
        try:
            transfer = await sign(
                sender, exchange.network, exchange.id, exchange.client_wallet or "", exchange.amount_usdt.units
            )
        except Refused as fault:
            return Paying(await fail_unsigned(ports, exchange.id, f"not signed, {fault.reason}"))
        except (Unavailable, OutcomeUnknown) as fault:
            # An unknown outcome is none here: signing sends nothing.
            log.warning("exchange %s cannot be signed yet: %s", exchange.id, fault)
            return _in(exchange, sign_pause(attempts, fault))
        exchange = await _store(ports, exchange.id, transfer)
        if exchange.status is _S.USDT_SENDING:
            await broadcast(sender, _transfer(exchange))
        return _next(ports, exchange)
    return await _look(ports, sender, exchange)


def _transfer(exchange: Exchange) -> SignedTransfer:
    return stored(exchange.id, exchange.tx_hash, exchange.blob, exchange.signed_until)


def _in(exchange: Exchange, pause: timedelta) -> Paying:
    return Paying(exchange, pause.total_seconds())


def _next(ports: Ports, exchange: Exchange) -> Paying:
    return _in(exchange, look_pause(exchange.signed_until, ports.clock.now()))


async def _store(ports: Ports, exchange_id: str, transfer: SignedTransfer) -> Exchange:
    """The exchange with its signed transfer, on disk. Of two that signed at once the first to come here counts; the
    other's transfer is dropped unsent."""

    async def work(unit: Unit) -> Exchange:
        present = await read_exchange(unit, exchange_id)
        if present.status is not _S.USDT_SENDING or present.tx_hash is not None:
            return present
        return unit[Exchange].save(signed(present, transfer.tx_hash, transfer.blob, transfer.expires_at))

    return await retrying(ports.storage, work)


async def _look(ports: Ports, sender: UsdtSender, exchange: Exchange) -> Paying:
    try:
        followed = await follow(ports, sender, _transfer(exchange))
    except (Unavailable, OutcomeUnknown, Refused) as fault:
        log.info("exchange %s: its transfer could not be looked at: %s", exchange.id, fault)
        return _next(ports, exchange)
    if followed.state is TransferState.FINAL:
        return Paying(await _complete(ports, exchange))
    if followed.state is TransferState.FAILED:
        return _in(await _forget(ports, exchange), timedelta(seconds=1))
    return _next(ports, exchange)


async def _complete(ports: Ports, exchange: Exchange) -> Exchange:
    async def work(unit: Unit) -> Exchange:
        present = await read_exchange(unit, exchange.id)
        if present.status is not _S.USDT_SENDING or present.tx_hash != exchange.tx_hash:
            return present
        post(unit, exchange_completed(present, ports.clock.now()))
        return await move(ports, unit, present, ExchangeTrigger.CONFIRMED)

    return await retrying(ports.storage, work, again_on=RACES)


async def _forget(ports: Ports, exchange: Exchange) -> Exchange:
    """The network proved that this transfer never takes effect: another may be signed."""

    async def work(unit: Unit) -> Exchange:
        present = await read_exchange(unit, exchange.id)
        if present.status is not _S.USDT_SENDING or present.tx_hash != exchange.tx_hash:
            return present
        return unit[Exchange].save(unsigned(present))

    return await retrying(ports.storage, work)


async def fail_unsigned(ports: Ports, exchange_id: str, failure: str) -> Exchange:
    """The wallet refused for certain to sign: the exchange fails, unless a transfer of it is on its way after all."""

    async def work(unit: Unit) -> Exchange:
        present = await read_exchange(unit, exchange_id)
        if present.status is not _S.USDT_SENDING or present.tx_hash is not None:
            return present
        return await fail(ports, unit, present, failure)

    return await retrying(ports.storage, work, again_on=RACES)
