"""One part of an exchange's payout at its bank: recorded, sent, polled, finished (docs/exchanges.md "Rules";
ARCHITECTURE.md "Three outcomes"). The order of the parts is in payout.py.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import NamedTuple

import msgspec

from ....ports.bundle import Ports
from ....ports.faults import NotSupported, Refused
from ....ports.remittances import (
    RemittanceBank,
    RemittanceRequest,
    RemittanceState,
    RemittanceStatus,
    remitting,
)
from ....ports.searching import SearchesRemittances
from ....ports.storage import Unit
from ...domain.exchanges.entries import exchange_completed, part_delivered
from ...domain.exchanges.exchanges import Exchange, ExchangeStatus, ExchangeTrigger, operation_exchange
from ...domain.exchanges.payouts import (
    PartStatus,
    PartTrigger,
    PayoutPart,
    all_delivered,
    part_asked,
    part_moved,
)
from ..common.encrypted import exchange_fits, open_exchange_phone
from ..common.forgotten import sent_at_earliest
from ..gateways.watch import at_bank
from ..ledger.ledger import post
from ..operations.operation import Operation, Want
from ..operations.repeating import repeats_until
from .steps import RACES, fail, move, read_exchange

_P = PartStatus


class Remitting(NamedTuple):
    """An exchange, one of its parts, and whether the exchange still matches the terms that it was made with."""

    exchange: Exchange
    part: PayoutPart
    is_as_made: bool


class Remittances(Operation[Remitting, RemittanceState, RemittanceBank]):
    """Parts of payouts. A part has no job: the watch of the exchange advances it, and notifications belong to the
    exchange. A part of an exchange whose vault tag does not match is polled and never sent.
    """

    races = RACES

    async def load(self, ports: Ports, unit: Unit, object_id: str, /) -> Remitting | None:
        exchange = await read_exchange(unit, operation_exchange(object_id) or "")
        return _remitting(exchange, object_id, is_as_made=exchange_fits(ports.vault, exchange))

    async def of_operation(self, ports: Ports, unit: Unit, operation: str, /) -> Remitting | None:
        exchange = await unit[Exchange].get(operation_exchange(operation) or "")
        return None if exchange is None else await self.load(ports, unit, operation)

    def operation(self, subject: Remitting, /) -> str:
        return subject.part.operation

    def wants(self, subject: Remitting, /) -> Want:
        exchange, part, is_as_made = subject
        if exchange.status is not ExchangeStatus.RUB_SENDING:
            return Want.NOTHING
        if part.status is _P.PLANNED:
            return Want.PREPARE if is_as_made else Want.NOTHING
        if part.status is _P.SENT:
            return Want.SEND if is_as_made else Want.POLL
        return Want.NOTHING

    def since(self, subject: Remitting, /) -> datetime:
        return subject.exchange.created_at

    def sent_at(self, subject: Remitting, /) -> datetime:
        """Return the earliest moment at which the bank may have the part: its exchange's creation while it is
        planned."""
        return subject.part.sent_at or subject.exchange.created_at

    def repeats_until(self, ports: Ports, subject: Remitting, /) -> datetime | None:
        return repeats_until(ports, subject.exchange.bank, self.sent_at(subject))

    async def prepare(self, ports: Ports, unit: Unit, subject: Remitting, /) -> Remitting:
        parts = part_asked(subject.exchange.parts, subject.part.operation, ports.clock.now())
        return _with(subject, unit[Exchange].save(msgspec.structs.replace(subject.exchange, parts=parts)))

    @asynccontextmanager
    async def at_provider(self, ports: Ports, subject: Remitting, /) -> AsyncIterator[RemittanceBank]:
        async with at_bank(ports, subject.exchange) as bank:
            yield remitting(bank)

    async def find(self, ports: Ports, provider: RemittanceBank, subject: Remitting, /) -> RemittanceState | None:
        return await find_part(ports, provider, subject.exchange, subject.part)

    async def send(self, ports: Ports, provider: RemittanceBank, subject: Remitting, /) -> RemittanceState:
        return await provider.remit(_request(ports, subject.exchange, subject.part))

    def refused(self, _subject: Remitting, fault: Refused | NotSupported, /) -> RemittanceState | None:
        if isinstance(fault, NotSupported):
            # Another bank must not send this payout. It waits until this bank sends again.
            return None
        return RemittanceState(status=RemittanceStatus.FAILED, failure=fault.reason)

    async def apply(self, ports: Ports, unit: Unit, subject: Remitting, word: RemittanceState, /) -> Remitting:
        """Save the outcome of the part; with the last part, also that of the exchange."""
        exchange, part, _ = subject
        is_under_way = exchange.status is ExchangeStatus.RUB_SENDING and part.status is _P.SENT
        if word.status is RemittanceStatus.PROCESSING or not is_under_way:
            return subject
        now = ports.clock.now()
        end = PartTrigger.DELIVERED if word.status is RemittanceStatus.DONE else PartTrigger.REFUSED
        after = msgspec.structs.replace(exchange, parts=part_moved(exchange.parts, part.operation, end, word.failure))
        if end is PartTrigger.DELIVERED:
            post(unit, part_delivered(after, _with(subject, after).part, now))
        delivered = all_delivered(after.parts)
        if delivered is None:
            return _with(subject, unit[Exchange].save(after))
        if not delivered:
            return _with(subject, await fail(ports, unit, after, word.failure or "unknown"))
        post(unit, exchange_completed(after, now))
        return _with(subject, await move(ports, unit, after, ExchangeTrigger.DELIVERED))


REMITTANCES = Remittances()


async def find_part(ports: Ports, bank: RemittanceBank, exchange: Exchange, part: PayoutPart) -> RemittanceState | None:
    """Return the state of a part at a bank; None when the bank never saw it. Raises: faults of the port's reads."""
    if isinstance(bank, SearchesRemittances):
        return await bank.search_remittance(
            _request(ports, exchange, part), await sent_at_earliest(ports, exchange.created_at)
        )
    return await bank.find_remittance(part.operation)


def _request(ports: Ports, exchange: Exchange, part: PayoutPart) -> RemittanceRequest:
    return RemittanceRequest(
        operation=part.operation,
        phone=open_exchange_phone(ports.vault, exchange),
        bank_id=exchange.client_bank_id or "",
        amount_kopecks=part.amount.kopecks,
    )


def _remitting(exchange: Exchange, operation: str, *, is_as_made: bool) -> Remitting | None:
    part = next((each for each in exchange.parts if each.operation == operation), None)
    return None if part is None else Remitting(exchange, part, is_as_made)


def _with(subject: Remitting, exchange: Exchange) -> Remitting:
    return _remitting(exchange, subject.part.operation, is_as_made=subject.is_as_made) or subject
