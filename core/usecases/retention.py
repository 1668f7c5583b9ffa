"""Deletion of old events (docs/webhooks.md "Looking, and sending again"), of old rate-limit counts, of people's expired
exports, and of rows that processes of an older version left behind."""

from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial

import msgspec

from ...ports.bundle import Ports
from ...ports.faults import Stale
from ...ports.jobs import Job
from ...ports.storage import AtLeast, Below, Between, OneOf, Unit
from ..domain.accounts.limit_hits import LimitHits, hits_from
from ..domain.exports.exports import Export, ExportChunk, chunk_range
from ..domain.reports.reports import Report
from ..domain.webhooks.events import EVENT_KEPT, Attempt, Delivery, DeliveryStatus, EndpointDelivery, Event
from .common.units import retrying
from .gateways.outcomes import drop_known
from .webhooks.receivers import attempts_of, further_deliveries

RETAIN = "webhook.retain"

KEPT = EVENT_KEPT
"""Retention period of a delivered or failed event, counted from its creation."""
HITS_KEPT = timedelta(days=2)
"""Retention period of the counts of exceeded limits per minute."""

_BATCH = 100
"""Rows of a kind per unit of work. Its statements block other writers, so a unit should take only milliseconds."""
_PORTION = 20
"""Number of batches to delete before other jobs get their turn."""
_CHUNKS = 20
"""Chunks of an export that are deleted in one unit. They are read first, so their number limits the memory."""
_EVERY = timedelta(hours=1)
"""Exports contain a merchant's sales: they go soon after their day."""


def first_retention(now: datetime) -> Job:
    """Return the hourly job that deletes old records. A worker writes it at its start (jobs.py)."""
    return Job(id=RETAIN, kind=RETAIN, argument="", due=now, created_at=now)


async def retain(ports: Ports, job: Job) -> None:
    """Delete delivered and failed events with their attempts once they are old enough, and old counts. Events that wait
    to be sent stay.

    It walks over the deliveries by id, which is the order of time, and stores its position in the job's argument.
    """
    after: str | None = job.argument
    for _ in range(_PORTION):
        if after is None:
            break
        after = await _delete_batch(ports, after)
    hits_left = await _delete_hits(ports)
    await _delete_known(ports)
    exports_left = await _delete_exports(ports) | await _delete_reports(ports)
    now = ports.clock.now()
    async with ports.storage.unit() as unit:
        due = now + _EVERY if after is None and not hits_left and not exports_left else now
        unit[Job].save(msgspec.structs.replace(job, argument=after or "", due=due, leased_until=None, attempts=0))
        await unit.commit()


async def _delete_hits(ports: Ports) -> bool:
    """Delete old counts of exceeded limits, and return whether there are more."""
    old = Below(hits_from(ports.clock.now() - HITS_KEPT))

    async def work(unit: Unit) -> bool:
        found = await unit[LimitHits].find(id=old, limit=_BATCH, readable=True)
        for each in found:
            unit[LimitHits].remove(each)
        return len(found) == _BATCH

    for _ in range(_PORTION):
        if not await retrying(ports.storage, work):
            return False
    return True


async def _delete_exports(ports: Ports) -> bool:
    """Delete the next expired exports, and return whether there may be more."""
    async with ports.storage.unit() as unit:
        old = Below(ports.clock.real())
        found = await unit[Export].find(expires_at=old, order="expires_at", limit=_PORTION, readable=True)
    for each in found:
        await delete_expired(ports, each)
    return len(found) == _PORTION


async def _delete_reports(ports: Ports) -> bool:
    """Delete the next expired reports, and return whether there may be more."""
    async with ports.storage.unit() as unit:
        old = Below(ports.clock.real())
        found = await unit[Report].find(expires_at=old, order="expires_at", limit=_PORTION, readable=True)
    for each in found:
        await delete_expired(ports, each)
    return len(found) == _PORTION


async def delete_expired(ports: Ports, export: Export | Report) -> None:
    """Delete an export or report with its content. It goes last, so a crash leaves nothing behind that nobody finds."""
    await delete_chunks(ports, *chunk_range(export.id))
    async with ports.storage.unit() as unit:
        if isinstance(export, Report):
            unit[Report].remove(export)
        else:
            unit[Export].remove(export)
        with suppress(Stale):  # another worker deleted it, or still wrote to it: then the next run deletes it
            await unit.commit()


async def delete_chunks(ports: Ports, low: str, high: str) -> None:
    """Delete the chunks with ids from `low` to below `high`, in small units."""

    async def work(unit: Unit) -> int:
        found = await unit[ExportChunk].find(id=Between(low, high), limit=_CHUNKS, readable=True)
        for each in found:
            unit[ExportChunk].remove(each)
        return len(found)

    while await retrying(ports.storage, work) == _CHUNKS:
        pass


async def _delete_known(ports: Ports) -> None:
    """Delete rows of outcomes that became known (outcomes.py). There are few, unless a bank is down for days."""
    after: str | None = ""
    for _ in range(_PORTION):
        if after is None:
            break
        after = await retrying(ports.storage, partial(drop_known, after=after, limit=_BATCH))


async def _delete_batch(ports: Ports, after: str) -> str | None:
    """Delete old events among the next deliveries. Return the last delivery's id, or None when the young deliveries are
    reached."""
    before = ports.clock.now() - KEPT

    async def work(unit: Unit) -> str | None:
        found = await unit[Delivery].find(id=AtLeast(f"{after}!"), limit=_BATCH, readable=True)
        if not found:
            return None
        old = {each.id: each for each in found if each.created_at < before and _is_over(each)}
        further = await further_deliveries(unit, old.values())
        kept = {each.event_id for each in further if not _is_over(each)}
        gone = {event_id: each for event_id, each in old.items() if event_id not in kept}
        elsewhere = [each for each in further if each.event_id in gone]
        for attempt in await attempts_of(unit, (*gone.values(), *elsewhere)):
            unit[Attempt].remove(attempt)
        for each in elsewhere:
            unit[EndpointDelivery].remove(each)
        for event in await unit[Event].find(id=OneOf(tuple(gone)), limit=_BATCH, readable=True):
            unit[Event].remove(event)
        for delivery in gone.values():
            unit[Delivery].remove(delivery)
        over = len(found) < _BATCH or found[-1].created_at >= before
        return None if over else found[-1].id

    return await retrying(ports.storage, work)


def _is_over(delivery: Delivery) -> bool:
    return delivery.status not in (DeliveryStatus.HELD, DeliveryStatus.PENDING)
