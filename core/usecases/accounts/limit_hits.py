"""Counts of exceeded rate limits. Each process counts in memory and writes every few seconds, and the console reads
them.

A refusal costs an addition and never a write. A flood of refused requests makes four rows a minute, for all processes
together. A killed process loses the counts that it had not written yet.
"""

from datetime import datetime, timedelta

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import AtLeast, Snapshot
from ...domain.accounts.limit_hits import LimitHits, hits_from, limit_hits
from ...domain.accounts.rate_limit import WINDOW, Verdict
from ...domain.payments.tallies import day_of

HOUR = 60
"""Number of minutes that are shown one by one."""

WAITING = 7200
"""Maximum number of waiting rows while the storage is unavailable; older ones are dropped. It suffices for five limits
in each minute of a day."""

_ROWS = 100
"""Rows per unit of work."""


class HitCounter:
    """Refusals of a process since its start, and those not written yet. For one event loop, but `read` may be called
    from any thread."""

    def __init__(self) -> None:
        self._ever: dict[tuple[str], int] = {}
        self._waiting: dict[tuple[str, int], int] = {}

    def count(self, verdict: Verdict) -> None:
        """Count a refused request, without waiting."""
        self.add(verdict.limit.name.rstrip(":"), verdict.reset - WINDOW)

    def add(self, counter: str, minute: int, times: int = 1) -> None:
        """Count requests that a limit refused in the minute that begins at the Unix second `minute`."""
        self._ever[counter,] = self._ever.get((counter,), 0) + times
        place = counter, minute
        self._waiting[place] = self._waiting.get(place, 0) + times
        if len(self._waiting) > WAITING:
            del self._waiting[next(iter(self._waiting))]

    def read(self) -> list[tuple[tuple[str], int]]:
        """Return the counts by counter since the start of the process, in one atomic step of the interpreter."""
        return list(self._ever.items())

    async def flush(self, ports: Ports) -> None:
        """Add the waiting counts to the rows of the storage. Counts that arrive meanwhile wait for the next call.

        Raises: Unavailable; unwritten counts are kept. A commit that failed without an answer may have succeeded. Its
        requests are then counted twice, which is better than not at all.
        """
        waiting = list(self._waiting.items())
        for start in range(0, len(waiting), _ROWS):
            part = waiting[start : start + _ROWS]
            async with ports.storage.unit() as unit:
                unit[LimitHits].accrue(*(limit_hits(counter, minute, count) for (counter, minute), count in part))
                await unit.commit()
            for place, count in part:
                left = self._waiting.get(place, 0) - count
                if left > 0:
                    self._waiting[place] = left
                else:
                    self._waiting.pop(place, None)


class Hits(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of refused requests up to now."""

    today: dict[str, int]
    """Since the start of the UTC day, by the kind of limit: `ip` and `key`."""
    hour: list[int]
    """In each of the last HOUR minutes. The last one is the current minute."""


async def read_hits(seen: Snapshot, now: datetime) -> Hits:
    """Read the written counts. The read is bounded, because there are four rows a minute."""
    minute = now.replace(second=0, microsecond=0)
    minutes = [minute - timedelta(minutes=back) for back in reversed(range(HOUR))]
    today = await seen[LimitHits].sums("count", by="counter", id=AtLeast(day_of(now)))
    by_minute = await seen[LimitHits].sums("count", by="minute", id=AtLeast(hits_from(minutes[0])))
    counted_by = {"ip": 0, "key": 0}
    for counter, count in today.items():
        counted_by[counter.rpartition(":")[2]] += count
    return Hits(today=counted_by, hour=[by_minute.get(each, 0) for each in minutes])
