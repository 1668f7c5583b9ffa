"""How a payout gets onto the chain: signed once, stored, broadcast as stored, and followed to its end (DECISIONS 4
"Withdrawals").

A payout has one signed transfer in its life, and it is on disk before the network hears of it. So whatever is lost, a
process or an answer, there is only that one to send again; and its amount comes back only when the network proved that
it will never move. A payout that failed is not signed again: the next one takes the amount with all that is available.
"""

import logging
from datetime import datetime, timedelta

import msgspec

from ...ports.bundle import Ports
from ...ports.chain import Network
from ...ports.faults import NotConfigured, NotSupported, OutcomeUnknown, Refused, Unavailable
from ...ports.jobs import Job
from ...ports.payouts import SignedTransfer, TransferState, UsdtSender
from ...ports.storage import Unit
from ..domain import ids
from ..domain.accounts import Account
from ..domain.days import iso
from ..domain.events import Event, EventType
from ..domain.ledger import EntryKind, Purse, journal_entry
from ..domain.machine import IllegalMove
from ..domain.payloads import WithdrawalPayload
from ..domain.tron import is_tron_address
from ..domain.withdrawals import (
    GIVEN_BACK,
    WITHDRAWAL_MOVES,
    Withdrawal,
    WithdrawalStatus,
    moved,
    shown_hash,
    signed,
    way,
)
from .ledger import post
from .outbox import announce
from .units import retrying

EXECUTE = "payout.execute"

SIGN_LADDER = (
    timedelta(seconds=10),
    timedelta(seconds=30),
    timedelta(minutes=2),
    timedelta(minutes=10),
    timedelta(hours=1),
)
"""When a payout that could not be signed is tried again; after the last of them every hour. Nothing was sent, so there
is no end to it but an operator's."""

_NOT_WIRED = timedelta(hours=1)
_LOOKS = ((timedelta(minutes=5), timedelta(seconds=5)), (timedelta(hours=1), timedelta(minutes=1)))
"""Until so long after the end of the signed transfer, it is looked at so often."""
_LATE_LOOKS = timedelta(minutes=10)

_S = WithdrawalStatus

log = logging.getLogger("cambist.payouts")


class _Step(msgspec.Struct, frozen=True, kw_only=True):
    """What a run of the job found out."""

    to: WithdrawalStatus | None = None
    """Where the payout stands now; None: nothing is known that would move it."""
    failure: str | None = None
    pause: timedelta | None = None
    """Until the next run; None: as `next_look` has it."""


def job_of(withdrawal: Withdrawal) -> Job:
    """The one job that executes a payout."""
    now = withdrawal.created_at
    return Job(id=job_id(withdrawal.id), kind=EXECUTE, argument=withdrawal.id, due=now, created_at=now)


def job_id(withdrawal_id: str) -> str:
    """So that the operator who calls a payout off finds its job."""
    return f"{EXECUTE}:{withdrawal_id}"


async def execute(ports: Ports, job: Job) -> None:
    """Bring the payout that the job names one step further, as far as the network lets it."""
    async with ports.storage.unit() as unit:
        withdrawal = await unit[Withdrawal].get(job.argument)
    step = _Step()
    if withdrawal is not None and not WITHDRAWAL_MOVES.is_final(withdrawal.status):
        try:
            step = await _go_on(ports, job, withdrawal)
        except (NotConfigured, NotSupported) as fault:
            # What may have been sent must not go another way: it waits until the wallet is wired again.
            log.error("payout %s cannot go on: %s", withdrawal.id, fault)  # noqa: TRY400 - no slip of the program
            step = _Step(pause=_NOT_WIRED)
    await _enter(ports, job, step)


