"""Engine of all USDT transfers: each is signed once, stored, broadcast as stored, and followed to the network's proof
(docs/settlement.md "Payouts"; docs/exchanges.md "RUB to USDT").

Only transfers in the database are broadcast. So after the loss of a process or an answer, there is one transfer to send
again or to query. When several workers sign at once, the first to store its transfer broadcasts it, and the others'
transfers are dropped unsent. A transfer has one of three outcomes:

- final: the network moved the USDT;
- never: the network proved that it did not and will not. Only then may the subject be signed again, or its money be
  used otherwise;
- refused: the wallet will never sign it. Nothing was sent.

Any other answer proves nothing, and the engine polls again. A subject describes itself by a row (row.py), which catches
no fault and knows no job.
"""

import logging
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Generic

import msgspec

from ....ports.bundle import Ports
from ....ports.faults import NotConfigured, NotSupported, OutcomeUnknown, Refused, Stale, Unavailable
from ....ports.jobs import Job
from ....ports.payouts import SignedTransfer, TransferState
from ....ports.storage import Unit
from ..common.schedule import is_ours, set_due
from ..common.units import retrying
from .row import S, Sending, SignedTransfers
from .wallet import broadcast, look, sign

SIGN_BACKOFF = (
    timedelta(seconds=10),
    timedelta(seconds=30),
    timedelta(minutes=2),
    timedelta(minutes=10),
    timedelta(hours=1),
)
"""Backoff schedule of signing; after the last step every hour. Nothing was sent, so only an operator ends it."""
NOT_WIRED = timedelta(hours=1)
"""Pause while the wallet is not wired. A transfer that may have been sent must not be sent by another wallet."""
FORGED = timedelta(hours=1)
"""Pause before the next check of a subject whose tag does not match."""
ANEW = timedelta(seconds=1)
"""Pause after the network's proof that a transfer never takes effect, if a new one may be signed."""

_POLLS = ((timedelta(minutes=5), timedelta(seconds=5)), (timedelta(hours=1), timedelta(minutes=1)))
"""Poll intervals, each up to this time after the signed transfer's expiry."""
_LATE_POLLS = timedelta(minutes=10)
_ENDLESS_POLLS = timedelta(seconds=15)
"""Poll interval of a transfer that never expires: about one block of Ethereum, which is also when a fee is raised."""

log = logging.getLogger("cambist.payouts")


class Standing(msgspec.Struct, Generic[S], frozen=True):
    """A subject after a run, and the pause until the next run; None if the subject is over."""

    subject: S
    pause: timedelta | None


class _Step(msgspec.Struct, Generic[S], frozen=True):
    """Result of a run."""

    subject: S
    """The subject as last stored."""
    then: Callable[[Ports, Unit, S], Awaitable[S]] | None = None
    """Change to apply to the subject, which is not saved yet. None when the run found nothing to change."""
    pause: timedelta | None = None
    """Pause until the next run, if it differs from `poll_pause`."""


async def follow(row: SignedTransfers[S], ports: Ports, job: Job) -> None:
    """Run the job of a subject without other work: take one step, then save its result and the job's next due time in
    one unit."""
    seen = await ports.storage.get(row.record, job.argument)
    step = None if seen is None else await _step(row, ports, seen, job.attempts)

    async def work(unit: Unit) -> None:
        entered = None if step is None else await _enter(ports, unit, row, step)
        standing = await unit[Job].get(job.id)
        if standing is None:
            return
        if entered is None or entered.pause is None:
            # Another worker with this job would find nothing left to do.
            unit[Job].remove(standing)
        elif is_ours(standing, job):
            set_due(unit, standing, ports.clock.now() + entered.pause)

    await retrying(ports.storage, work, again_on=row.races)


async def bring(row: SignedTransfers[S], ports: Ports, seen: S, attempts: int = 1) -> Standing[S]:
    """Take one step for a subject whose job does more than this. `attempts`: runs so far, for the pause after a failure
    to sign. Raises: Stale when the subject is gone."""
    return await _conclude(row, ports, await _step(row, ports, seen, attempts))


