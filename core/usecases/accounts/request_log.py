"""The log of merchants' requests: noted by each process in memory, written some seconds later, read by its merchant,
and deleted after thirty days (docs/concepts.md "Your requests").

A request costs one place in a list, and no wait. Of many at once, or while the storage is away, so many wait as WAITING
says; further ones are counted, and told beside the list. What a process that is killed had not yet written is lost.
"""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from ....ports.bundle import Ports
from ....ports.jobs import Job
from ....ports.storage import AtLeast, Between, Snapshot, Unit
from ...domain.accounts.accounts import Account, Caller, Mode
from ...domain.accounts.request_log import (
    KEPT,
    NOT_KEPT,
    RequestBatch,
    RequestCount,
    RequestEntry,
    batch_id,
    count_ids,
    hour_of,
    hour_start,
    ids_from,
    owner_prefix,
    request_count,
    shown_object,
)
from ...domain.errors import shape_error
from ...domain.payments.tallies import Stretch, stretch
from ..paging import MomentFilter
from ..units import retrying

WAITING = 10_000
"""Requests that wait to be written at most, in a process."""
MOST_OWNERS = 10_000
"""Of so many accounts and modes it is known how many of their requests were not kept."""

PRUNE = "requests.prune"
"""Deletes what is old, once a day; one for all accounts."""

_REQUESTS = 250
"""Written in one unit, each at worst a row of its own: so long at most a payment's commit waits."""
_FEW, _MANY, _LATEST = 50, 2000, 10.0
"""So few that wait are written at once, for somebody may be following; more of them together, because a row for each
merchant costs some eight times what a request in it does: as soon as they are many, or after so many seconds."""
_BATCH = 500
"""Rows that are read, or deleted, at once."""
_FOLLOWED = 1000
"""Rows that who follows is given at once."""
_WRITTEN_WITHIN = timedelta(seconds=30)
"""Within which a process writes what it noted, unless the storage is away."""
_PORTION = 20_000
"""Batches that are deleted before other jobs have their turn, and long before the job's lease is over."""
_AGAIN = timedelta(seconds=1)
_EVERY = timedelta(days=1)
_HOUR = timedelta(hours=1)

log = logging.getLogger("cambist.requests")

Owner = tuple[str, Mode]


class Noted(msgspec.Struct, frozen=True, gc=False):
    """A request that was answered, as it waits to be written: nothing is worked out before that."""

    account_id: str
    mode: Mode
    key_id: str
    method: str
    path: str
    values: tuple[str, ...]
    status: int
    code: str | None
    begun: float
    """This and the next by the monotonic clock, in seconds."""
    answered: float
    request_id: str


class RequestLog:
    """What a process notes of the requests that it answers. For one event loop."""

    def __init__(self) -> None:
        self._waiting: list[Noted] = []
        self._lost: Counter[Owner] = Counter()
        self._flushed = float("-inf")

    def note(self, noted: Noted) -> None:
        """A request was answered. Raises nothing, waits for nothing."""
        if len(self._waiting) < WAITING:
            self._waiting.append(noted)
        elif len(self._lost) < MOST_OWNERS:
            self._lost[noted.account_id, noted.mode] += 1

    def is_due(self, ports: Ports) -> bool:
        """Whether what waits is worth writing now."""
        return not _FEW < len(self._waiting) < _MANY or ports.clock.monotonic() - self._flushed >= _LATEST

    async def flush(self, ports: Ports) -> None:
        """Write what waits. Raises: Unavailable; what was not written waits on. A commit that broke off without an
        answer may have been carried out: then its requests are written twice, which is better than not at all."""
        now, monotonic = ports.clock.now(), ports.clock.monotonic()
        self._flushed = monotonic
        self._waiting.sort(key=_owner)  # what belongs into one row is written in one unit
        left = len(self._waiting)
        while left > 0 and self._waiting:
            part = self._waiting[: min(left, _REQUESTS)]
            del self._waiting[: len(part)]  # before it is written: another flush at the same time takes others
            try:
                await _write(ports, part, now, monotonic)
            except BaseException:
                self._waiting[:0] = part
                raise
            left -= len(part)
        await self._write_lost(ports, now)

    async def _write_lost(self, ports: Ports, now: datetime) -> None:
        lost, self._lost = self._lost, Counter()
        if not lost:
            return
        try:
            async with ports.storage.unit() as unit:
                unit[RequestCount].accrue(
                    *(request_count(*owner, hour_of(now), NOT_KEPT, count) for owner, count in lost.items())
                )
                await unit.commit(durable=False)
        except Exception:
            self._lost.update(lost)
            raise
        log.warning("%d requests are not in the log of requests: more came than could be written", lost.total())


