"""How USDT get onto the chain, whoever they are for: signed once, stored, broadcast as stored, and followed to the
network's proof (docs/settlement.md "Payouts"; docs/exchanges.md "RUB to USDT").

The story is told here once. Nothing that the database does not hold is ever broadcast: so whatever is lost, a process
or an answer, there is one transfer to send again or to ask for. Of several that sign at once the first to store counts,
and who stored it broadcasts it; what the others signed is dropped unsent. A transfer ends in one of three ways:

- final: the network moved the USDT;
- never: the network proved that it did not and will not, which alone lets the subject be signed again, or its money go;
- refused: the wallet will not sign it, ever. Nothing was sent.

All else says nothing, and is asked again. A subject describes itself by a row (row.py), which catches no fault and
knows no job.
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
from ..schedule import is_ours, set_due
from ..units import retrying
from .row import S, Sending, SignedTransfers
from .wallet import broadcast, look, sign

SIGN_LADDER = (
    timedelta(seconds=10),
    timedelta(seconds=30),
    timedelta(minutes=2),
    timedelta(minutes=10),
    timedelta(hours=1),
)
"""When what could not be signed is tried again; after the last of them every hour. Nothing was sent, so there is no end
to it but an operator's."""
NOT_WIRED = timedelta(hours=1)
"""What may have been sent must not go another way: it waits until its wallet is wired again."""
FORGED = timedelta(hours=1)
"""How long until a subject that is not what the vault tagged is looked at again."""
ANEW = timedelta(seconds=1)
"""After the network proved that a transfer never takes effect, where another may be signed."""

_LOOKS = ((timedelta(minutes=5), timedelta(seconds=5)), (timedelta(hours=1), timedelta(minutes=1)))
"""Until so long after the end of the signed transfer, it is looked at so often."""
_LATE_LOOKS = timedelta(minutes=10)
_ENDLESS_LOOKS = timedelta(seconds=15)
"""At one that never expires: about a block of Ethereum's, which is where a fee is raised, too."""

log = logging.getLogger("cambist.payouts")


class Standing(msgspec.Struct, Generic[S], frozen=True):
    """A subject as it stands after a run, and after how long it is worthwhile to come back; None: it is over."""

    subject: S
    pause: timedelta | None


class _Step(msgspec.Struct, Generic[S], frozen=True):
    """What a run did and found out."""

    subject: S
    """As it was stored last."""
    then: Callable[[Ports, Unit, S], Awaitable[S]] | None = None
    """What the subject is to be told, which has no effect yet; None: nothing is known that would move it."""
    pause: timedelta | None = None
    """Until the next run, where it is another than `look_pause`."""


async def follow(row: SignedTransfers[S], ports: Ports, job: Job) -> None:
    """The job of a subject that has no other work: one step further, and in one unit what that leads to and when the
    job comes back."""
    seen = await ports.storage.get(row.record, job.argument)
    step = None if seen is None else await _step(row, ports, seen, job.attempts)

    async def work(unit: Unit) -> None:
        entered = None if step is None else await _enter(ports, unit, row, step)
        standing = await unit[Job].get(job.id)
        if standing is None:
            return
        if entered is None or entered.pause is None:
            # Nobody who has it by now would find anything left to do.
            unit[Job].remove(standing)
        elif is_ours(standing, job):
            set_due(unit, standing, ports.clock.now() + entered.pause)

    await retrying(ports.storage, work, again_on=row.races)


async def bring(row: SignedTransfers[S], ports: Ports, seen: S, attempts: int = 1) -> Standing[S]:
    """The same for a subject whose job does more than this. `attempts`: runs so far, for the pause after a failure to
    sign. Raises: Stale when the subject is gone."""
    return await _conclude(row, ports, await _step(row, ports, seen, attempts))


async def refuse(row: SignedTransfers[S], ports: Ports, seen: S, failure: str) -> S:
    """Have it end as if its wallet refused to sign it, unless it is signed; how it then stands. Raises: Stale."""
    sending = row.sending(seen)
    if sending is None or sending.signed is not None:
        return seen
    return (await _conclude(row, ports, _refused(row, seen, failure))).subject


async def sign_only(row: SignedTransfers[S], ports: Ports, subject: S) -> S:
    """Sign and store, and send nothing: as a process that dies in between leaves it. Raises: what `wallet.sign` raises;
    NotConfigured, NotSupported; Unavailable for one that is not what the vault tagged; Stale."""
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
            # An unknown outcome is none here: signing sends nothing.
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
    """The subject on disk with its signed transfer; with another's where that was first, or without, where it was
    called off."""

    async def work(unit: Unit) -> S:
        present = await unit[row.record].get(seen.id)
        if present is None:
            # Forgotten with the account's test data; so is its job.
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
        return _Step(subject, pause=_later(look_pause(signed.expires_at, ports.clock.now()), fault))
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
    """Tell the subject, once, where what it is told is said of the transfer that it has; None: it is gone."""
    present = await unit[row.record].get(step.subject.id)
    if present is None:
        return None
    if step.then is not None and _is_as_seen(row, present, step.subject):
        present = await step.then(ports, unit, present)
    return Standing(present, _pause(row, ports, present, step))


def _is_as_seen(row: SignedTransfers[S], present: S, seen: S) -> bool:
    """Whether the same transfer, or the lack of one, is on its way as was seen: of all else that is written to a
    subject meanwhile, what was heard is true just the same."""
    now, then = row.sending(present), row.sending(seen)
    return now is not None and then is not None and (now.operation, now.signed) == (then.operation, then.signed)


def _pause(row: SignedTransfers[S], ports: Ports, present: S, step: _Step[S]) -> timedelta | None:
    sending = row.sending(present)
    if sending is None:
        return None
    if step.pause is not None:
        return step.pause
    return ANEW if sending.signed is None else look_pause(sending.signed.expires_at, ports.clock.now())


def sign_pause(attempts: int, fault: Exception) -> timedelta:
    """How long until signing is tried again, after so many attempts."""
    return _later(SIGN_LADDER[min(max(attempts, 1), len(SIGN_LADDER)) - 1], fault)


def look_pause(signed_until: datetime | None, now: datetime) -> timedelta:
    """How long until the network is asked again: every 5 seconds while the transfer moves, then less and less; always
    alike where it never expires."""
    if signed_until is None:
        return _ENDLESS_LOOKS
    passed = now - signed_until
    return next((pause for until, pause in _LOOKS if passed < until), _LATE_LOOKS)


def _later(pause: timedelta, fault: Exception) -> timedelta:
    """The pause, or what the provider asked for where that is longer."""
    asked = fault.retry_after if isinstance(fault, Unavailable) else None
    return pause if asked is None else max(pause, timedelta(seconds=asked))
