"""Moves of a return that RUB and USDT share. Call them in the unit that saves the transfer (docs/exchanges.md "Rules";
domain/exchanges/returns.py).
"""

from datetime import datetime

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import Unit
from ...domain.exchanges.entries import money_returned
from ...domain.exchanges.exchanges import Exchange
from ...domain.exchanges.funds import ExchangeTransfer, returned
from ...domain.exchanges.returns import MoneyReturn, ReturnTrigger, return_moved
from ...domain.exchanges.reversals import returned_in_vain
from ..common.schedule import FollowUp
from ..ledger.ledger import post

RETURN_EXCHANGE = FollowUp("exchange.return")
"""The job that returns the money of a transfer."""

RETURN_RACES = ("jobs_id", "journal_id")
"""Unique rules whose Conflict means that another unit planned or booked a return first. The unit is then retried."""


def return_of(transfer: ExchangeTransfer) -> MoneyReturn:
    """Return the current or last attempt. Raises: LookupError when no return was decided."""
    if transfer.sent_back is None:
        raise LookupError(f"{transfer.id} is not sent back")
    return transfer.sent_back


def with_return_moved(
    transfer: ExchangeTransfer, trigger: ReturnTrigger, failure: str | None = None
) -> ExchangeTransfer:
    """Return the transfer with its return moved by `trigger`. Raises: IllegalMove."""
    return msgspec.structs.replace(transfer, sent_back=return_moved(return_of(transfer), trigger, failure))


def with_return_asked(transfer: ExchangeTransfer, now: datetime) -> ExchangeTransfer:
    """Return the transfer with its return marked as sent: from now on the bank may have it. Raises: IllegalMove."""
    sending = with_return_moved(transfer, ReturnTrigger.SENT)
    return msgspec.structs.replace(sending, sent_back=msgspec.structs.replace(return_of(sending), sent_at=now))


def arrive(ports: Ports, unit: Unit, exchange: Exchange, transfer: ExchangeTransfer) -> ExchangeTransfer:
    """Save that the client has the money; it leaves the books."""
    now = ports.clock.now()
    post(unit, money_returned(exchange, transfer, now))
    gone = with_return_moved(transfer, ReturnTrigger.ARRIVED)
    return unit[ExchangeTransfer].save(returned_in_vain(gone) if gone.taken_back else returned(gone, now))
