"""Which job of the memory storage is due next, without looking at all of them."""

import heapq
from collections.abc import Mapping

from ..table.codec import Row

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
        self._bound = 64
        """Entries in all at which the dead ones are dropped."""

    def note(self, job_id: str, rows: Mapping[str, Row]) -> None:
        """A job was added or changed."""
        row = rows[job_id]
        lease = row[self._lease]
        if lease is None:
            heapq.heappush(self._open, (row[self._due], job_id, row[self._version]))
        else:
            heapq.heappush(self._leased, (lease, job_id, row[self._version]))
        if len(self) > self._bound:
            self._rebuild(rows)

    def __len__(self) -> int:
        """Entries, dead ones among them."""
        return len(self._open) + len(self._leased)

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

    def _end_leases(self, rows: Mapping[str, Row], now: int) -> None:
        while self._leased and self._leased[0][0] <= now:
            lease, job_id, version = heapq.heappop(self._leased)
            row = rows.get(job_id)
            if row is not None and row[self._version] == version and row[self._lease] == lease:
                heapq.heappush(self._open, (row[self._due], job_id, version))

    def _rebuild(self, rows: Mapping[str, Row]) -> None:
        known = {job_id for _, job_id, _ in (*self._open, *self._leased)}
        entries = [(rows[job_id], job_id) for job_id in known if job_id in rows]
        self._open = [(row[self._due], name, row[self._version]) for row, name in entries if row[self._lease] is None]
        self._leased = [
            (row[self._lease], name, row[self._version]) for row, name in entries if row[self._lease] is not None
        ]
        heapq.heapify(self._open)
        heapq.heapify(self._leased)
        self._bound = 4 * len(entries) + 64


class DueKinds:
    """The due jobs of each kind, as their ids tell it, so that one kind is found behind any number of others."""

    def __init__(self, place: Mapping[str, int]) -> None:
        self._place = place
        self._of: dict[str, DueJobs] = {}

    def __len__(self) -> int:
        return sum(map(len, self._of.values()))

    def note(self, job_id: str, rows: Mapping[str, Row]) -> None:
        """A job was added or changed."""
        kind = _kind_of(job_id)
        if kind not in self._of:
            self._of[kind] = DueJobs(self._place)
        self._of[kind].note(job_id, rows)

    def earliest(
        self, rows: Mapping[str, Row], now: int, *, kind: str | None = None, but_kind: str | None = None
    ) -> str | None:
        """The job that is or was due first, of those that are under no living lease; of one kind, or all but one."""
        asked = [due for name, due in self._of.items() if kind in (None, name) and but_kind != name]
        found = [job_id for due in asked if (job_id := due.earliest(rows, now)) is not None]
        return min(found, key=lambda job_id: (rows[job_id][self._place["due"]], job_id), default=None)

    def due(self, rows: Mapping[str, Row], now: int, *, kind: str | None, but_kind: str | None) -> str | None:
        """The job that has been due longest; it must be leased or removed before the next is asked for."""
        job_id = self.earliest(rows, now, kind=kind, but_kind=but_kind)
        return job_id if job_id is not None and rows[job_id][self._place["due"]] <= now else None


def _kind_of(job_id: str) -> str:
    """The kind of a job (ports/jobs.py: Job.id); an id without a colon is of none."""
    kind, colon, _ = job_id.partition(":")
    return kind if colon else ""