def _owner(noted: Noted) -> Owner:
    return noted.account_id, noted.mode


def _entry(noted: Noted, now: datetime, monotonic: float) -> RequestEntry:
    ago = round((monotonic - noted.answered) * 1_000_000)
    return RequestEntry(
        at=now - timedelta(0, 0, ago) if ago > 0 else now,  # of integers it is made in a third of the time
        method=noted.method,
        path=noted.path,
        object_id=shown_object(noted.values),
        status=noted.status,
        code=noted.code,
        key_id=noted.key_id,
        took_ms=round((noted.answered - noted.begun) * 1000),
        request_id=noted.request_id,
    )


async def _write(ports: Ports, noted: Sequence[Noted], now: datetime, monotonic: float) -> None:
    """Write these in one unit, those of one account, mode and hour in one row."""
    batches: dict[tuple[str, Mode, datetime], list[RequestEntry]] = {}
    present = hour_start(hour_of(now))
    for each in noted:
        entry = _entry(each, now, monotonic)
        hour = present if entry.at >= present else hour_start(hour_of(entry.at))
        batches.setdefault((each.account_id, each.mode, hour), []).append(entry)
    async with ports.storage.unit() as unit:
        for (account_id, mode, hour), entries in batches.items():
            entries.sort(key=_at)
            made = batch_id(account_id, mode, entries[0].at, ports.ids.secret(4))
            unit[RequestBatch].add(RequestBatch(id=made, account_id=account_id, mode=mode, entries=tuple(entries)))
            counts = Counter(entry.status for entry in entries)
            unit[RequestCount].accrue(
                *(request_count(account_id, mode, hour_of(hour), status, count) for status, count in counts.items())
            )
        # Who asked has his answer; nothing that a failure of the machine takes from here is money.
        await unit.commit(durable=False)


def _at(entry: RequestEntry) -> datetime:
    return entry.at


class RequestFilter(MomentFilter, frozen=True, kw_only=True):
    """Query values of GET /requests as they came; None: not given."""

    status: str | None = None


class RequestPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of requests, how many there are in all, and how many of their time are not among them."""

    records: list[RequestEntry]
    number: int
    size: int
    total: int
    not_kept: int


async def list_requests(ports: Ports, caller: Caller, asked: RequestFilter, number: int, size: int) -> RequestPage:
    """A page of the caller's requests, newest first, as of one moment.

    Its cost does not grow with the requests there are: they are counted by hours, and only the hours of the page are
    read. Raises: Refusal VALIDATION_ERROR.
    """
    made, status = asked.made(), _status(asked.status)
    with ports.clock.entered(None):  # requests are of the machine's time, whatever that of a test account is
        now = ports.clock.now()
    oldest, newest = now - KEPT, now + _HOUR  # another process may be ahead
    low, high = max(made.low or oldest, oldest), min(made.high or newest, newest)
    if low >= high:
        return RequestPage(records=[], number=number, size=size, total=0, not_kept=0)
    owner = caller.account_id, caller.mode
    wanted = Wanted(owner=owner, low=low, high=high, status=status)
    async with ports.storage.snapshot() as seen:
        hours = await _hours(seen, wanted)
        span = Between(*count_ids(*owner, low, high))
        lost = await seen[RequestCount].sums("count", by="status", id=span, status=NOT_KEPT)
        place = stretch(hours, (number - 1) * size, size)
        records = [] if place is None else await _of_hours(seen, wanted, hours, place)
    total = sum(hours.values())
    return RequestPage(records=records, number=number, size=size, total=total, not_kept=sum(lost.values()))


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What of whose requests is asked for."""

    owner: Owner
    low: datetime
    high: datetime
    status: int | None

    def takes(self, entry: RequestEntry) -> bool:
        """Whether a request is one of them."""
        return self.low <= entry.at < self.high and self.status in (None, entry.status)


