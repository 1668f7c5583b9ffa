"""Carrying out a return of what came for an exchange: RUB go back through their bank (bank_refunds.py), USDT by one
signed transfer (usdt_return.py). Each is recorded before it is sent, and the money leaves the books when it has arrived
(docs/exchanges.md "Rules"; domain/exchanges/returns.py).
"""

from datetime import datetime

import msgspec

from ....ports.bank import RefundRequest, RefundState
from ....ports.bank import RefundStatus as AtBank
from ....ports.bundle import Ports
from ....ports.faults import Stale
from ....ports.jobs import Job
from ....ports.storage import Unit
from ...domain.exchanges.entries import return_reversed
from ...domain.exchanges.exchanges import Exchange
from ...domain.exchanges.funds import ExchangeTransfer, transfer_source
from ...domain.exchanges.returns import UNDER_WAY, ReturnStatus, ReturnTrigger
from ...domain.ledger import Currency
from ..forgotten import may_be_forgotten
from ..ledger.ledger import post
from ..refunds.bank_refunds import look_up, next_look, next_reversal_look, read_refund, send_back
from ..schedule import FollowUp, reschedule
from ..signed_transfers.engine import bring
from ..units import retrying
from .return_steps import arrive, return_of, with_return_moved
from .steps import read_exchange, watch_again
from .usdt_return import USDT_RETURNS

RETURN_EXCHANGE = FollowUp("exchange.return")
"""The one job that sends the money of a transfer back."""

RETURN_RACES = ("jobs_id", "journal_id")
"""Unique rules whose Conflict means that another unit planned or booked a return first: read again."""

_S = ReturnStatus
_T = ReturnTrigger


class Carried(msgspec.Struct, frozen=True):
    """How a return stands, and when it is looked at again; None: there is no more to do."""

    transfer: ExchangeTransfer
    due: datetime | None


async def carry_return(ports: Ports, job: Job) -> None:
    """The job: asks bank or network, looks again until there is an end, and later whether RUB came back."""
    carried = await carry(ports, job.argument, job.attempts)

    async def next_due(unit: Unit) -> datetime | None:
        standing = await unit[ExchangeTransfer].get(job.argument)
        if carried is None:
            return None
        if standing is not None and standing.version != carried.transfer.version:
            # A notice, or a new decision, moved it meanwhile: what we know of it is old.
            return ports.clock.now()
        return carried.due

    await reschedule(ports, job, next_due)


async def carry(ports: Ports, transfer_id: str, attempts: int = 1) -> Carried | None:
    """Bring a return as far as it goes now; None when the transfer is gone, or nobody sends it back."""
    async with ports.storage.unit() as unit:
        transfer = await unit[ExchangeTransfer].get(transfer_id)
        exchange = None if transfer is None else await unit[Exchange].get(transfer.exchange_id)
    if transfer is None or exchange is None or transfer.sent_back is None:
        return None
    if transfer.currency is Currency.RUB:
        return await _carry_rub(ports, exchange, transfer, attempts)
    standing = await bring(ports, USDT_RETURNS, transfer, attempts)
    return Carried(standing.subject, None if standing.pause is None else ports.clock.now() + standing.pause)


async def _carry_rub(ports: Ports, exchange: Exchange, transfer: ExchangeTransfer, attempts: int) -> Carried:
    back = return_of(transfer)
    was_begun = back.status is not _S.PLANNED
    state: RefundState | None = None
    if back.status in UNDER_WAY:
        if not was_begun:
            transfer = await _moved(ports, transfer, _T.SENT)
            if return_of(transfer).status is not _S.SENDING:
                return Carried(transfer, ports.clock.now())  # another one has it in hand, or had
        request = RefundRequest(
            operation=back.operation,
            reference=exchange.invoice_reference or "",
            amount_kopecks=back.amount,
            transfer=transfer_source(transfer),
        )
        asked_before = was_begun or may_be_forgotten(ports, back.created_at)
        state = await send_back(ports, exchange, request, asked_before=asked_before)
    elif back.status is _S.RETURNED:
        state = await look_up(ports, exchange, back.operation)
    if state is not None:
        transfer = await conclude(ports, transfer.id, back.operation, state) or transfer
    now = ports.clock.now()
    if transfer.resolved_at is not None:
        return Carried(transfer, next_reversal_look(transfer.resolved_at, now))
    return Carried(transfer, next_look(state, attempts, now) if return_of(transfer).status in UNDER_WAY else None)


async def conclude(ports: Ports, transfer_id: str, operation: str, state: RefundState) -> ExchangeTransfer | None:
    """Let the bank's word on an attempt take effect; the transfer as it then stands. What it says of an earlier
    attempt, or said before, changes nothing."""

    async def work(unit: Unit) -> ExchangeTransfer | None:
        transfer = await unit[ExchangeTransfer].get(transfer_id)
        if transfer is None or transfer.sent_back is None or transfer.sent_back.operation != operation:
            return transfer
        exchange = await read_exchange(unit, transfer.exchange_id)
        status = transfer.sent_back.status
        if state.status is not AtBank.PROCESSING and status is _S.SENDING:
            # Of RUB that the payer's bank took while they were on their way back nothing could be decided.
            await watch_again(ports, unit, exchange.id)
        if state.status is AtBank.DONE and status in (_S.SENDING, _S.FAILED):
            return arrive(ports, unit, exchange, transfer)
        if state.status is AtBank.FAILED and status is _S.SENDING:
            return unit[ExchangeTransfer].save(with_return_moved(transfer, _T.REFUSED, state.failure or "unknown"))
        if state.status is AtBank.REVERSED and status in (_S.SENDING, _S.RETURNED):
            if status is _S.RETURNED:
                post(unit, return_reversed(exchange, transfer, ports.clock.now()))
            after = msgspec.structs.replace(with_return_moved(transfer, _T.CAME_BACK), resolved_at=None)
            return unit[ExchangeTransfer].save(after)
        return transfer

    # Told twice at once, the second finds it booked.
    return await retrying(ports.storage, work, again_on=RETURN_RACES)


async def on_return_notice(ports: Ports, transfer_id: str, operation: str) -> None:
    """The bank says that something happened to RUB that are sent back. Raises: what the bank port raises."""
    async with ports.storage.unit() as unit:
        transfer = await unit[ExchangeTransfer].get(transfer_id)
        exchange = None if transfer is None else await unit[Exchange].get(transfer.exchange_id)
    if exchange is None:
        return
    state = await read_refund(ports, exchange, operation)
    if state is not None:
        await conclude(ports, transfer_id, operation, state)


async def _same(unit: Unit, seen: ExchangeTransfer) -> ExchangeTransfer | None:
    """The transfer as it is now, where its return still stands as it was seen; else None. Raises: Stale when it is
    gone."""
    present = await unit[ExchangeTransfer].get(seen.id)
    if present is None:
        raise Stale(f"{seen.id} is gone")
    return present if present.sent_back == seen.sent_back else None


async def _moved(ports: Ports, seen: ExchangeTransfer, trigger: ReturnTrigger) -> ExchangeTransfer:
    async def work(unit: Unit) -> ExchangeTransfer:
        present = await _same(unit, seen)
        return seen if present is None else unit[ExchangeTransfer].save(with_return_moved(present, trigger))

    return await retrying(ports.storage, work)
