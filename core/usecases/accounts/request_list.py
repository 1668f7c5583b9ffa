"""Lists of a merchant's requests, for the merchant and for operators who follow them (docs/concepts.md "Your
requests")."""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import AtLeast, Between, Snapshot
from ...domain.accounts.accounts import Caller, Mode
from ...domain.accounts.request_log import (
    BATCHES,
    KEPT,
    NOT_KEPT,
    FirstBatch,
    RequestBatch,
    RequestCount,
    RequestEntry,
    batch_name,
    count_ids,
    hour_of,
    hour_start,
    ids_from,
    owner_prefix,
)
from ...domain.errors import shape_error
from ...domain.payments.tallies import Stretch, stretch
from ..common.keyset import Cursor, KeysetPage, cut_page, with_records
from ..common.paging import MomentFilter, Position
from .request_log import Owner, in_time

_BATCH = 500
"""Rows per read."""
_FOLLOWED = 1000
"""Maximum number of rows of each kind that one call of `follow_requests` reads."""
_WRITTEN_WITHIN = timedelta(seconds=30)
"""Time within which a process writes its noted requests, unless the storage is unavailable."""
_HOUR = timedelta(hours=1)


class RequestFilter(MomentFilter, frozen=True, kw_only=True):
    """Query values of GET /requests as received; None when absent."""

    status: str | None = None


class RequestPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of requests, with the total, and the number of requests in the same time that were not recorded."""

    records: list[RequestEntry]
    number: int
    size: int
    total: int
    not_kept: int


class _Placed(msgspec.Struct, frozen=True):
    """A request, and its position in the list. Neither moment nor X-Request-Id tells requests apart, because callers
    choose the latter; the batch and the place in it do."""

    entry: RequestEntry
    position: Position


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """A validated filter with its owner."""

    owner: Owner
    low: datetime
    high: datetime
    status: int | None

    def takes(self, entry: RequestEntry) -> bool:
        """Return whether a request matches."""
        return self.low <= entry.at < self.high and self.status in (None, entry.status)


async def list_requests(ports: Ports, caller: Caller, asked: RequestFilter, number: int, size: int) -> RequestPage:
    """Return a page of the caller's requests, newest first, as of one moment.

    Its cost does not grow with the number of requests: they are counted by hour, and only the hours of the page are
    read. Raises: Refusal VALIDATION_ERROR.
    """
    wanted = _wanted(ports, caller, asked)
    if wanted is None:
        return RequestPage(records=[], number=number, size=size, total=0, not_kept=0)
    async with ports.storage.snapshot() as seen:
        hours = await _hours(seen, wanted)
        lost = await _not_kept(seen, wanted)
        place = stretch(hours, (number - 1) * size, size)
        found = [] if place is None else await _of_hours(seen, wanted, hours, place)
    records = [each.entry for each in found]
    return RequestPage(records=records, number=number, size=size, total=sum(hours.values()), not_kept=lost)


async def browse_requests(
    ports: Ports, caller: Caller, asked: RequestFilter, cursor: Cursor | None, size: int
) -> tuple[KeysetPage[RequestEntry], int]:
    """Return a page of the requests of `list_requests` by cursor, and the number of requests in the same time that were
    not recorded. Raises: Refusal VALIDATION_ERROR."""
    wanted = _wanted(ports, caller, asked)
    if wanted is None:
        return KeysetPage(records=[]), 0
    async with ports.storage.snapshot() as seen:
        hours = await _hours(seen, wanted)
        lost = await _not_kept(seen, wanted)
        found = await _around(seen, wanted, hours, cursor, size)
        if cursor is not None and cursor.newer and len(_beyond(found, cursor)) <= size:
            # The top of the list is a full page, like any other.
            cursor, found = None, await _around(seen, wanted, hours, None, size)
    page = cut_page(found, _position, cursor, size)
    return with_records(page, [each.entry for each in page.records]), lost


def _position(placed: _Placed) -> Position:
    return placed.position


def _beyond(found: list[_Placed], cursor: Cursor | None) -> list[_Placed]:
    """Return the requests on the cursor's side."""
    if cursor is None:
        return found
    edge = cursor.position
    return [each for each in found if (each.position > edge if cursor.newer else each.position < edge)]


async def _around(
    seen: Snapshot, wanted: Wanted, hours: Mapping[str, int], cursor: Cursor | None, size: int
) -> list[_Placed]:
    """Return the requests of whole hours, newest first: from the cursor's hour until more than a page lies beyond the
    cursor."""
    is_newer = cursor is not None and cursor.newer
    edge = None if cursor is None else hour_of(cursor.position.at)
    found: list[_Placed] = []
    for hour in sorted((each for each in hours if hours[each]), reverse=not is_newer):
        if edge is not None and (hour < edge if is_newer else hour > edge):
            continue
        found += await _of_hour(seen, wanted, hour)
        if len(_beyond(found, cursor)) > size:
            break
    return sorted(found, key=_position, reverse=True)


