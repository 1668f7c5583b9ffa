"""How an exchange's RUB get to the client: in parts, one after another, each written down before the bank hears of it
(docs/exchanges.md "Rules"; ARCHITECTURE.md "Three ends").

From `rub_sending` on only the bank's word moves the exchange: while nobody knows, nothing is given back, and only the
same operation is repeated.
"""

import logging

import msgspec

from ....ports.bundle import Ports
from ....ports.faults import Fault, NotConfigured, OutcomeUnknown, Refused, Unavailable
from ....ports.remittances import (
    RemittanceBank,
    RemittanceRequest,
    RemittanceState,
    RemittanceStatus,
    remits,
    remitting,
)
from ....ports.storage import Unit
from ...domain.exchanges.entries import exchange_completed, money_given, part_delivered
from ...domain.exchanges.exchanges import Exchange, ExchangeStatus, ExchangeTrigger
from ...domain.exchanges.payouts import (
    PartStatus,
    PartTrigger,
    PayoutPart,
    all_delivered,
    next_part,
    part_moved,
    payout_parts,
)
from ...domain.money import Rub
from ..forgotten import may_be_forgotten
from ..gateways.gateways import first_open
from ..gateways.watch import watched
from ..ledger.ledger import post
from ..sealed import open_exchange_phone
from ..units import retrying
from .steps import RACES, fail, is_as_made, move, read_exchange

_S = ExchangeStatus
_P = PartStatus

log = logging.getLogger("cambist.exchanges")


class Paying(msgspec.Struct, frozen=True):
    """An exchange as its payout stands, and after how many seconds looking at it again is worthwhile, where the
    provider or the chain says."""

    exchange: Exchange
    check_after: float | None = None


async def begin_payout(ports: Ports, exchange: Exchange) -> Exchange:
    """Choose the bank, write down all parts, and take the RUB out of the stock, in one unit; nothing is sent yet.

    Raises: NotConfigured when no bank of the mode sends money to people; Unavailable while all that do are out of
    service; what a bank's read raises, where one of several may have sent it already and gives no answer.
    """
    bank = await _bank_that_knows(ports, exchange) or await _open_bank(ports, exchange)
    most = bank.capabilities.remittance_max_kopecks
    cap = None if most is None else Rub(most)

    async def work(unit: Unit) -> Exchange:
        present = await read_exchange(unit, exchange.id)
        if present.status is not _S.USDT_RECEIVED or not is_as_made(ports, present):
            return present
        post(unit, money_given(present, ports.clock.now()))
        parts = payout_parts(present.id, present.amount_rub, cap)
        planned = msgspec.structs.replace(present, bank=bank.name, parts=parts)
        return await move(ports, unit, planned, ExchangeTrigger.PAYOUT_STARTED)

    return await retrying(ports.storage, work, again_on=RACES)


async def _bank_that_knows(ports: Ports, exchange: Exchange) -> RemittanceBank | None:
    """The bank that has this payout already, though we know nothing of that: another one would pay a second time. One
    alone is asked before it is sent anything, anyway."""
    banks = _remitting(ports, exchange)
    if len(banks) > 1 and may_be_forgotten(ports, exchange.created_at):
        [first, *_] = payout_parts(exchange.id, exchange.amount_rub, None)
        for bank in banks:
            async with watched(ports, exchange.mode, bank.name):
                if await bank.find_remittance(first.operation) is not None:
                    return bank
    return None


def _remitting(ports: Ports, exchange: Exchange) -> list[RemittanceBank]:
    return [bank for bank in ports.banks.of_mode(exchange.mode) if remits(bank)]


async def _open_bank(ports: Ports, exchange: Exchange) -> RemittanceBank:
    """The first bank that sends money to people and whose gateway is not down, as for payments."""
    routes = _remitting(ports, exchange)
    if not routes:
        raise NotConfigured(f"no bank of {exchange.mode} mode sends money to people")
    bank = await first_open(ports, routes, exchange.mode, exchange.account_id)
    if bank is None:
        raise Unavailable("every bank that sends money to people is out of service")
    return bank


async def pay_out(ports: Ports, exchange: Exchange) -> Paying:
    """Bring a payout as far as the bank lets it, part by part, to the end of the exchange where that is known.

    Raises: NotConfigured, NotSupported when its bank is not wired, or sends no money, any more.
    """
    bank = remitting(ports.banks.named(exchange.bank or ""))
    while exchange.status is _S.RUB_SENDING and (part := next_part(exchange.parts)) is not None:
        was_sent = part.status is _P.SENT
        asked_before = was_sent or may_be_forgotten(ports, exchange.created_at)
        exchange = exchange if was_sent else await _mark_sent(ports, exchange.id, part)
        if not is_as_made(ports, exchange):
            return Paying(await hear(ports, exchange))
        state = await _send(ports, bank, exchange, part, asked_before=asked_before)
        if state is None or state.status is RemittanceStatus.PROCESSING:
            return Paying(exchange, None if state is None else state.check_after)
        exchange = await _conclude(ports, exchange.id, part, state)
    return Paying(exchange)


