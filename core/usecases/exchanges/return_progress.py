"""The job that returns money of an exchange: RUB through their bank (rub_return.py), USDT by one signed transfer
(usdt_return.py).

Each return is recorded before it is sent, and the money leaves the books when it has arrived (docs/exchanges.md
"Rules"; domain/exchanges/returns.py).
"""

from ....ports.bundle import Ports
from ....ports.jobs import Job
from ...domain.exchanges.funds import ExchangeTransfer
from ...domain.ledger import Currency
from ..operations import engine as operations
from ..signed_transfers import engine as signed_transfers
from .rub_return import RUB_RETURNS
from .usdt_return import USDT_RETURNS


async def carry_return(ports: Ports, job: Job) -> None:
    """Follow a return in either currency (a job)."""
    transfer = await ports.storage.get(ExchangeTransfer, job.argument)
    if transfer is not None and transfer.currency is Currency.RUB:
        await operations.follow(RUB_RETURNS, ports, job)
    else:
        await signed_transfers.follow(USDT_RETURNS, ports, job)


async def carry(ports: Ports, transfer: ExchangeTransfer) -> ExchangeTransfer:
    """Advance a return as far as possible now, and return the transfer as saved."""
    if transfer.currency is Currency.RUB:
        subject = (await operations.bring(RUB_RETURNS, ports, transfer.id)).subject
        return transfer if subject is None else subject.transfer
    return (await signed_transfers.bring(USDT_RETURNS, ports, transfer)).subject