async def _go_on(ports: Ports, job: Job, withdrawal: Withdrawal) -> _Step:
    sender = ports.senders.named(withdrawal.sender)
    if withdrawal.status is not _S.PENDING:
        return await _look(ports, sender, withdrawal)
    try:
        transfer = await _sign(sender, withdrawal)
    except Refused as fault:
        log.warning("payout %s was refused at signing: %s", withdrawal.id, fault)
        return _Step(to=_S.CANCELLED, failure=f"not signed, {fault.reason}: {fault}")
    except (Unavailable, OutcomeUnknown) as fault:
        # An unknown outcome is none here: signing sends nothing.
        log.warning("payout %s cannot be signed yet: %s", withdrawal.id, fault)
        return _Step(pause=_later(SIGN_LADDER[min(max(job.attempts, 1), len(SIGN_LADDER)) - 1], fault))
    stored = await _store(ports, withdrawal.id, transfer)
    if stored.status is _S.PROCESSING:
        return await _broadcast(sender, stored)
    return _Step()


async def _sign(sender: UsdtSender, withdrawal: Withdrawal) -> SignedTransfer:
    if withdrawal.network == Network.TRON and not is_tron_address(withdrawal.wallet):
        # Checked when it was set, and again here: nobody can fetch back what went to a wrong address.
        raise Refused("the checksum of the address is wrong", reason="address")
    return await sender.sign(withdrawal.id, withdrawal.wallet, withdrawal.amount.units)


async def _store(ports: Ports, withdrawal_id: str, transfer: SignedTransfer) -> Withdrawal:
    """The payout with its signed transfer, on disk. Of two runs that signed at once the first to come here counts, and
    the other's transfer is dropped unsent; so it is when an operator called the payout off."""

    async def work(unit: Unit) -> Withdrawal:
        present = await unit[Withdrawal].get(withdrawal_id)
        if present is None:
            raise LookupError(f"{withdrawal_id} is gone")
        if present.status is not _S.PENDING:
            return present
        after = signed(present, transfer.tx_hash, transfer.blob, transfer.expires_at)
        after = msgspec.structs.replace(after, sequence=present.sequence + 1)
        await announce_withdrawal(ports, unit, after, present.status)
        return unit[Withdrawal].save(after)

    return await retrying(ports.storage, work)


async def _look(ports: Ports, sender: UsdtSender, withdrawal: Withdrawal) -> _Step:
    """Ask the network, and send the transfer once more where it does not know it and still may take it."""
    transfer = _transfer(withdrawal)
    try:
        state = await sender.state(transfer)
    except (Unavailable, OutcomeUnknown, Refused) as fault:
        log.info("payout %s: its transfer could not be looked at: %s", withdrawal.id, fault)
        return _Step(pause=_later(next_look(withdrawal, ports.clock.now()), fault))
    if state is TransferState.FINAL:
        return _Step(to=_S.COMPLETED)
    if state is TransferState.FAILED:
        return _Step(to=_S.FAILED, failure="the network proved that the transfer did not move the USDT and never will")
    if state is TransferState.IN_BLOCK:
        return _Step(to=_S.SENT)
    if ports.clock.now() < transfer.expires_at:
        return await _broadcast(sender, withdrawal)
    return _Step()


async def _broadcast(sender: UsdtSender, withdrawal: Withdrawal) -> _Step:
    """Send what is stored. Where that fails, in whatever way, nothing is said of the transfer: only the network's
    state tells, because an earlier broadcast may have arrived."""
    try:
        await sender.broadcast(_transfer(withdrawal))
    except (Refused, OutcomeUnknown, Unavailable) as fault:
        log.warning("payout %s: its transfer was not taken for certain: %s", withdrawal.id, fault)
        return _Step()
    return _Step(to=_S.SENT)


def _transfer(withdrawal: Withdrawal) -> SignedTransfer:
    if withdrawal.tx_hash is None or withdrawal.blob is None or withdrawal.signed_until is None:
        raise LookupError(f"{withdrawal.id} has no signed transfer")
    return SignedTransfer(
        operation=withdrawal.id,
        tx_hash=withdrawal.tx_hash,
        blob=withdrawal.blob,
        expires_at=withdrawal.signed_until,
    )


def _later(pause: timedelta, fault: Exception) -> timedelta:
    """The pause, or what the provider asked for where that is longer."""
    asked = fault.retry_after if isinstance(fault, Unavailable) else None
    return pause if asked is None else max(pause, timedelta(seconds=asked))


