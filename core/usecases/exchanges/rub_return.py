"""Returns of an exchange's RUB to their payer, through the bank that received them (docs/exchanges.md "Rules";
domain/exchanges/returns.py). USDT share the job: return_progress.py.
"""

from datetime import datetime
from typing import NamedTuple

import msgspec

from ....ports.bank import RefundRequest, RefundState
from ....ports.bank import RefundStatus as AtBank
from ....ports.bundle import Ports
from ....ports.storage import Unit
from ...domain.exchanges.entries import return_reversed
from ...domain.exchanges.exchanges import Exchange
from ...domain.exchanges.funds import ExchangeTransfer, is_return_of, transfer_source
from ...domain.exchanges.returns import (
    UNDER_WAY,
    ReturnStatus,
    ReturnTrigger,
    return_number,
    returning_exchange,
)
from ...domain.ledger import Currency
from ..ledger.ledger import post
from ..operations.operation import Looked, Want
from ..refunds.bank_refunds import BankRefunds, next_reversal_poll, next_status_poll
from .return_steps import RETURN_EXCHANGE, RETURN_RACES, arrive, return_of, with_return_asked, with_return_moved
from .steps import transfers_of, watch_again

_S = ReturnStatus
_T = ReturnTrigger

_WANTS = {_S.PLANNED: Want.PREPARE, _S.SENDING: Want.SEND, _S.RETURNED: Want.POLL}


class RubReturning(NamedTuple):
    """A return of RUB, and its exchange."""

    transfer: ExchangeTransfer
    exchange: Exchange


class RubReturns(BankRefunds[RubReturning]):
    """Returns of RUB that an operator decided on. An answer about an earlier attempt changes nothing."""

    follow_up = RETURN_EXCHANGE
    record = ExchangeTransfer
    races = RETURN_RACES

    def owns(self, operation: str, /) -> bool:
        return returning_exchange(operation) is not None

    async def owner(self, unit: Unit, operation: str, /) -> ExchangeTransfer | None:
        return await returned_by(unit, operation)

    async def load(self, _ports: Ports, unit: Unit, object_id: str, /) -> RubReturning | None:
        transfer = await unit[ExchangeTransfer].get(object_id)
        if transfer is None or transfer.sent_back is None or transfer.currency is not Currency.RUB:
            return None
        exchange = await unit[Exchange].get(transfer.exchange_id)
        return None if exchange is None else RubReturning(transfer, exchange)

    async def of_operation(self, ports: Ports, unit: Unit, operation: str, /) -> RubReturning | None:
        transfer = await returned_by(unit, operation)
        if transfer is None or not is_return_of(transfer, operation):
            return None
        return await self.load(ports, unit, transfer.id)

    def banked(self, subject: RubReturning, /) -> Exchange:
        return subject.exchange

    def request(self, subject: RubReturning, /) -> RefundRequest:
        back = return_of(subject.transfer)
        return RefundRequest(
            operation=back.operation,
            reference=subject.exchange.invoice_reference or "",
            amount_kopecks=back.amount,
            transfer=transfer_source(subject.transfer),
        )

    def wants(self, subject: RubReturning, /) -> Want:
        return _WANTS.get(return_of(subject.transfer).status, Want.NOTHING)

    def since(self, subject: RubReturning, /) -> datetime:
        """Return when the money came, because the database may have forgotten an earlier decision to return it."""
        return subject.transfer.received_at

    def sent_at(self, subject: RubReturning, /) -> datetime | None:
        return return_of(subject.transfer).sent_at

    async def prepare(self, ports: Ports, unit: Unit, subject: RubReturning, /) -> RubReturning:
        return _saved(unit, subject, with_return_asked(subject.transfer, ports.clock.now()))

    async def apply(self, ports: Ports, unit: Unit, subject: RubReturning, word: RefundState, /) -> RubReturning:
        transfer, exchange = subject
        status = return_of(transfer).status
        if word.status is not AtBank.PROCESSING and status is _S.SENDING:
            # RUB that the payer's bank took back while the return was under way can only be judged now.
            await watch_again(ports, unit, exchange.id)
        if word.status is AtBank.DONE and status in (_S.SENDING, _S.FAILED):
            return subject._replace(transfer=arrive(ports, unit, exchange, transfer))
        if word.status is AtBank.FAILED and status is _S.SENDING:
            return _saved(unit, subject, with_return_moved(transfer, _T.REFUSED, word.failure or "unknown"))
        if word.status is AtBank.REVERSED and status in (_S.SENDING, _S.RETURNED):
            if status is _S.RETURNED:
                post(unit, return_reversed(exchange, transfer, ports.clock.now()))
            back_again = msgspec.structs.replace(with_return_moved(transfer, _T.CAME_BACK), resolved_at=None)
            return _saved(unit, subject, back_again)
        return subject

    def next_status_poll(
        self, ports: Ports, subject: RubReturning, looked: Looked[RubReturning, RefundState], /
    ) -> datetime | None:
        transfer, now = subject.transfer, ports.clock.now()
        if transfer.resolved_at is not None:
            return next_reversal_poll(transfer.resolved_at, now)
        is_under_way = return_of(transfer).status in UNDER_WAY
        return next_status_poll(looked.word, looked.asked, now) if is_under_way else None


RUB_RETURNS = RubReturns()


async def returned_by(unit: Unit, operation: str) -> ExchangeTransfer | None:
    """Return the transfer that a bank operation returns, for any attempt."""
    exchange_id = returning_exchange(operation)
    if exchange_id is None:
        return None
    found = await transfers_of(unit, exchange_id)
    return next((each for each in found if return_number(each.id, operation) is not None), None)


def _saved(unit: Unit, subject: RubReturning, after: ExchangeTransfer) -> RubReturning:
    return subject._replace(transfer=unit[ExchangeTransfer].save(after))
