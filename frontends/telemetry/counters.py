"""Counters in plain integers: a request costs about a microsecond, and whoever scrapes reads them from another thread.

Labels are bounded: routes as they are declared, kinds of jobs, names of adapters; never an id.
"""

from bisect import bisect_left
from collections.abc import Sequence

from ...core.usecases.accounts.limit_hits import HitCounter
from ...core.usecases.accounts.request_log import RequestLog

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of durations."""
LATENESS = (0.05, 0.25, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0, 1800.0)
"""Upper bounds of how late something begins."""

Labels = tuple[str, ...]


class Tallies:
    """A number for each set of labels."""

    def __init__(self) -> None:
        self._counts: dict[Labels, int] = {}

    def add(self, *labels: str, times: int = 1) -> None:
        self._counts[labels] = self._counts.get(labels, 0) + times

    def read(self) -> list[tuple[Labels, int]]:
        """As of now; one step for the interpreter, so that no other thread meets it half-way."""
        return list(self._counts.items())


class Durations:
    """A histogram for each set of labels."""

    def __init__(self, bounds: Sequence[float] = SECONDS) -> None:
        self.bounds = tuple(bounds)
        self._rows: dict[Labels, list[float]] = {}
        """How many of each bound (not cumulated), how many above all, and the sum of all."""

    def add(self, seconds: float, *labels: str) -> None:
        row = self._rows.get(labels)
        if row is None:
            row = self._rows[labels] = [0.0] * (len(self.bounds) + 2)
        row[bisect_left(self.bounds, seconds)] += 1
        row[-1] += seconds

    def read(self) -> list[tuple[Labels, list[tuple[str, float]], float]]:
        """Labels, cumulated buckets as Prometheus writes them, and the sum."""
        found = []
        for labels, live in list(self._rows.items()):
            *counts, total = live.copy()
            buckets, so_far = [], 0.0
            for bound, count in zip((*map(str, self.bounds), "+Inf"), counts, strict=True):
                so_far += count
                buckets.append((bound, so_far))
            found.append((labels, buckets, total))
        return found


class Counters:
    """What a process has counted since it started."""

    def __init__(self) -> None:
        self.requests = Tallies()
        """method, route, code"""
        self.request_seconds = Durations()
        """route"""
        self.requests_in_progress = 0
        self.refused_connections = Tallies()
        """bound"""
        self.limit_hits = HitCounter()
        """counter; of the same numbers the rows of the storage are made"""
        self.request_log = RequestLog()
        """as the watch of requests has it"""
        self.jobs = Tallies()
        """kind, outcome"""
        self.job_seconds = Durations()
        """kind"""
        self.job_lateness = Durations(LATENESS)
        """kind"""
        self.jobs_in_progress = 0
        self.calls = Tallies()
        """port, provider, operation, outcome"""
        self.call_seconds = Durations()
        """port, provider, operation"""
        self.notices = Tallies()
        """adapter, outcome"""
        self.notice_operations = Tallies()
        """adapter, outcome"""
        self.deliveries = Tallies()
        """outcome"""
        self.delivery_seconds = Durations()
        """nothing"""
        self.assertions = Tallies()
        """rule"""
        self.loop_lag = 0.0
        """The most seconds by which the event loop was late in the last interval."""