def next_look(withdrawal: Withdrawal, now: datetime) -> timedelta:
    """How long until the network is asked again: every 5 seconds while the transfer moves, then less and less."""
    passed = timedelta() if withdrawal.signed_until is None else now - withdrawal.signed_until
    return next((pause for until, pause in _LOOKS if passed < until), _LATE_LOOKS)


async def _enter(ports: Ports, job: Job, step: _Step) -> None:
    """Let the step take effect, and say when the job comes back, in one unit."""

    async def work(unit: Unit) -> None:
        present = await unit[Withdrawal].get(job.argument)
        if present is not None and step.to is not None:
            try:
                present = await advance(ports, unit, present, step.to, step.failure)
            except IllegalMove:
                # Another runner, or an operator, was first.
                log.warning("payout %s is %s and does not become %s", present.id, present.status, step.to)
        standing = await unit[Job].get(job.id)
        if standing is None:
            return
        if present is None or WITHDRAWAL_MOVES.is_final(present.status):
            unit[Job].remove(standing)
        elif standing.attempts == job.attempts:
            now = ports.clock.now()
            due = now + (step.pause or next_look(present, now))
            unit[Job].save(msgspec.structs.replace(standing, due=due, leased_until=None))

    await retrying(ports.storage, work)


async def advance(
    ports: Ports, unit: Unit, withdrawal: Withdrawal, to: WithdrawalStatus, failure: str | None = None
) -> Withdrawal:
    """Save a payout's way to `to` with an event for each move of it, and what its end means for the money.

    None of it happens when it stands there already. Raises: IllegalMove.
    """
    now = ports.clock.now()
    last = withdrawal
    for status in way(withdrawal.status, to):
        after = moved(last, status, now, failure)
        after = msgspec.structs.replace(after, sequence=last.sequence + 1)
        await announce_withdrawal(ports, unit, after, last.status)
        last = after
    if last is withdrawal:
        return withdrawal
    if last.status in GIVEN_BACK:
        book(ports, unit, last, EntryKind.PAYOUT_RELEASED, Purse.RESERVED, Purse.AVAILABLE)
    elif last.status is _S.COMPLETED:
        book(ports, unit, last, EntryKind.PAYOUT_SENT, Purse.RESERVED, Purse.PAID_OUT)
    return unit[Withdrawal].save(last)


def book(ports: Ports, unit: Unit, withdrawal: Withdrawal, kind: EntryKind, source: Purse, target: Purse) -> None:
    """Book the payout's amount from one purse of its merchant to another."""
    post(
        unit,
        journal_entry(
            kind,
            withdrawal.id,
            account_id=withdrawal.account_id,
            mode=withdrawal.mode,
            at=ports.clock.now(),
            postings={source: -withdrawal.amount.units, target: withdrawal.amount.units},
        ),
    )


async def announce_withdrawal(
    ports: Ports, unit: Unit, withdrawal: Withdrawal, previous: WithdrawalStatus | None
) -> None:
    """Write `withdrawal.status_changed` for what the same unit writes, its `sequence` raised for this event; `previous`
    is null for a new payout."""
    now = ports.clock.now()
    payload = WithdrawalPayload(
        event="withdrawal.status_changed",
        withdrawal_id=withdrawal.id,
        status=withdrawal.status,
        previous_status=previous,
        amount_usdt=str(withdrawal.amount),
        wallet_address=withdrawal.wallet,
        tx_hash=shown_hash(withdrawal),
        timestamp=iso(now),
    )
    event = Event(
        id=ids.prefixed(ids.EVENT, ports.ids.uuid()),
        account_id=withdrawal.account_id,
        mode=withdrawal.mode,
        type=EventType.WITHDRAWAL_STATUS_CHANGED,
        object_id=withdrawal.id,
        sequence=withdrawal.sequence,
        body=msgspec.json.encode(payload),
        created_at=now,
    )
    account = await unit[Account].get(withdrawal.account_id)
    announce(ports, unit, event, receives=account is not None and account.receives)
