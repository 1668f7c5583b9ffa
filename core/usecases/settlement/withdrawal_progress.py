"""How a payout gets onto the chain: signed once, stored, broadcast as stored, and followed to its end
(docs/settlement.md "Payouts").

A payout has one signed transfer in its life, and it is on disk before the network hears of it. So whatever is lost, a
process or an answer, there is only that one to send again; and its amount comes back only when the network proved that
it will never move. A payout that failed is not signed again: the next one takes the amount with all that is available.
"""

import logging
from datetime import datetime, timedelta

import msgspec

from ....ports.bundle import Ports
from ....ports.faults import NotConfigured, NotSupported, OutcomeUnknown, Refused, Stale, Unavailable
from ....ports.jobs import Job
from ....ports.payouts import SignedTransfer, TransferState, UsdtSender
from ....ports.storage import Unit
from ...domain.days import iso
from ...domain.ledger import EntryKind, Purse
from ...domain.machine import IllegalMove
from ...domain.payloads import WithdrawalPayload
from ...domain.settlement.withdrawals import (
    GIVEN_BACK,
    WITHDRAWAL_MOVES,
    Withdrawal,
    WithdrawalStatus,
    WithdrawalTrigger,
    moved,
    shown_hash,
    signed,
    way,
)
from ...domain.webhooks.events import EventType
from ..ledger.ledger import book
from ..schedule import FollowUp, is_ours, set_due
from ..sealed import withdrawal_fits
from ..signed_transfers.wallet import (
    NOT_WIRED,
    PROVEN_NOT_SENT,
    broadcast,
    follow,
    later,
    look_pause,
    sign,
    sign_pause,
    stored,
)
from ..units import retrying
from ..webhooks.outbox import announce_of

EXECUTE = FollowUp("payout.execute")
"""The one job that executes a payout."""

_S = WithdrawalStatus
_T = WithdrawalTrigger

_FORGED = timedelta(hours=1)
"""How long until a payout that is not what the vault tagged is looked at again."""

log = logging.getLogger("cambist.payouts")


class _Step(msgspec.Struct, frozen=True, kw_only=True):
    """What a run of the job found out."""

    trigger: WithdrawalTrigger | None = None
    """What happened to the payout; None: nothing is known that would move it."""
    failure: str | None = None
    pause: timedelta | None = None
    """Until the next run; None: as `next_look` has it."""


async def execute(ports: Ports, job: Job) -> None:
    """Bring the payout that the job names one step further, as far as the network lets it."""
    withdrawal = await ports.storage.get(Withdrawal, job.argument)
    step = _Step()
    if withdrawal is not None and not WITHDRAWAL_MOVES.is_final(withdrawal.status):
        try:
            step = await _go_on(ports, job, withdrawal)
        except (NotConfigured, NotSupported) as fault:
            # What may have been sent must not go another way: it waits until the wallet is wired again.
            log.error("payout %s cannot go on: %s", withdrawal.id, fault)  # noqa: TRY400 - no slip of the program
            step = _Step(pause=NOT_WIRED)
    await _enter(ports, job, step)


async def _go_on(ports: Ports, job: Job, withdrawal: Withdrawal) -> _Step:
    sender = ports.senders.named(withdrawal.sender)
    if withdrawal.status is not _S.PENDING:
        return await _look(ports, sender, withdrawal)
    if not withdrawal_fits(ports.vault, withdrawal):
        log.error("payout %s is not what the vault tagged: it is not signed, and an operator is to look", withdrawal.id)
        return _Step(pause=_FORGED)
    try:
        transfer = await sign(sender, withdrawal.network, withdrawal.id, withdrawal.wallet, withdrawal.amount.units)
    except Refused as fault:
        log.warning("payout %s was refused at signing: %s", withdrawal.id, fault)
        return _Step(trigger=_T.CALLED_OFF, failure=f"not signed, {fault.reason}: {fault}")
    except (Unavailable, OutcomeUnknown) as fault:
        # An unknown outcome is none here: signing sends nothing.
        log.warning("payout %s cannot be signed yet: %s", withdrawal.id, fault)
        return _Step(pause=sign_pause(job.attempts, fault))
    present = await _store(ports, withdrawal.id, transfer)
    if present.status is _S.PROCESSING and await broadcast(sender, _transfer(present)):
        return _Step(trigger=_T.TAKEN)
    return _Step()


async def sign_only(ports: Ports, withdrawal: Withdrawal) -> Withdrawal:
    """Sign and store a pending payout, and send nothing: as a process that dies in between leaves it. Its job goes on
    from there. Raises: what the wallet's `sign` raises; NotConfigured, NotSupported; Unavailable for one that is not
    what the vault tagged."""
    if not withdrawal_fits(ports.vault, withdrawal):
        raise Unavailable(f"payout {withdrawal.id} is not what the vault tagged")
    sender = ports.senders.named(withdrawal.sender)
    transfer = await sign(sender, withdrawal.network, withdrawal.id, withdrawal.wallet, withdrawal.amount.units)
    return await _store(ports, withdrawal.id, transfer)


