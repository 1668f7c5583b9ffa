"""Carrying out a return of what came for an exchange: RUB go back through their bank (bank_refunds.py), USDT by one
signed transfer (signed_transfers/). Each is recorded before it is sent, and the money leaves the books when it has
arrived (docs/exchanges.md "Rules"; domain/exchanges/returns.py).
"""

import logging
from datetime import datetime, timedelta

import msgspec

from ....ports.bank import RefundRequest, RefundState
from ....ports.bank import RefundStatus as AtBank
from ....ports.bundle import Ports
from ....ports.faults import NotConfigured, OutcomeUnknown, Refused, Stale, Unavailable
from ....ports.jobs import Job
from ....ports.payouts import SignedTransfer, TransferState
from ....ports.storage import Unit
from ...domain.exchanges.entries import money_returned, return_reversed
from ...domain.exchanges.exchanges import NETWORK, Exchange
from ...domain.exchanges.funds import ExchangeTransfer, returned, transfer_source
from ...domain.exchanges.returns import UNDER_WAY, MoneyReturn, ReturnStatus, ReturnTrigger, return_moved, return_signed
from ...domain.exchanges.reversals import returned_in_vain
from ...domain.ledger import Currency
from ..forgotten import may_be_forgotten
from ..ledger.ledger import post
from ..refunds.bank_refunds import look_up, next_look, next_reversal_look, read_refund, send_back
from ..schedule import FollowUp, reschedule
from ..sealed import return_fits
from ..signed_transfers.wallet import NOT_WIRED, broadcast, follow, look_pause, sign, sign_pause, stored
from ..units import retrying
from .steps import read_exchange, watch_again

RETURN_EXCHANGE = FollowUp("exchange.return")
"""The one job that sends the money of a transfer back."""

RETURN_RACES = ("jobs_id", "journal_id")
"""Unique rules whose Conflict means that another unit planned or booked a return first: read again."""

_S = ReturnStatus
_T = ReturnTrigger

log = logging.getLogger("cambist.exchanges")


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
    if transfer.sent_back.status not in UNDER_WAY:
        return Carried(transfer, None)
    try:
        return await _carry_usdt(ports, transfer, transfer.sent_back, attempts)
    except NotConfigured as fault:
        # What may have been sent must not go another way: it waits until its wallet is wired again.
        log.error("%s cannot be sent back: %s", transfer.id, fault)  # noqa: TRY400 - no slip of the program
        return Carried(transfer, ports.clock.now() + NOT_WIRED)


async def _carry_rub(ports: Ports, exchange: Exchange, transfer: ExchangeTransfer, attempts: int) -> Carried:
    back = _of(transfer)
    was_begun = back.status is not _S.PLANNED
    state: RefundState | None = None
    if back.status in UNDER_WAY:
        if not was_begun:
            transfer = await _moved(ports, transfer, _T.SENT)
            if _of(transfer).status is not _S.SENDING:
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
    return Carried(transfer, next_look(state, attempts, now) if _of(transfer).status in UNDER_WAY else None)


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
            return _arrived(ports, unit, exchange, transfer)
        if state.status is AtBank.FAILED and status is _S.SENDING:
            return unit[ExchangeTransfer].save(_with(transfer, _T.REFUSED, state.failure or "unknown"))
        if state.status is AtBank.REVERSED and status in (_S.SENDING, _S.RETURNED):
            if status is _S.RETURNED:
                post(unit, return_reversed(exchange, transfer, ports.clock.now()))
            after = msgspec.structs.replace(_with(transfer, _T.CAME_BACK), resolved_at=None)
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


