"""Payout of an exchange's RUB to the client, part by part; each part is recorded before the bank is called
(docs/exchanges.md "Rules"; ARCHITECTURE.md "Three outcomes").

From `rub_sending` on only the bank's answer moves the exchange. While the outcome is unknown, no money is returned to
the merchant's stock, and only the same operation is repeated.
"""

import logging

import msgspec

from ....ports.bundle import Ports
from ....ports.faults import NotConfigured, Stale, Unavailable
from ....ports.remittances import RemittanceBank, remits, remitting
from ....ports.storage import Unit
from ...domain.exchanges.entries import money_given
from ...domain.exchanges.exchanges import Exchange, ExchangeStatus, ExchangeTrigger
from ...domain.exchanges.payouts import PartStatus, next_part, payout_parts
from ...domain.money import Rub
from ..common.forgotten import may_be_forgotten
from ..common.units import retrying
from ..gateways.gateways import first_open
from ..gateways.members import reaches
from ..gateways.watch import watched
from ..ledger.ledger import post
from ..operations import engine
from ..operations.engine import bring
from .remittances import REMITTANCES, find_part
from .steps import RACES, is_as_made, move, read_exchange

_S = ExchangeStatus

log = logging.getLogger("cambist.exchanges")


class Paying(msgspec.Struct, frozen=True):
    """The state of an exchange after a step. `check_after` is the pause in seconds that the provider or the chain
    suggests before the next poll.
    """

    exchange: Exchange
    check_after: float | None = None
    is_received: bool = True
    """For a finished exchange: whether chain or bank answered the poll for late money."""


async def begin_payout(ports: Ports, exchange: Exchange) -> Exchange:
    """Choose the bank, record all parts, and take the RUB from the stock, in one unit. Nothing is sent yet.

    Raises: NotConfigured when no bank of the mode sends money to people; Unavailable while all of them are out of
    service; faults of a bank's reads, when one of several banks may have sent the payout already and does not answer.
    """
    bank = await _bank_that_knows(ports, exchange) or await _open_bank(ports, exchange)

    async def work(unit: Unit) -> Exchange:
        present = await read_exchange(unit, exchange.id)
        if present.status is not _S.USDT_RECEIVED or not is_as_made(ports, present):
            return present
        post(unit, money_given(present, ports.clock.now()))
        parts = payout_parts(present.id, present.amount_rub, _most(bank))
        planned = msgspec.structs.replace(present, bank=bank.name, parts=parts)
        return await move(ports, unit, planned, ExchangeTrigger.PAYOUT_STARTED)

    return await retrying(ports.storage, work, again_on=RACES)


async def _bank_that_knows(ports: Ports, exchange: Exchange) -> RemittanceBank | None:
    """Return the bank that already has this payout although our database does not know it; another bank would pay a
    second time. A single bank needs no check here, since it is always asked before it sends.
    """
    banks = _remitting(ports, exchange)
    if len(banks) > 1 and await may_be_forgotten(ports, exchange.created_at):
        for bank in banks:
            [first, *_] = payout_parts(exchange.id, exchange.amount_rub, _most(bank))
            async with watched(ports, exchange.mode, bank.name):
                if await find_part(ports, bank, exchange, first) is not None:
                    return bank
    return None


def _most(bank: RemittanceBank) -> Rub | None:
    most = bank.capabilities.remittance_max_kopecks
    return None if most is None else Rub(most)


def _remitting(ports: Ports, exchange: Exchange) -> list[RemittanceBank]:
    return [bank for bank in ports.banks.of_mode(exchange.mode) if remits(bank)]


async def _open_bank(ports: Ports, exchange: Exchange) -> RemittanceBank:
    """Choose the first bank that sends money to people and whose gateway is up. Prefer banks that reach the client's
    bank, as far as that is known.
    """
    routes = _remitting(ports, exchange)
    if not routes:
        raise NotConfigured(f"no bank of {exchange.mode} mode sends money to people")
    reaching = [bank for bank in routes if await reaches(ports, bank, exchange.client_bank_id or "")]
    bank = await first_open(ports, reaching or routes, exchange.mode, exchange.account_id)
    if bank is None:
        raise Unavailable("every bank that sends money to people is out of service")
    return bank


async def pay_out(ports: Ports, exchange: Exchange) -> Paying:
    """Advance a payout part by part as far as the bank allows, up to the end of the exchange.

    Raises: NotConfigured, NotSupported when its bank is no longer configured or no longer sends money; Stale when the
    exchange is gone.
    """
    remitting(ports.banks.named(exchange.bank or ""))
    while exchange.status is _S.RUB_SENDING and (part := next_part(exchange.parts)) is not None:
        if not is_as_made(ports, exchange) and part.status is PartStatus.PLANNED:
            return Paying(exchange)
        told = await bring(REMITTANCES, ports, part.operation)
        if told.subject is None:
            raise Stale(f"{part.operation} is gone")
        if told.fault is not None:
            log.warning("exchange %s: payout %s has no answer: %s", exchange.id, part.operation, told.fault)
        exchange = told.subject.exchange
        if told.subject.part.status in (PartStatus.PLANNED, PartStatus.SENT):
            return Paying(exchange, None if told.word is None else told.word.check_after)
    return Paying(exchange)


async def receive(ports: Ports, exchange: Exchange) -> Exchange:
    """Poll the bank for the part that it has, without sending. A notification may arrive while the watch sends, and of
    two concurrent sends the bank might refuse one and accept the other.

    Raises: faults of a bank's reads.
    """
    part = next_part(exchange.parts)
    if exchange.status is not _S.RUB_SENDING or part is None or part.status is not PartStatus.SENT:
        return exchange
    heard = (await engine.receive(REMITTANCES, ports, part.operation)).subject
    return exchange if heard is None else heard.exchange