async def hear(ports: Ports, exchange: Exchange) -> Exchange:
    """What the bank says of the part that it has, without sending anything: a notice may come while the watch sends,
    and of two that send at once one might be refused and the other not.

    Raises: what a bank's read raises.
    """
    part = next_part(exchange.parts)
    if exchange.status is not _S.RUB_SENDING or part is None or part.status is not _P.SENT:
        return exchange
    bank = remitting(ports.banks.named(exchange.bank or ""))
    state = await _find(ports, bank, exchange, part)
    if state is None or state.status is RemittanceStatus.PROCESSING:
        return exchange
    return await _conclude(ports, exchange.id, part, state)


async def _mark_sent(ports: Ports, exchange_id: str, part: PayoutPart) -> Exchange:
    async def work(unit: Unit) -> Exchange:
        present = await read_exchange(unit, exchange_id)
        if _standing(present, part) is not _P.PLANNED or not is_as_made(ports, present):
            return present
        return unit[Exchange].save(
            msgspec.structs.replace(present, parts=part_moved(present.parts, part.operation, PartTrigger.ASKED))
        )

    return await retrying(ports.storage, work)


async def _send(
    ports: Ports, bank: RemittanceBank, exchange: Exchange, part: PayoutPart, *, asked_before: bool
) -> RemittanceState | None:
    """Have a part sent; how it stands, or None while nobody knows. A bank that may have it is asked about it first."""
    phone = open_exchange_phone(ports.vault, exchange)
    request = RemittanceRequest(
        operation=part.operation,
        phone=phone,
        bank_id=exchange.client_bank_id or "",
        amount_kopecks=part.amount.kopecks,
    )
    try:
        known = await _find(ports, bank, exchange, part) if asked_before else None
    except (Refused, OutcomeUnknown, Unavailable) as fault:
        # A no to the question is none to the transfer, which may have gone.
        _say_unknown(exchange, part, fault)
        return None
    if known is not None:
        return known
    try:
        async with watched(ports, exchange.mode, bank.name):
            return await bank.remit(request)
    except Refused as fault:
        return RemittanceState(status=RemittanceStatus.FAILED, failure=fault.reason)
    except (OutcomeUnknown, Unavailable) as fault:
        _say_unknown(exchange, part, fault)
        return None


async def _find(ports: Ports, bank: RemittanceBank, exchange: Exchange, part: PayoutPart) -> RemittanceState | None:
    async with watched(ports, exchange.mode, bank.name):
        return await bank.find_remittance(part.operation)


def _say_unknown(exchange: Exchange, part: PayoutPart, fault: Fault) -> None:
    log.warning("exchange %s: how its payout %s stands is not known: %s", exchange.id, part.operation, fault)


async def _conclude(ports: Ports, exchange_id: str, part: PayoutPart, state: RemittanceState) -> Exchange:
    """Let the bank's last word on a part take effect, and the end of the exchange with it, in one unit."""
    is_delivered = state.status is RemittanceStatus.DONE
    end = PartTrigger.DELIVERED if is_delivered else PartTrigger.REFUSED

    async def work(unit: Unit) -> Exchange:
        present = await read_exchange(unit, exchange_id)
        if present.status is not _S.RUB_SENDING or _standing(present, part) is not _P.SENT:
            return present
        now = ports.clock.now()
        parts = part_moved(present.parts, part.operation, end, state.failure)
        after = msgspec.structs.replace(present, parts=parts)
        if is_delivered:
            post(unit, part_delivered(after, _part(after, part), now))
        delivered = all_delivered(parts)
        if delivered is None:
            return unit[Exchange].save(after)
        if not delivered:
            return await fail(ports, unit, after, state.failure or "unknown")
        post(unit, exchange_completed(after, now))
        return await move(ports, unit, after, ExchangeTrigger.DELIVERED)

    return await retrying(ports.storage, work, again_on=RACES)


def _part(exchange: Exchange, part: PayoutPart) -> PayoutPart:
    return next(each for each in exchange.parts if each.operation == part.operation)


def _standing(exchange: Exchange, part: PayoutPart) -> PartStatus:
    return _part(exchange, part).status
