"""Which job of the memory storage is due next, without looking at all of them."""

import heapq
from collections.abc import Iterator, Mapping

from .codec import Row

_Entry = tuple[int, str, int]
"""Microseconds, id, version. An entry whose version or time is no longer the stored one is dead and is dropped when
it comes up, so that changing a job costs one push."""


class DueJobs:
    """Two heaps over the rows of jobs: those free to take, by due time, and those under a lease, by its end."""

    def __init__(self, place: Mapping[str, int]) -> None:
        self._due = place["due"]
        self._lease = place["leased_until"]
        self._version = place["version"]
        self._open: list[_Entry] = []
        self._leased: list[_Entry] = []

    def note(self, job_id: str, rows: Mapping[str, Row]) -> None:
        """A job was added or changed."""
        row = rows[job_id]
        lease = row[self._lease]
        if lease is None:
            heapq.heappush(self._open, (row[self._due], job_id, row[self._version]))
        else:
            heapq.heappush(self._leased, (lease, job_id, row[self._version]))
        if len(self._open) + len(self._leased) > 4 * len(rows) + 64:
            self._rebuild(rows)

    def earliest(self, rows: Mapping[str, Row], now: int) -> str | None:
        """The job that is or was due first, of those that are under no living lease."""
        self._end_leases(rows, now)
        while self._open:
            due, job_id, version = self._open[0]
            row = rows.get(job_id)
            if row is not None and row[self._version] == version and row[self._due] == due:
                lease = row[self._lease]
                if lease is None or lease <= now:
                    return job_id
                heapq.heappush(self._leased, (lease, job_id, version))  # the clock was set back
            heapq.heappop(self._open)
        return None

    def due(self, rows: Mapping[str, Row], now: int) -> Iterator[str]:
        """Due jobs, the first due first. Each must be leased or removed before the next is asked for."""
        while (job_id := self.earliest(rows, now)) is not None and rows[job_id][self._due] <= now:
            yield job_id

    def _end_leases(self, rows: Mapping[str, Row], now: int) -> None:
        while self._leased and self._leased[0][0] <= now:
            lease, job_id, version = heapq.heappop(self._leased)
            row = rows.get(job_id)
            if row is not None and row[self._version] == version and row[self._lease] == lease:
                heapq.heappush(self._open, (row[self._due], job_id, version))

    def _rebuild(self, rows: Mapping[str, Row]) -> None:
        entries = [(row[self._due], row[self._lease], job_id, row[self._version]) for job_id, row in rows.items()]
        self._open = [(due, job_id, version) for due, lease, job_id, version in entries if lease is None]
        self._leased = [(lease, job_id, version) for _, lease, job_id, version in entries if lease is not None]
        heapq.heapify(self._open)
        heapq.heapify(self._leased)