async def refuse(row: SignedTransfers[S], ports: Ports, seen: S, failure: str) -> S:
    """End the subject as if its wallet had refused to sign, unless it is already signed. Return the subject as it is
    then. Raises: Stale."""
    sending = row.sending(seen)
    if sending is None or sending.signed is not None:
        return seen
    return (await _conclude(row, ports, _refused(row, seen, failure))).subject


async def sign_only(row: SignedTransfers[S], ports: Ports, subject: S) -> S:
    """Sign and store without sending, the state that a process leaves when it dies in between. Raises: the exceptions
    of `wallet.sign`; NotConfigured, NotSupported; Unavailable if the vault's tag does not match; Stale."""
    sending = row.sending(subject)
    if sending is None or sending.signed is not None:
        return subject
    return await _store(row, ports, subject, await _signed(row, ports, subject, sending))


async def _step(row: SignedTransfers[S], ports: Ports, seen: S, attempts: int) -> _Step[S]:
    sending, present = row.sending(seen), seen
    if sending is None:
        return _Step(seen)
    try:
        if sending.signed is not None:
            return await _look(row, ports, seen, sending, sending.signed)
        try:
            signed = await _signed(row, ports, seen, sending)
        except Refused as fault:
            log.warning("%s was refused at signing: %s", sending.operation, fault)
            return _refused(row, seen, f"not signed, {fault.reason}: {fault}")
        except (Unavailable, OutcomeUnknown) as fault:
            # Signing sends nothing, so an unknown outcome is harmless here.
            log.warning("%s cannot be signed yet: %s", sending.operation, fault)
            return _Step(seen, pause=sign_pause(attempts, fault))
        present = await _store(row, ports, seen, signed)
        return await _send(row, ports, present, signed)
    except (NotConfigured, NotSupported) as fault:
        log.error("%s cannot go on: %s", sending.operation, fault)  # noqa: TRY400 - no slip of the program
        return _Step(present, pause=NOT_WIRED)


def _refused(row: SignedTransfers[S], seen: S, failure: str) -> _Step[S]:
    return _Step(seen, lambda ports, unit, present: row.refused(ports, unit, present, failure))


async def _signed(row: SignedTransfers[S], ports: Ports, subject: S, sending: Sending) -> SignedTransfer:
    if not row.is_as_decided(ports.vault, subject):
        log.error("%s is not what the vault tagged: it is not signed, and an operator is to look", sending.operation)
        raise Unavailable(f"{sending.operation} is not what the vault tagged", retry_after=FORGED.total_seconds())
    sender = ports.senders.named(sending.sender)
    return await sign(sender, sending.network, sending.operation, sending.address, sending.units)


async def _store(row: SignedTransfers[S], ports: Ports, seen: S, signed: SignedTransfer) -> S:
    """Store the subject with its signed transfer and return it. If another worker was first, return it with that
    transfer. If it was called off, return it without one."""

    async def work(unit: Unit) -> S:
        present = await unit[row.record].get(seen.id)
        if present is None:
            # The subject was deleted with the account's test data, and so was its job.
            raise Stale(f"{seen.id} is gone")
        return await row.store(ports, unit, present, signed) if _is_as_seen(row, present, seen) else present

    return await retrying(ports.storage, work, again_on=row.races)


async def _send(row: SignedTransfers[S], ports: Ports, present: S, signed: SignedTransfer) -> _Step[S]:
    sending = row.sending(present)
    if sending is None or sending.signed != signed:
        return _Step(present)
    was_taken = await broadcast(ports.senders.named(sending.sender), signed)
    return _taken(row, present) if was_taken else _Step(present)


