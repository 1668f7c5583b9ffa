"""Follows an operation at a provider to its outcome (ARCHITECTURE.md "Three outcomes").

An operation is recorded before it is sent, and looked up by its id before it is sent again. An answer or a
notification, even late, repeated or concurrent, takes effect in one unit, so concurrent runs and crashes are harmless.
Each kind of operation implements Operation (operation.py). Only this module catches a provider's faults and retries
units.

`look_up` and `send` only call the provider, and return its faults; `receive` raises them. Faults of the storage are
always raised.
"""

import logging
from datetime import datetime

from ....ports.bundle import Ports
from ....ports.faults import NO_ANSWER, Fault, NotConfigured, NotSupported, OutcomeUnknown, Refused, Unavailable
from ....ports.jobs import Job
from ....ports.storage import Unit
from ..common.forgotten import may_be_forgotten
from ..common.schedule import reschedule
from ..common.units import retrying
from .operation import A, Followed, Looked, Operation, P, S, Standing, Want

log = logging.getLogger("cambist.operations")


async def follow(row: Followed[S, A, P], ports: Ports, job: Job) -> None:
    """Advance the operation as far as possible now, and reschedule its job."""
    begun = await begin(row, ports, job.argument)
    told = await _carry(row, ports, begun)
    looked = Looked(begun.subject, told.word, job.attempts)

    async def next_due(unit: Unit) -> datetime | None:
        subject = await row.load(ports, unit, job.argument)
        return None if subject is None else row.next_status_poll(ports, subject, looked)

    await reschedule(ports, job, next_due)


async def bring(row: Operation[S, A, P], ports: Ports, object_id: str) -> Standing[S, A]:
    """Advance an operation as far as possible now. Return its state, with the provider's answer and fault."""
    return await _carry(row, ports, await begin(row, ports, object_id))


async def begin(row: Operation[S, A, P], ports: Ports, object_id: str, *, ask: bool = False) -> Standing[S, A]:
    """Record that the provider may have the operation, unless that is recorded already.

    The provider is asked first if the kind requires it (`Operation.asks_first`) or `ask` is set. An operation that the
    provider knows is adopted; while the provider gives no answer, the operation stays unchanged.
    """
    found = await _load(row, ports, object_id)
    if found.subject is None or row.wants(found.subject) is not Want.PREPARE:
        return found
    told = None
    if ask or await row.asks_first(ports, found.subject):
        told = await look_up(row, ports, found.subject)
        if told.fault is not None:
            return told
    prepared = await _prepare(row, ports, object_id, told)
    waits = prepared.subject is not None and row.wants(prepared.subject) is Want.PREPARE
    if waits and prepared.subject != found.subject:
        # The money may have arrived just before we recorded the wait, so nothing woke us. Check once more.
        return await _prepare(row, ports, object_id, told)
    return prepared


async def _load(row: Operation[S, A, P], ports: Ports, object_id: str) -> Standing[S, A]:
    async with ports.storage.unit() as unit:
        return Standing(await row.load(ports, unit, object_id))


async def _prepare(
    row: Operation[S, A, P], ports: Ports, object_id: str, told: Standing[S, A] | None
) -> Standing[S, A]:
    """Prepare or adopt the operation in one unit. `told` is the provider's answer if it was asked first."""
    word = None if told is None else told.word

    async def work(unit: Unit) -> Standing[S, A]:
        subject = await row.load(ports, unit, object_id)
        if subject is None or row.wants(subject) is not Want.PREPARE:
            return Standing(subject)
        if word is not None:
            return Standing(await row.adopt(ports, unit, subject))
        after = await row.prepare(ports, unit, subject)
        return Standing(after, is_new=row.wants(after) is Want.SEND, is_unseen=told is not None)

    return await retrying(ports.storage, work, again_on=row.races)


