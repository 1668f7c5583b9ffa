"""Follows an operation at a provider to its end (ARCHITECTURE.md "Three ends").

It is written down before it is sent, and asked for by its id before it is sent again. What comes of it, by an answer or
a notice, late, twice or at once, is given effect in one unit. So it does not matter how many do this at once, nor where
one of them dies. What a subject adds is told by its Operation (operation.py); here alone a provider's faults are caught
and units are tried again.

`look_up` and `send` only ask, and return a provider's faults; `hear` raises them; what the storage raises is raised.
"""

import logging
from datetime import datetime

from ....ports.bundle import Ports
from ....ports.faults import NO_ANSWER, Fault, NotConfigured, NotSupported, OutcomeUnknown, Refused, Unavailable
from ....ports.jobs import Job
from ....ports.storage import Unit
from ..forgotten import may_be_forgotten
from ..schedule import reschedule
from ..units import retrying
from .operation import A, Followed, Looked, Operation, P, S, Standing, Want

log = logging.getLogger("cambist.operations")


async def follow(row: Followed[S, A, P], ports: Ports, job: Job) -> None:
    """The job: brings the operation as far as it goes now, and comes back when that is worthwhile."""
    begun = await begin(row, ports, job.argument)
    told = await _carry(row, ports, begun)
    looked = Looked(begun.subject, told.word, job.attempts)

    async def next_due(unit: Unit) -> datetime | None:
        subject = await row.load(ports, unit, job.argument)
        return None if subject is None else row.next_look(ports, subject, looked)

    await reschedule(ports, job, next_due)


async def bring(row: Operation[S, A, P], ports: Ports, object_id: str) -> Standing[S, A]:
    """Bring an operation as far as it goes now. How it then stands, with the provider's word and fault."""
    return await _carry(row, ports, await begin(row, ports, object_id))


async def begin(row: Operation[S, A, P], ports: Ports, object_id: str, *, ask: bool = False) -> Standing[S, A]:
    """Record that the provider may have the operation, unless that is recorded already.

    The provider is asked first where the row wants it (`Operation.asks_first`), or where `ask` says so. An operation
    that the provider knows is adopted; while it gives no answer, the operation stays as it was.
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
    """Prepare or adopt the operation in one unit. `told`: what the provider answered when it was asked first."""
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
    if subject is None or want not in (Want.LOOK, Want.SEND):
        return begun
    since = row.since(subject)
    if begun.is_new and (begun.is_unseen or since is None or not await may_be_forgotten(ports, since)):
        return await settle(row, ports, await send(row, ports, subject))
    told = await look_up(row, ports, subject)
    if told.word is not None or told.fault is not None or want is Want.LOOK:
        return await settle(row, ports, told)
    return await _unseen(row, ports, subject)


async def _unseen(row: Operation[S, A, P], ports: Ports, subject: S) -> Standing[S, A]:
    """The provider never saw it. It was not sent, or is on its way: one operation is one, however often it is sent."""
    end = row.given_up(ports, subject)
    if end is not None or not row.may_send(ports, subject) or is_too_old_to_repeat(row, ports, subject):
        return await settle(row, ports, Standing(subject, end))
    noted = await settle(row, ports, Standing(subject, row.unknown(subject)))
    if noted.subject is None:
        return noted
    return await settle(row, ports, await send(row, ports, noted.subject))


def is_too_old_to_repeat(row: Operation[S, A, P], ports: Ports, subject: S) -> bool:
    """Whether a repeat might be another operation to the provider, which has forgotten the first by now."""
    until = row.repeats_until(ports, subject)
    return until is not None and until <= ports.clock.now()


async def send(row: Operation[S, A, P], ports: Ports, subject: S) -> Standing[S, A]:
    """Have the operation of a prepared subject done. What the provider says of it has no effect yet: `settle`."""
    try:
        async with row.at_provider(ports, subject) as provider:
            return Standing(subject, await row.send(ports, provider, subject))
    except (Refused, NotSupported) as fault:
        return _told(row, subject, row.refused(subject, fault), fault)
    except (OutcomeUnknown, Unavailable) as fault:
        # Not executed for certain is treated alike: the same operation is repeated.
        return _told(row, subject, row.unknown(subject), fault)
    except NotConfigured as fault:
        return _told(row, subject, None, fault)


def _told(row: Operation[S, A, P], subject: S, word: A | None, fault: Fault) -> Standing[S, A]:
    log.info("%s: sending it met a fault: %s", row.operation(subject), fault)
    return Standing(subject, word, fault)


async def look_up(row: Operation[S, A, P], ports: Ports, subject: S) -> Standing[S, A]:
    """How the provider sees the operation, a refusal being no word of it. That has no effect yet: `settle`."""
    try:
        return await _ask(row, ports, subject)
    except NO_ANSWER as fault:
        log.info("%s: the provider does not say: %s", row.operation(subject), fault)
        return Standing(subject, fault=fault)


async def _ask(row: Operation[S, A, P], ports: Ports, subject: S) -> Standing[S, A]:
    async with row.at_provider(ports, subject) as provider:
        return Standing(subject, await row.find(ports, provider, subject))


async def settle(row: Operation[S, A, P], ports: Ports, told: Standing[S, A]) -> Standing[S, A]:
    """Let what was told take effect; the subject as it then stands."""
    if told.subject is None or told.word is None:
        return told
    return told._replace(subject=(await conclude(row, ports, row.operation(told.subject), told.word)).subject)


async def conclude(row: Operation[S, A, P], ports: Ports, operation: str, word: A) -> Standing[S, A]:
    """Let a word about an operation take effect, in one unit. An id that nobody knows moves nothing."""

    async def work(unit: Unit) -> Standing[S, A]:
        subject = await row.of_operation(ports, unit, operation)
        return Standing(None if subject is None else await row.apply(ports, unit, subject, word), word)

    return await retrying(ports.storage, work, again_on=row.races)


async def hear(row: Operation[S, A, P], ports: Ports, operation: str) -> Standing[S, A]:
    """Something happened to an operation, somebody says. Only a hint: what counts is what the provider answers when it
    is asked. Nothing is sent. Raises: what the provider's port raises."""
    async with ports.storage.unit() as unit:
        subject = await row.of_operation(ports, unit, operation)
    if subject is None:
        return Standing(None)
    return await settle(row, ports, await _ask(row, ports, subject))