def _wanted(ports: Ports, caller: Caller, asked: RequestFilter) -> Wanted | None:
    """Return the validated filter; None if no request can match. Raises: Refusal VALIDATION_ERROR."""
    made, status = asked.made(), _status(asked.status)
    with ports.clock.entered(None):  # requests have real time, whatever a test clock says
        now = ports.clock.now()
    oldest, newest = now - KEPT, now + _HOUR  # another process's clock may be ahead
    low, high = max(made.low or oldest, oldest), min(made.high or newest, newest)
    owner = caller.account_id, caller.mode
    return Wanted(owner=owner, low=low, high=high, status=status) if low < high else None


async def _not_kept(seen: Snapshot, wanted: Wanted) -> int:
    """Return the number of requests in the same time that were not recorded."""
    span = Between(*count_ids(*wanted.owner, wanted.low, wanted.high))
    return sum((await seen[RequestCount].sums("count", by="status", id=span, status=NOT_KEPT)).values())


async def _hours(seen: Snapshot, wanted: Wanted) -> dict[str, int]:
    """Return the number of matching requests of each hour. Only hours that the range cuts are counted request by
    request."""
    status = AtLeast(1) if wanted.status is None else wanted.status
    span = Between(*count_ids(*wanted.owner, wanted.low, wanted.high))
    hours = Counter(await seen[RequestCount].sums("count", by="hour", id=span, status=status))
    first, last = (hour_start(hour_of(each)) for each in (wanted.low, wanted.high))
    firsts = Between(ids_from(*wanted.owner, first), ids_from(*wanted.owner, last + _HOUR))
    hours.update(await seen[FirstBatch].sums("count", by="hour", id=firsts, status=status))
    for hour in {hour_of(wanted.low), hour_of(wanted.high)} & hours.keys():
        start = hour_start(hour)
        if wanted.low > start or wanted.high < start + _HOUR:
            hours[hour] = len(await _of_hour(seen, wanted, hour))
    return hours


async def _of_hours(seen: Snapshot, wanted: Wanted, hours: Mapping[str, int], place: Stretch) -> list[_Placed]:
    """Return the requests of a page, newest first, read hour by hour."""
    found: list[_Placed] = []
    skipped = place.skipped
    for hour in sorted((each for each in hours if place.first <= each <= place.last and hours[each]), reverse=True):
        of_hour = await _of_hour(seen, wanted, hour)
        found += of_hour[skipped : skipped + place.taken - len(found)]
        skipped = max(0, skipped - len(of_hour))
    return found


async def _of_hour(seen: Snapshot, wanted: Wanted, hour: str) -> list[_Placed]:
    """Return all matching requests of one hour, newest first. The rate limits bound their number."""
    start = hour_start(hour)
    first, end = ids_from(*wanted.owner, start), ids_from(*wanted.owner, start + _HOUR)
    found: list[_Placed] = []
    for kind in BATCHES:
        low = first
        while batches := await seen[kind].find(id=Between(low, end), limit=_BATCH, readable=True):
            found += [each for batch in batches for each in _placed(batch) if wanted.takes(each.entry)]
            if len(batches) < _BATCH:
                break
            low = f"{batches[-1].id}\x01"
    return sorted(found, key=_position, reverse=True)


def _placed(batch: RequestBatch) -> list[_Placed]:
    name = batch_name(batch.id)
    return [_Placed(each, Position(each.at, f"{name}.{place:04}")) for place, each in enumerate(batch.entries)]


def _status(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) == 3 and 100 <= int(text) <= 599):
        raise shape_error("status", "must be an HTTP status, such as 404")
    return int(text)


async def follow_requests(ports: Ports, account_id: str, mode: Mode, since: datetime) -> list[RequestEntry]:
    """Return the requests from a moment on, oldest first, from at most 1000 rows of each kind. For operators who follow
    them."""
    # A batch begins before its later requests.
    span = Between(ids_from(account_id, mode, since - _WRITTEN_WITHIN), f"{owner_prefix(account_id, mode)}~")
    async with ports.storage.unit() as unit:
        batches = [
            batch for kind in BATCHES for batch in await unit[kind].find(id=span, limit=_FOLLOWED, readable=True)
        ]
    found = [entry for batch in batches for entry in batch.entries if entry.at >= since]
    return sorted(found, key=in_time)