async def _hours(seen: Snapshot, wanted: Wanted) -> dict[str, int]:
    """The number of wanted requests of each hour. Only hours that the range cuts are counted request by request."""
    status = AtLeast(1) if wanted.status is None else wanted.status
    span = Between(*count_ids(*wanted.owner, wanted.low, wanted.high))
    hours = await seen[RequestCount].sums("count", by="hour", id=span, status=status)
    for hour in {hour_of(wanted.low), hour_of(wanted.high)} & hours.keys():
        start = hour_start(hour)
        if wanted.low > start or wanted.high < start + _HOUR:
            hours[hour] = len(await _of_hour(seen, wanted, hour))
    return hours


async def _of_hours(seen: Snapshot, wanted: Wanted, hours: Mapping[str, int], place: Stretch) -> list[RequestEntry]:
    """The requests of a page, newest first: of its hours, one after the other."""
    found: list[RequestEntry] = []
    skipped = place.skipped
    for hour in sorted((each for each in hours if place.first <= each <= place.last and hours[each]), reverse=True):
        of_hour = await _of_hour(seen, wanted, hour)
        found += of_hour[skipped : skipped + place.taken - len(found)]
        skipped = max(0, skipped - len(of_hour))
    return found


async def _of_hour(seen: Snapshot, wanted: Wanted, hour: str) -> list[RequestEntry]:
    """All that is wanted of one hour, newest first. The limits of a minute bound it."""
    start = hour_start(hour)
    span = Between(ids_from(*wanted.owner, start), ids_from(*wanted.owner, start + _HOUR))
    found: list[RequestEntry] = []
    offset = 0
    while batches := await seen[RequestBatch].find(id=span, offset=offset, limit=_BATCH, readable=True):
        found += [entry for batch in batches for entry in batch.entries if wanted.takes(entry)]
        offset += len(batches)
        if len(batches) < _BATCH:
            break
    return sorted(found, key=_at)[::-1]


def _status(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) == 3 and 100 <= int(text) <= 599):
        raise shape_error("status", "must be an HTTP status, such as 404")
    return int(text)


async def follow_requests(ports: Ports, account_id: str, mode: Mode, since: datetime) -> list[RequestEntry]:
    """The requests from a moment on, the oldest first, those of 1000 batches at most; for operators who follow them."""
    # A batch begins before its later requests.
    span = Between(ids_from(account_id, mode, since - _WRITTEN_WITHIN), f"{owner_prefix(account_id, mode)}~")
    async with ports.storage.unit() as unit:
        batches = await unit[RequestBatch].find(id=span, limit=_FOLLOWED, readable=True)
    found = [entry for batch in batches for entry in batch.entries if entry.at >= since]
    return sorted(found, key=_at)


def first_pruning(ports: Ports) -> Job:
    """The standing job; a worker writes it when it starts. It has a day's time: nothing is old before, and workers of
    an older version, which are being replaced then, know no such job."""
    now = ports.clock.now()
    return Job(id=PRUNE, kind=PRUNE, argument="", due=now + _EVERY, created_at=now)


async def prune(ports: Ports, job: Job) -> None:
    """Delete the requests and counts of hours that are over for longer than KEPT. It comes back at once until all are
    gone, then after a day."""
    now = ports.clock.now()
    before = hour_start(hour_of(now - KEPT))
    left = _PORTION
    async for accounts in ports.storage.scan(Account, readable=True):
        for account in accounts:
            for mode in Mode:
                left = await _prune(ports, (account.id, mode), before, left)
    due = now + (_EVERY if left > 0 else _AGAIN)
    async with ports.storage.unit() as unit:
        unit[Job].save(msgspec.structs.replace(job, due=due, leased_until=None, attempts=0))
        await unit.commit()


async def _prune(ports: Ports, owner: Owner, before: datetime, left: int) -> int:
    """Delete what is old of one owner; how many batches may still be deleted, 0 when it may not be all."""
    old = Between(owner_prefix(*owner), ids_from(*owner, before))

    async def work(unit: Unit) -> int:
        batches = await unit[RequestBatch].find(id=old, limit=_BATCH, readable=True)
        for batch in batches:
            unit[RequestBatch].remove(batch)
        if len(batches) < _BATCH:
            hours = Between(owner_prefix(*owner), f"{owner_prefix(*owner)}{hour_of(before)}")
            for count in await unit[RequestCount].find(id=hours, limit=_BATCH, readable=True):
                unit[RequestCount].remove(count)
        return len(batches)

    while left > 0:
        deleted = await retrying(ports.storage, work)
        left -= deleted
        if deleted < _BATCH:
            break
    return max(0, left)
