"""The moves of a return that RUB and USDT share, to be called in the unit that makes them
(docs/exchanges.md "Rules"; domain/exchanges/returns.py)."""

from datetime import datetime

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import Unit
from ...domain.exchanges.entries import money_returned
from ...domain.exchanges.exchanges import Exchange
from ...domain.exchanges.funds import ExchangeTransfer, returned
from ...domain.exchanges.returns import MoneyReturn, ReturnTrigger, return_moved
from ...domain.exchanges.reversals import returned_in_vain
from ..ledger.ledger import post
from ..schedule import FollowUp

RETURN_EXCHANGE = FollowUp("exchange.return")
"""The one job that sends the money of a transfer back."""

RETURN_RACES = ("jobs_id", "journal_id")
"""Unique rules whose Conflict means that another unit planned or booked a return first: read again."""


def return_of(transfer: ExchangeTransfer) -> MoneyReturn:
    """The attempt that is or was under way. Raises: LookupError where nobody decided on one."""
    if transfer.sent_back is None:
        raise LookupError(f"{transfer.id} is not sent back")
    return transfer.sent_back


def with_return_moved(
    transfer: ExchangeTransfer, trigger: ReturnTrigger, failure: str | None = None
) -> ExchangeTransfer:
    """The transfer whose return is one move further. Raises: IllegalMove."""
    return msgspec.structs.replace(transfer, sent_back=return_moved(return_of(transfer), trigger, failure))


def with_return_asked(transfer: ExchangeTransfer, now: datetime) -> ExchangeTransfer:
    """The transfer whose return its bank may have from now on. Raises: IllegalMove."""
    sending = with_return_moved(transfer, ReturnTrigger.SENT)
    return msgspec.structs.replace(sending, sent_back=msgspec.structs.replace(return_of(sending), sent_at=now))


def arrive(ports: Ports, unit: Unit, exchange: Exchange, transfer: ExchangeTransfer) -> ExchangeTransfer:
    """Save that the client has it: the money leaves the books."""
    now = ports.clock.now()
    post(unit, money_returned(exchange, transfer, now))
    gone = with_return_moved(transfer, ReturnTrigger.ARRIVED)
    return unit[ExchangeTransfer].save(returned_in_vain(gone) if gone.taken_back else returned(gone, now))