async def _store(ports: Ports, withdrawal_id: str, transfer: SignedTransfer) -> Withdrawal:
    """The payout with its signed transfer, on disk. Of two runs that signed at once the first to come here counts, and
    the other's transfer is dropped unsent; so it is when an operator called the payout off."""

    async def work(unit: Unit) -> Withdrawal:
        present = await unit[Withdrawal].get(withdrawal_id)
        if present is None:
            # Forgotten with the account's test data; so is the job.
            raise Stale(f"{withdrawal_id} is gone")
        if present.status is not _S.PENDING:
            return present
        return await enter_signed(ports, unit, present, transfer)

    return await retrying(ports.storage, work)


async def enter_signed(ports: Ports, unit: Unit, pending: Withdrawal, transfer: SignedTransfer) -> Withdrawal:
    """Save a pending payout with its signed transfer, and with the event of that."""
    after = signed(pending, transfer.tx_hash, transfer.blob, transfer.expires_at)
    await announce_withdrawal(ports, unit, after, pending.status)
    return unit[Withdrawal].save(after)


async def _look(ports: Ports, sender: UsdtSender, withdrawal: Withdrawal) -> _Step:
    """What the network says of the transfer; it is sent once more where the network does not know it."""
    try:
        followed = await follow(ports, sender, _transfer(withdrawal))
    except (Unavailable, OutcomeUnknown, Refused) as fault:
        log.info("payout %s: its transfer could not be looked at: %s", withdrawal.id, fault)
        return _Step(pause=later(next_look(withdrawal, ports.clock.now()), fault))
    if followed.state is TransferState.FINAL:
        return _Step(trigger=_T.FINAL)
    if followed.state is TransferState.FAILED:
        return _Step(trigger=_T.DISPROVED, failure=PROVEN_NOT_SENT)
    if followed.state is TransferState.IN_BLOCK or followed.taken:
        return _Step(trigger=_T.TAKEN)
    return _Step()


def _transfer(withdrawal: Withdrawal) -> SignedTransfer:
    return stored(withdrawal.id, withdrawal.tx_hash, withdrawal.blob, withdrawal.signed_until)


def next_look(withdrawal: Withdrawal, now: datetime) -> timedelta:
    """How long until the network is asked again."""
    return look_pause(withdrawal.signed_until, now)


async def _enter(ports: Ports, job: Job, step: _Step) -> None:
    """Let the step take effect, and say when the job comes back, in one unit."""

    async def work(unit: Unit) -> None:
        present = await unit[Withdrawal].get(job.argument)
        if present is not None and step.trigger is not None:
            try:
                present = await advance(ports, unit, present, step.trigger, step.failure)
            except IllegalMove:
                # Another runner, or an operator, was first.
                log.warning("payout %s is %s and is not moved by: %s", present.id, present.status, step.trigger)
        standing = await unit[Job].get(job.id)
        if standing is None:
            return
        if present is None or WITHDRAWAL_MOVES.is_final(present.status):
            unit[Job].remove(standing)
        elif is_ours(standing, job):
            now = ports.clock.now()
            set_due(unit, standing, now + (step.pause or next_look(present, now)))

    await retrying(ports.storage, work)


async def advance(
    ports: Ports, unit: Unit, withdrawal: Withdrawal, trigger: WithdrawalTrigger, failure: str | None = None
) -> Withdrawal:
    """Save where `trigger` leads a payout, with an event for each move on the way and what its end means for the money.

    Nothing is written where it has led there already. Raises: IllegalMove.
    """
    now = ports.clock.now()
    last = withdrawal
    for each in way(withdrawal.status, trigger):
        after = moved(last, each, now, failure)
        await announce_withdrawal(ports, unit, after, last.status)
        last = after
    if last is withdrawal:
        return withdrawal
    if last.status in GIVEN_BACK:
        book_payout(ports, unit, last, EntryKind.PAYOUT_RELEASED, Purse.RESERVED, Purse.AVAILABLE)
    elif last.status is _S.COMPLETED:
        book_payout(ports, unit, last, EntryKind.PAYOUT_SENT, Purse.RESERVED, Purse.PAID_OUT)
    return unit[Withdrawal].save(last)


def book_payout(
    ports: Ports,
    unit: Unit,
    withdrawal: Withdrawal,
    kind: EntryKind,
    source: Purse,
    target: Purse,
    *,
    corrected: int | None = None,
) -> None:
    """Book the payout's amount from one purse of its merchant to another; or the units by which what was booked so is
    `corrected`, which may be below zero."""
    units = withdrawal.amount.units if corrected is None else corrected
    book(ports, unit, kind, withdrawal, {source: -units, target: units}, revision=1 if corrected is None else 2)


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
    await announce_of(ports, unit, withdrawal, EventType.WITHDRAWAL_STATUS_CHANGED, payload)
