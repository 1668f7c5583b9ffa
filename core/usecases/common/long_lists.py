"""Pages of lists whose cost does not grow with the list (docs/concepts.md "Lists"). The records of each past day are
counted once, and the count is stored. So a total is a sum over days, and a page far from the top is found by days.

Creating a record writes no count; the reader counts. So records that an older version writes at the same time are
counted too. The counts hold as long as no record is deleted: always in live mode, and for events within their retention
period.
"""

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Generic

import msgspec

from ....ports.bundle import Ports
from ....ports.faults import Conflict, Unavailable
from ....ports.storage import Between, R, Snapshot
from ...domain.accounts.accounts import Caller, Mode
from ...domain.list_counts import ListCount, list_count_id, list_count_ids
from ...domain.payments.tallies import day_end, day_of, day_start
from .paging import Page, newest

LONG = 1000
"""Number of records from which a list is long. A shorter list is counted each time."""
OVER = timedelta(hours=1)
"""Time after the end of a day until its count is stored, because clocks differ and a unit takes time."""

_NEAR = 1000
"""Up to this offset a page is reached by walking over records instead of days."""
_DAYS = 1000
"""Number of counts read at once."""

log = logging.getLogger("cambist.lists")


class LongList(msgspec.Struct, Generic[R], frozen=True, kw_only=True):
    """A merchant's list of records, ordered by their moment of creation."""

    kind: type[R]
    caller: Caller
    name: str
    """Name of its stored counts. It includes all filters except the moment."""
    made: Between
    criteria: dict[str, Any] = {}
    """Filters on fields that never change."""
    moment: str = "created_at"
    kept: timedelta | None = None
    """Minimum retention period of its records. None: forever."""

    def within(self, span: Between) -> dict[str, Any]:
        """Return criteria for its records within these moments."""
        owner = {"account_id": self.caller.account_id, "mode": self.caller.mode}
        return {**owner, **self.criteria, self.moment: span}


class _Part(msgspec.Struct, frozen=True):
    """Records between two moments, with their number."""

    span: Between
    count: int


async def long_page(ports: Ports, wanted: LongList[R], number: int, size: int) -> Page[R]:
    """Return a page of the list, newest first, as of one moment. Unreadable records are counted and left out."""
    fresh: list[ListCount] = []
    async with ports.storage.snapshot() as seen:
        page = await page_within(seen, wanted, number, size, ports.clock.now(), fresh)
    await keep(ports, fresh)
    return page


async def page_within(
    seen: Snapshot, wanted: LongList[R], number: int, size: int, now: datetime, fresh: list[ListCount]
) -> Page[R]:
    """Return a page as the snapshot sees it. New counts are appended to `fresh`, to be stored afterwards (`keep`)."""
    order, offset = f"-{wanted.moment}", (number - 1) * size
    if not await _is_long(seen, wanted):
        return await newest(seen, wanted.kind, number, size, order=order, **wanted.within(wanted.made))
    parts = await _parts(seen, wanted, now, fresh)
    total = sum(part.count for part in parts)
    repository = seen[wanted.kind]
    if offset >= total:
        return Page([], number, size, total)
    if offset < _NEAR:
        found = await repository.page(number, size, order=order, readable=True, **wanted.within(wanted.made))
        return Page(found, number, size, total)
    # Skip whole days before the offset, then read from as many days as the page needs.
    found, skipped, left = [], offset, size
    for part in parts:
        if skipped >= part.count:
            skipped -= part.count
            continue
        taken = min(left, part.count - skipped)
        found += await repository.page(1, taken, order=order, skip=skipped, readable=True, **wanted.within(part.span))
        skipped, left = 0, left - taken
        if not left:
            break
    return Page(found, number, size, total)


async def _is_long(seen: Snapshot, wanted: LongList[Any]) -> bool:
    # Test objects may be deleted, and their days are those of a test clock.
    if wanted.caller.mode is not Mode.LIVE:
        return False
    behind = wanted.within(wanted.made)
    return bool(await seen[wanted.kind].find(order=f"-{wanted.moment}", offset=LONG, limit=1, readable=True, **behind))


async def _parts(seen: Snapshot, wanted: LongList[Any], now: datetime, fresh: list[ListCount]) -> Sequence[_Part]:
    """Divide the list into parts, newest first: past days, and the spans after and before them."""
    repository, low, high = seen[wanted.kind], wanted.made.low, wanted.made.high
    if wanted.kept is not None:
        # Older records are deleted over time, and few are left.
        low_kept = now - wanted.kept + timedelta(days=1)
        first = low_kept if low is None else max(low, low_kept)
    else:
        # Start at the oldest record. The requested moment may be a thousand years earlier.
        oldest = await repository.find(order=wanted.moment, limit=1, readable=True, **wanted.within(wanted.made))
        first = getattr(oldest[0], wanted.moment) if oldest else now
    until = now - OVER if high is None else min(high, now - OVER)
    days = _whole_days(first, until)
    if not days:
        return [_Part(wanted.made, await repository.total(**wanted.within(wanted.made)))]
    counts = await _day_counts(seen, wanted, days, fresh)
    parts = [_Part(Between(day_start(day), day_end(day)), counts[day]) for day in reversed(days)]
    ends = (Between(day_end(days[-1]), high), Between(low, day_start(days[0])))
    after, before = [_Part(span, await repository.total(**wanted.within(span))) for span in ends]
    return [after, *parts, before]


def _whole_days(first: datetime, until: datetime) -> list[str]:
    """Return the days that are entirely between two moments."""
    day = day_of(first)
    if day_start(day) < first:
        day = day_of(day_end(day))
    days = []
    while day_end(day) <= until:
        days.append(day)
        day = day_of(day_end(day))
    return days


async def _day_counts(
    seen: Snapshot, wanted: LongList[Any], days: Sequence[str], fresh: list[ListCount]
) -> dict[str, int]:
    owner = wanted.caller.account_id
    counts: dict[str, int] = {}
    for start in range(0, len(days), _DAYS):
        some = days[start : start + _DAYS]
        span = Between(*list_count_ids(owner, wanted.name, some[0], some[-1]))
        for kept in await seen[ListCount].find(id=span, limit=_DAYS, readable=True):
            counts[kept.id.rpartition(":")[2]] = kept.count
    for day in days:
        if day not in counts:
            between = wanted.within(Between(day_start(day), day_end(day)))
            counts[day] = await seen[wanted.kind].total(**between)
            fresh.append(ListCount(id=list_count_id(owner, wanted.name, day), count=counts[day]))
    return counts


async def keep(ports: Ports, fresh: Sequence[ListCount]) -> None:
    """Store the counts. The request succeeds even if this write fails."""
    if not fresh:
        return
    try:
        async with ports.storage.unit() as unit:
            for each in fresh:
                unit[ListCount].add(each)
            await unit.commit(durable=False)
    except (Conflict, Unavailable) as fault:
        # Another reader was faster, or the next one counts again.
        log.debug("counts of a list were not kept: %s", type(fault).__name__)
