"""Log of merchants' requests: each process collects them in memory and writes them some seconds later (docs/concepts.md
"Your requests"). Merchants read it by request_list.py, and request_pruning.py deletes it after thirty days.

A request costs one place in a list, and no wait. In a burst, or while the storage is unavailable, up to WAITING
requests wait. Further ones are only counted, and the count is shown beside the list. A killed process loses the
requests that it had not written yet.
"""

import logging
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import Unit
from ...domain.accounts.accounts import Mode
from ...domain.accounts.request_log import (
    NOT_KEPT,
    FirstBatch,
    RequestBatch,
    RequestCount,
    RequestEntry,
    batch_id,
    hour_of,
    hour_start,
    request_count,
    shown_object,
)

WAITING = 10_000
"""Maximum number of waiting requests in a process."""
MOST_OWNERS = 10_000
"""Maximum number of accounts and modes for which unrecorded requests are counted."""

_REQUESTS = 250
"""Requests per unit of work, each at worst a row of its own. A payment's commit may wait for such a unit."""
_FEW, _MANY, _LATEST = 50, 2000, 10.0
"""Up to _FEW waiting requests are written at once, because an operator may be following. More are collected, because a
row for each merchant costs about eight times as much as a request in it: they are written when there are _MANY, or
after _LATEST seconds."""

log = logging.getLogger("cambist.requests")

Owner = tuple[str, Mode]


class Noted(msgspec.Struct, frozen=True, gc=False):
    """An answered request that waits to be written. Its derived values are computed only then."""

    account_id: str
    mode: Mode
    key_id: str
    method: str
    path: str
    values: tuple[str, ...]
    status: int
    code: str | None
    begun: float
    """This and the next field are seconds of the monotonic clock."""
    answered: float
    request_id: str


class RequestLog:
    """Requests that a process has answered. For one event loop."""

    def __init__(self) -> None:
        self._waiting: list[Noted] = []
        self._lost: Counter[Owner] = Counter()
        self._flushed = float("-inf")
        self._firsts: set[Owner] = set()
        """Owners whose first batch of the hour `_hour` was written."""
        self._hour: datetime | None = None
        self.lost = 0
        """Number of requests that could not be recorded since the process started."""

    def note(self, noted: Noted) -> None:
        """Note an answered request, without waiting."""
        if len(self._waiting) < WAITING:
            self._waiting.append(noted)
            return
        self.lost += 1
        owner = noted.account_id, noted.mode
        if owner in self._lost or len(self._lost) < MOST_OWNERS:
            self._lost[owner] += 1

    def is_due(self, ports: Ports) -> bool:
        """Return whether the waiting requests should be written now."""
        return not _FEW < len(self._waiting) < _MANY or ports.clock.monotonic() - self._flushed >= _LATEST

    async def flush(self, ports: Ports) -> None:
        """Write the waiting requests. Raises: Unavailable; unwritten requests are kept. A commit that failed without an
        answer may have succeeded. Its requests are then written twice, which is better than not at all."""
        now, monotonic = ports.clock.now(), ports.clock.monotonic()
        self._flushed = monotonic
        self._waiting.sort(key=_owner)  # requests of one row belong in one unit
        left = len(self._waiting)
        while left > 0 and self._waiting:
            part = self._waiting[: min(left, _REQUESTS)]
            del self._waiting[: len(part)]  # before the write, so that a concurrent flush takes other requests
            try:
                await self._write(ports, part, now, monotonic)
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

    async def _write(self, ports: Ports, noted: Sequence[Noted], now: datetime, monotonic: float) -> None:
        """Write requests in one unit, with one row for each account, mode and hour."""
        batches: dict[tuple[Owner, datetime], list[RequestEntry]] = {}
        present = hour_start(hour_of(now))
        for each in noted:
            entry = _entry(each, now, monotonic)
            hour = present if entry.at >= present else hour_start(hour_of(entry.at))
            batches.setdefault((_owner(each), hour), []).append(entry)
        async with ports.storage.unit() as unit:
            for (owner, hour), entries in batches.items():
                entries.sort(key=in_time)
                made = batch_id(*owner, entries[0].at, ports.ids.secret(4))
                is_first = (
                    hour == present and self._is_first(owner, hour) and len({each.status for each in entries}) == 1
                )
                _add(unit, made, owner, hour_of(hour), tuple(entries), is_first=is_first)
            # The caller already has the answer, and no money is lost if the machine fails here.
            await unit.commit(durable=False)

    def _is_first(self, owner: Owner, hour: datetime) -> bool:
        """Return whether an owner's batch is the first of this process in this hour. The next call for the same hour
        returns False."""
        if hour != self._hour:
            self._hour, self._firsts = hour, set()
        if owner in self._firsts or len(self._firsts) >= MOST_OWNERS:
            return False
        self._firsts.add(owner)
        return True


def _owner(noted: Noted) -> Owner:
    return noted.account_id, noted.mode


def _entry(noted: Noted, now: datetime, monotonic: float) -> RequestEntry:
    ago = round((monotonic - noted.answered) * 1_000_000)
    return RequestEntry(
        at=now - timedelta(0, 0, ago) if ago > 0 else now,  # from integers it is created in a third of the time
        method=noted.method,
        path=noted.path,
        object_id=shown_object(noted.values),
        status=noted.status,
        code=noted.code,
        key_id=noted.key_id,
        took_ms=round((noted.answered - noted.begun) * 1000),
        request_id=noted.request_id,
    )


def _add(unit: Unit, made: str, owner: Owner, hour: str, entries: tuple[RequestEntry, ...], *, is_first: bool) -> None:
    account_id, mode = owner
    if is_first:
        status, count = entries[0].status, len(entries)
        unit[FirstBatch].add(
            FirstBatch(
                id=made, account_id=account_id, mode=mode, entries=entries, hour=hour, status=status, count=count
            )
        )
        return
    unit[RequestBatch].add(RequestBatch(id=made, account_id=account_id, mode=mode, entries=entries))
    counts = Counter(entry.status for entry in entries)
    unit[RequestCount].accrue(*(request_count(*owner, hour, status, count) for status, count in counts.items()))


def in_time(entry: RequestEntry) -> datetime:
    """Return the sort key for the order in which requests were answered."""
    return entry.at