async def _carry_usdt(ports: Ports, transfer: ExchangeTransfer, back: MoneyReturn, attempts: int) -> Carried:
    """Raises: NotConfigured when its wallet is not wired any more."""
    sender = ports.senders.named(back.sender or "")
    if back.tx_hash is None:
        if not return_fits(ports.vault, transfer):
            log.error("%s is not what the vault tagged: it is not signed, and an operator is to look", back.operation)
            return Carried(transfer, ports.clock.now() + NOT_WIRED)
        try:
            signed = await sign(sender, NETWORK, back.operation, back.address or "", back.amount)
        except Refused as fault:
            return Carried(await _moved(ports, transfer, _T.UNSIGNED, f"not signed, {fault.reason}"), None)
        except (Unavailable, OutcomeUnknown) as fault:
            # An unknown outcome is none here: signing sends nothing.
            log.warning("%s cannot be signed yet: %s", back.operation, fault)
            return Carried(transfer, ports.clock.now() + sign_pause(attempts, fault))
        transfer = await _store(ports, transfer, signed)
        back = _of(transfer)
        if back.status is _S.SENDING:
            await broadcast(sender, _signed(back))
        return _next(ports, transfer)
    try:
        followed = await follow(ports, sender, _signed(back))
    except (Unavailable, OutcomeUnknown, Refused) as fault:
        log.info("%s could not be looked at: %s", back.operation, fault)
        return _next(ports, transfer)
    if followed.state is TransferState.FINAL:
        return Carried(await _complete(ports, transfer), None)
    if followed.state is TransferState.FAILED:
        return Carried(await _moved(ports, transfer, _T.DISPROVED), ports.clock.now() + timedelta(seconds=1))
    return _next(ports, transfer)


def _signed(back: MoneyReturn) -> SignedTransfer:
    return stored(back.operation, back.tx_hash, back.blob, back.signed_until)


def _next(ports: Ports, transfer: ExchangeTransfer) -> Carried:
    now = ports.clock.now()
    return Carried(transfer, now + look_pause(_of(transfer).signed_until, now))


def _of(transfer: ExchangeTransfer) -> MoneyReturn:
    if transfer.sent_back is None:
        raise LookupError(f"{transfer.id} is not sent back")
    return transfer.sent_back


async def _same(unit: Unit, seen: ExchangeTransfer) -> ExchangeTransfer | None:
    """The transfer as it is now, where its return still stands as it was seen; else None. Raises: Stale when it is
    gone."""
    present = await unit[ExchangeTransfer].get(seen.id)
    if present is None:
        raise Stale(f"{seen.id} is gone")
    return present if present.sent_back == seen.sent_back else None


async def _moved(
    ports: Ports, seen: ExchangeTransfer, trigger: ReturnTrigger, failure: str | None = None
) -> ExchangeTransfer:
    async def work(unit: Unit) -> ExchangeTransfer:
        present = await _same(unit, seen)
        return seen if present is None else unit[ExchangeTransfer].save(_with(present, trigger, failure))

    return await retrying(ports.storage, work)


def _with(transfer: ExchangeTransfer, trigger: ReturnTrigger, failure: str | None = None) -> ExchangeTransfer:
    return msgspec.structs.replace(transfer, sent_back=return_moved(_of(transfer), trigger, failure))


async def _store(ports: Ports, seen: ExchangeTransfer, signed: SignedTransfer) -> ExchangeTransfer:
    """Of two that signed at once the first to come here counts; the other's transfer is dropped unsent."""

    async def work(unit: Unit) -> ExchangeTransfer:
        present = await _same(unit, seen)
        if present is None:
            return seen
        back = return_signed(_of(present), signed.tx_hash, signed.blob, signed.expires_at)
        return unit[ExchangeTransfer].save(msgspec.structs.replace(present, sent_back=back, went_by=back.tx_hash))

    return await retrying(ports.storage, work)


async def _complete(ports: Ports, seen: ExchangeTransfer) -> ExchangeTransfer:
    async def work(unit: Unit) -> ExchangeTransfer:
        present = await _same(unit, seen)
        if present is None:
            return seen
        return _arrived(ports, unit, await read_exchange(unit, present.exchange_id), present)

    return await retrying(ports.storage, work, again_on=RETURN_RACES)


def _arrived(ports: Ports, unit: Unit, exchange: Exchange, transfer: ExchangeTransfer) -> ExchangeTransfer:
    now = ports.clock.now()
    post(unit, money_returned(exchange, transfer, now))
    gone = _with(transfer, _T.ARRIVED)
    return unit[ExchangeTransfer].save(returned_in_vain(gone) if gone.taken_back else returned(gone, now))