async def _carry(row: Operation[S, A, P], ports: Ports, begun: Standing[S, A]) -> Standing[S, A]:
    subject = begun.subject
    want = Want.NOTHING if subject is None else row.wants(subject)
    if subject is None or want not in (Want.POLL, Want.SEND):
        return begun
    since = row.since(subject)
    if begun.is_new and (begun.is_unseen or since is None or not await may_be_forgotten(ports, since)):
        return await settle(row, ports, await send(row, ports, subject))
    told = await look_up(row, ports, subject)
    if told.word is not None or told.fault is not None or want is Want.POLL:
        return await settle(row, ports, told)
    return await _unseen(row, ports, subject)


async def _unseen(row: Operation[S, A, P], ports: Ports, subject: S) -> Standing[S, A]:
    """Handle an operation that the provider never saw. It was not sent, or is still on its way; sending it again is
    safe, because one id is one operation.
    """
    end = row.given_up(ports, subject)
    if end is not None or not row.may_send(ports, subject) or is_too_old_to_repeat(row, ports, subject):
        return await settle(row, ports, Standing(subject, end))
    noted = await settle(row, ports, Standing(subject, row.unknown(subject)))
    if noted.subject is None:
        return noted
    return await settle(row, ports, await send(row, ports, noted.subject))


def is_too_old_to_repeat(row: Operation[S, A, P], ports: Ports, subject: S) -> bool:
    """Return whether the provider has forgotten the first request by now, and might take a repeat for another
    operation.
    """
    until = row.repeats_until(ports, subject)
    return until is not None and until <= ports.clock.now()


async def send(row: Operation[S, A, P], ports: Ports, subject: S) -> Standing[S, A]:
    """Send the operation of a prepared subject. The answer has no effect until `settle`."""
    try:
        async with row.at_provider(ports, subject) as provider:
            return Standing(subject, await row.send(ports, provider, subject))
    except (Refused, NotSupported) as fault:
        return _told(row, subject, row.refused(subject, fault), fault)
    except (OutcomeUnknown, Unavailable) as fault:
        # Treat a request that was certainly not executed alike: repeat the same operation.
        return _told(row, subject, row.unknown(subject), fault)
    except NotConfigured as fault:
        return _told(row, subject, None, fault)


def _told(row: Operation[S, A, P], subject: S, word: A | None, fault: Fault) -> Standing[S, A]:
    log.info("%s: sending it met a fault: %s", row.operation(subject), fault)
    return Standing(subject, word, fault)


async def look_up(row: Operation[S, A, P], ports: Ports, subject: S) -> Standing[S, A]:
    """Look up the operation at the provider; a refused lookup counts as no answer. The answer has no effect until
    `settle`.
    """
    try:
        return await _ask(row, ports, subject)
    except NO_ANSWER as fault:
        log.info("%s: the provider does not say: %s", row.operation(subject), fault)
        return Standing(subject, fault=fault)


async def _ask(row: Operation[S, A, P], ports: Ports, subject: S) -> Standing[S, A]:
    async with row.at_provider(ports, subject) as provider:
        return Standing(subject, await row.find(ports, provider, subject))


async def settle(row: Operation[S, A, P], ports: Ports, told: Standing[S, A]) -> Standing[S, A]:
    """Apply an answer, and return the subject as saved."""
    if told.subject is None or told.word is None:
        return told
    return told._replace(subject=(await conclude(row, ports, row.operation(told.subject), told.word)).subject)


async def conclude(row: Operation[S, A, P], ports: Ports, operation: str, word: A) -> Standing[S, A]:
    """Apply an answer about an operation in one unit. An unknown id changes nothing."""

    async def work(unit: Unit) -> Standing[S, A]:
        subject = await row.of_operation(ports, unit, operation)
        return Standing(None if subject is None else await row.apply(ports, unit, subject, word), word)

    return await retrying(ports.storage, work, again_on=row.races)


async def receive(row: Operation[S, A, P], ports: Ports, operation: str) -> Standing[S, A]:
    """Handle a notification about an operation. It is only a hint: look the operation up at the provider and apply that
    answer. Nothing is sent. Raises: faults of the provider's port.
    """
    async with ports.storage.unit() as unit:
        subject = await row.of_operation(ports, unit, operation)
    if subject is None:
        return Standing(None)
    return await settle(row, ports, await _ask(row, ports, subject))
