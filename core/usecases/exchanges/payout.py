"""How an exchange's RUB get to the client: in parts, one after another, each written down before the bank hears of it
(docs/exchanges.md "Rules"; ARCHITECTURE.md "Three ends").

From `rub_sending` on only the bank's word moves the exchange: while nobody knows, nothing is given back, and only the
same operation is repeated.
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
from ..forgotten import may_be_forgotten
from ..gateways.gateways import first_open
from ..gateways.members import reaches
from ..gateways.watch import watched
from ..ledger.ledger import post
from ..operations import engine
from ..operations.engine import bring
from ..units import retrying
from .remittances import REMITTANCES, find_part
from .steps import RACES, is_as_made, move, read_exchange

_S = ExchangeStatus

log = logging.getLogger("cambist.exchanges")


class Paying(msgspec.Struct, frozen=True):
    """An exchange as its payout stands, and after how many seconds looking at it again is worthwhile, where the
    provider or the chain says."""

    exchange: Exchange
    check_after: float | None = None
    is_heard: bool = True
    """Of one that is over: chain or bank said what came since."""


async def begin_payout(ports: Ports, exchange: Exchange) -> Exchange:
    """Choose the bank, write down all parts, and take the RUB out of the stock, in one unit; nothing is sent yet.

    Raises: NotConfigured when no bank of the mode sends money to people; Unavailable while all that do are out of
    service; what a bank's read raises, where one of several may have sent it already and gives no answer.
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
    """The bank that has this payout already, though we know nothing of that: another one would pay a second time. One
    alone is asked before it is sent anything, anyway."""
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
    """The first bank that sends money to people, to the client's bank as far as is known, and whose gateway is not
    down, as for payments."""
    routes = _remitting(ports, exchange)
    if not routes:
        raise NotConfigured(f"no bank of {exchange.mode} mode sends money to people")
    reaching = [bank for bank in routes if await reaches(ports, bank, exchange.client_bank_id or "")]
    bank = await first_open(ports, reaching or routes, exchange.mode, exchange.account_id)
    if bank is None:
        raise Unavailable("every bank that sends money to people is out of service")
    return bank


async def pay_out(ports: Ports, exchange: Exchange) -> Paying:
    """Bring a payout as far as the bank lets it, part by part, to the end of the exchange where that is known.

    Raises: NotConfigured, NotSupported when its bank is not wired, or sends no money, any more; Stale when it is gone.
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


async def hear(ports: Ports, exchange: Exchange) -> Exchange:
    """What the bank says of the part that it has, without sending anything: a notice may come while the watch sends,
    and of two that send at once one might be refused and the other not.

    Raises: what a bank's read raises.
    """
    part = next_part(exchange.parts)
    if exchange.status is not _S.RUB_SENDING or part is None or part.status is not PartStatus.SENT:
        return exchange
    heard = (await engine.hear(REMITTANCES, ports, part.operation)).subject
    return exchange if heard is None else heard.exchange
