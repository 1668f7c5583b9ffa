"""Sending an exchange's USDT to the client after the hold, by one signed transfer (signed_transfers/; docs/exchanges.md
"RUB to USDT").
"""

import msgspec

from ....ports.bundle import Ports
from ....ports.payouts import SignedTransfer
from ....ports.storage import Unit
from ....ports.vault import Vault
from ...domain.exchanges.entries import exchange_completed, money_given
from ...domain.exchanges.exchanges import Exchange, ExchangeStatus, ExchangeTrigger, signed, signed_anew, unsigned
from ..common.encrypted import exchange_fits
from ..common.units import retrying
from ..ledger.ledger import post
from ..signed_transfers.engine import bring
from ..signed_transfers.row import Sending, SignedTransfers, stored
from .payout import Paying
from .steps import RACES, fail, is_as_made, move, read_exchange

_S = ExchangeStatus


async def begin_sending(ports: Ports, exchange: Exchange) -> Exchange:
    """Choose the wallet and take the USDT from the stock once the hold is over. Nothing is sent yet.

    Raises: NotConfigured when the mode has no wallet on the exchange's network.
    """
    sender = ports.senders.on(exchange.mode, exchange.network)

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


class _Sent(SignedTransfers[Exchange]):
    """The transfer of an exchange to its client. A transfer that was never executed is signed again, because the client
    paid for it.
    """

    record = Exchange
    races = RACES

    def sending(self, exchange: Exchange) -> Sending | None:
        if exchange.status is not _S.USDT_SENDING:
            return None
        return Sending(
            operation=exchange.id,
            sender=exchange.sender or "",
            network=exchange.network,
            address=exchange.client_wallet or "",
            units=exchange.amount_usdt.units,
            signed=stored(exchange.id, exchange),
        )

    def is_as_decided(self, vault: Vault, exchange: Exchange) -> bool:
        return exchange_fits(vault, exchange)

    async def store(self, ports: Ports, unit: Unit, exchange: Exchange, by: SignedTransfer) -> Exchange:
        return unit[Exchange].save(signed(exchange, by.tx_hash, by.blob, by.expires_at))

    def replaced(self, exchange: Exchange, by: SignedTransfer) -> Exchange:
        return signed_anew(exchange, by.tx_hash, by.blob, by.expires_at)

    async def final(self, ports: Ports, unit: Unit, exchange: Exchange) -> Exchange:
        post(unit, exchange_completed(exchange, ports.clock.now()))
        return await move(ports, unit, exchange, ExchangeTrigger.CONFIRMED)

    async def never(self, ports: Ports, unit: Unit, exchange: Exchange) -> Exchange:
        return unit[Exchange].save(unsigned(exchange))

    async def refused(self, ports: Ports, unit: Unit, exchange: Exchange, failure: str) -> Exchange:
        return await fail(ports, unit, exchange, failure)


SENT = _Sent()


async def send_usdt(ports: Ports, exchange: Exchange, attempts: int) -> Paying:
    """Sign and send the transfer, or poll for it, until the network reports its outcome. `attempts` counts the attempts
    to sign.
    """
    standing = await bring(SENT, ports, exchange, attempts)
    return Paying(standing.subject, None if standing.pause is None else standing.pause.total_seconds())