async def _look(
    row: SignedTransfers[S], ports: Ports, subject: S, sending: Sending, signed: SignedTransfer
) -> _Step[S]:
    try:
        seen = await look(ports, ports.senders.named(sending.sender), signed)
    except (Unavailable, OutcomeUnknown, Refused) as fault:
        log.info("%s: its transfer could not be looked at: %s", sending.operation, fault)
        return _Step(subject, pause=_later(poll_pause(signed.expires_at, ports.clock.now()), fault))
    if seen.state is TransferState.FINAL:
        return _Step(subject, _final(row, seen.by))
    if seen.state is TransferState.FAILED:
        return _Step(subject, row.never)
    return _taken(row, subject) if seen.taken else _Step(subject)


def _final(row: SignedTransfers[S], by: SignedTransfer | None) -> Callable[[Ports, Unit, S], Awaitable[S]]:
    async def tell(ports: Ports, unit: Unit, present: S) -> S:
        return await row.final(ports, unit, present if by is None else row.replaced(present, by))

    return tell


def _taken(row: SignedTransfers[S], seen: S) -> _Step[S]:
    async def tell(ports: Ports, unit: Unit, present: S) -> S:
        return await row.taken(ports, unit, present) if _awaits_taken(row, present) else present

    return _Step(seen, tell if _awaits_taken(row, seen) else None)


def _awaits_taken(row: SignedTransfers[S], subject: S) -> bool:
    sending = row.sending(subject)
    return sending is not None and sending.awaits_taken


async def _conclude(row: SignedTransfers[S], ports: Ports, step: _Step[S]) -> Standing[S]:
    async def work(unit: Unit) -> Standing[S]:
        entered = await _enter(ports, unit, row, step)
        if entered is None:
            raise Stale(f"{step.subject.id} is gone")
        return entered

    if step.then is None:
        return Standing(step.subject, _pause(row, ports, step.subject, step))
    return await retrying(ports.storage, work, again_on=row.races)


async def _enter(ports: Ports, unit: Unit, row: SignedTransfers[S], step: _Step[S]) -> Standing[S] | None:
    """Apply a step's change to the subject, once, if it still has the transfer that the step is about. None when the
    subject is gone."""
    present = await unit[row.record].get(step.subject.id)
    if present is None:
        return None
    if step.then is not None and _is_as_seen(row, present, step.subject):
        present = await step.then(ports, unit, present)
    return Standing(present, _pause(row, ports, present, step))


def _is_as_seen(row: SignedTransfers[S], present: S, seen: S) -> bool:
    """Return whether the subject's transfer, or the lack of one, is as the step saw it. Other changes to the subject do
    not matter, because the step's finding is about the transfer only."""
    now, then = row.sending(present), row.sending(seen)
    return now is not None and then is not None and (now.operation, now.signed) == (then.operation, then.signed)


def _pause(row: SignedTransfers[S], ports: Ports, present: S, step: _Step[S]) -> timedelta | None:
    sending = row.sending(present)
    if sending is None:
        return None
    if step.pause is not None:
        return step.pause
    return ANEW if sending.signed is None else poll_pause(sending.signed.expires_at, ports.clock.now())


def sign_pause(attempts: int, fault: Exception) -> timedelta:
    """Return the pause before signing is tried again, after so many attempts."""
    return _later(SIGN_BACKOFF[min(max(attempts, 1), len(SIGN_BACKOFF)) - 1], fault)


def poll_pause(signed_until: datetime | None, now: datetime) -> timedelta:
    """Return the pause before the next poll of the network: 5 seconds while the transfer is valid and shortly after,
    then longer; constant for a transfer that never expires."""
    if signed_until is None:
        return _ENDLESS_POLLS
    passed = now - signed_until
    return next((pause for until, pause in _POLLS if passed < until), _LATE_POLLS)


def _later(pause: timedelta, fault: Exception) -> timedelta:
    """Return the pause, or the provider's own if that is longer."""
    asked = fault.retry_after if isinstance(fault, Unavailable) else None
    return pause if asked is None else max(pause, timedelta(seconds=asked))
