"""Counters as plain integers. A request costs about a microsecond, and another thread reads them for scrapes.

Labels have bounded values: declared routes, kinds of jobs, names of adapters; never an id.
"""

from bisect import bisect_left
from collections.abc import Sequence

from ...core.usecases.accounts.limit_hits import HitCounter
from ...core.usecases.accounts.request_log import RequestLog

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of duration buckets, in seconds."""
LATENESS = (0.05, 0.25, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0, 1800.0)
"""Upper bounds of lateness buckets, in seconds."""

Labels = tuple[str, ...]


class Tallies:
    """One counter per set of labels."""

    def __init__(self) -> None:
        self._counts: dict[Labels, int] = {}

    def add(self, *labels: str, times: int = 1) -> None:
        self._counts[labels] = self._counts.get(labels, 0) + times

    def read(self) -> list[tuple[Labels, int]]:
        """Return the current values in one interpreter step, so that no other thread sees a partial state."""
        return list(self._counts.items())


class Durations:
    """One histogram per set of labels."""

    def __init__(self, bounds: Sequence[float] = SECONDS) -> None:
        self.bounds = tuple(bounds)
        self._rows: dict[Labels, list[float]] = {}
        """Per set of labels: the count of each bucket (not cumulative), the count above all bounds, and the sum of all
        values."""

    def add(self, seconds: float, *labels: str) -> None:
        row = self._rows.get(labels)
        if row is None:
            row = self._rows[labels] = [0.0] * (len(self.bounds) + 2)
        row[bisect_left(self.bounds, seconds)] += 1
        row[-1] += seconds

    def read(self) -> list[tuple[Labels, list[tuple[str, float]], float]]:
        """Return the labels, the cumulative buckets in Prometheus' format, and the sum."""
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
    """Counters of a process since its start."""

    def __init__(self) -> None:
        self.requests = Tallies()
        """method, route, code"""
        self.request_seconds = Durations()
        """route"""
        self.requests_in_progress = 0
        self.refused_connections = Tallies()
        """bound"""
        self.limit_hits = HitCounter()
        """counter; the rows in the storage are made from the same numbers"""
        self.request_log = RequestLog()
        """shared with the RequestWatch"""
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
        self.notifications = Tallies()
        """adapter, outcome"""
        self.notification_operations = Tallies()
        """adapter, outcome"""
        self.deliveries = Tallies()
        """outcome"""
        self.delivery_seconds = Durations()
        """no labels"""
        self.assertions = Tallies()
        """rule"""
        self.loop_lag = 0.0
        """Largest delay of the event loop in the last interval, in seconds."""
