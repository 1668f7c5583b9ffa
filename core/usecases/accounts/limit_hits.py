"""How often limits are hit: counted by each process in memory, written every few seconds, read by the console.

A refusal costs an addition to a number and never a write: a flood of refused requests is four rows a minute, for all
processes together. What a process that is killed had not yet written is lost.
"""

from datetime import datetime, timedelta

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import AtLeast, Snapshot
from ...domain.accounts.limit_hits import LimitHits, hits_from, limit_hits
from ...domain.accounts.quota import WINDOW, Verdict
from ...domain.payments.tallies import day_of

HOUR = 60
"""Minutes that are told one by one."""

WAITING = 7200
"""Rows that wait at most while the storage is away, the newest: five limits in each minute of a day."""

_ROWS = 100
"""Written in one unit."""


class HitCounter:
    """What a process refused since it started, and what of it is not written yet. For one event loop; `read` may be
    called from any thread."""

    def __init__(self) -> None:
        self._ever: dict[tuple[str], int] = {}
        self._waiting: dict[tuple[str, int], int] = {}

    def count(self, verdict: Verdict) -> None:
        """A request that was refused. Raises nothing, waits for nothing."""
        self.add(verdict.limit.name.rstrip(":"), verdict.reset - WINDOW)

    def add(self, counter: str, minute: int, times: int = 1) -> None:
        """So many requests were refused by a limit in the minute that begins at the Unix second `minute`."""
        self._ever[counter,] = self._ever.get((counter,), 0) + times
        place = counter, minute
        self._waiting[place] = self._waiting.get(place, 0) + times
        if len(self._waiting) > WAITING:
            del self._waiting[next(iter(self._waiting))]

    def read(self) -> list[tuple[tuple[str], int]]:
        """By counter, since the process started; one step for the interpreter."""
        return list(self._ever.items())

    async def flush(self, ports: Ports) -> None:
        """Add what waits to the rows of the storage. What is counted meanwhile waits for the next time.

        Raises: Unavailable; what was not written waits on. A commit that broke off without an answer may have been
        carried out: then its requests are counted twice, which is better than not at all.
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
    """Requests that were refused, up to now."""

    today: dict[str, int]
    """Since the day began in UTC, by what the limit counts by: `ip` and `key`."""
    hour: list[int]
    """In each of the last HOUR minutes, the last one is the present one."""


async def read_hits(seen: Snapshot, now: datetime) -> Hits:
    """What was written so far, in a bounded read: of the rows there are four a minute."""
    minute = now.replace(second=0, microsecond=0)
    minutes = [minute - timedelta(minutes=back) for back in reversed(range(HOUR))]
    today = await seen[LimitHits].sums("count", by="counter", id=AtLeast(day_of(now)))
    by_minute = await seen[LimitHits].sums("count", by="minute", id=AtLeast(hits_from(minutes[0])))
    counted_by = {"ip": 0, "key": 0}
    for counter, count in today.items():
        counted_by[counter.rpartition(":")[2]] += count
    return Hits(today=counted_by, hour=[by_minute.get(each, 0) for each in minutes])
