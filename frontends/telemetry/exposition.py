"""Serves the metrics on a separate port for Prometheus. A thread answers from counters and the last reading, so a
scrape waits for neither the storage nor the event loop."""

import logging
import platform
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime

import prometheus_client
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector, CollectorRegistry

from ...core.domain.gateways.gateways import GatewayStatus
from ...core.usecases.accounts.limit_hits import HitCounter
from .catalogue import METRICS
from .counters import Durations, Tallies
from .signs import Reader, Signs
from .telemetry import Telemetry
from .version import version

Rows = Iterable[tuple[Sequence[str], float]]

log = logging.getLogger("cambist.telemetry")


class Exposition(Collector):
    """Collects all metrics of the catalogue with their current values."""

    def __init__(self, telemetry: Telemetry, reader: Reader) -> None:
        self._telemetry = telemetry
        self._reader = reader

    def describe(self) -> Iterable[Metric]:
        """Return nothing, so that registering does not collect."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Yield one family per metric. Metrics that could not be read have no rows."""
        counters = self._telemetry.counters
        yield _gauge("build_info", [((version(), platform.python_version()), 1.0)])
        yield _counter("http_requests", counters.requests)
        yield _histogram("http_request_seconds", counters.request_seconds)
        yield _one("http_requests_in_progress", counters.requests_in_progress)
        yield _counter("connections_refused", counters.refused_connections)
        yield _counter("limit_hits", counters.limit_hits)
        yield _counter("requests_not_logged", [((), counters.request_log.lost)])
        yield _counter("jobs", counters.jobs)
        yield _histogram("job_seconds", counters.job_seconds)
        yield _histogram("job_lateness_seconds", counters.job_lateness)
        yield _one("jobs_in_progress", counters.jobs_in_progress)
        yield _counter("provider_calls", counters.calls)
        yield _histogram("provider_call_seconds", counters.call_seconds)
        yield _counter("notifications", counters.notifications)
        yield _counter("notification_operations", counters.notification_operations)
        yield _counter("deliveries", counters.deliveries)
        yield _histogram("delivery_seconds", counters.delivery_seconds)
        yield _counter("assertions", counters.assertions)
        yield _one("event_loop_lag_seconds", counters.loop_lag)
        signs = self._reader.signs
        if signs is not None:
            yield from self._read(signs)

    def _read(self, signs: Signs) -> Iterator[Metric]:
        yield _gauge("up", [((part,), float(works)) for part, works in signs.up.items()])
        yield _one("clock_offset_seconds", signs.clock_offset)
        yield _one("signs_age_seconds", self._telemetry.clock.monotonic() - signs.read_at)
        yield _one("queue_age_seconds", signs.queue_age)
        yield _one("jobs_due", signs.jobs_due)
        yield _gauge("jobs_waiting", [((each.kind,), each.jobs) for each in signs.waiting])
        yield _gauge("jobs_waiting_seconds", [((each.kind,), each.lateness) for each in signs.waiting])
        yield _one("breakers_open", signs.breakers_open)
        yield _gauge(
            "gateway_status",
            [
                ((each.gateway_id, each.mode, status), float(each.status is status))
                for each in signs.gateways
                for status in GatewayStatus
            ],
        )
        yield _one("suspense_waiting", signs.suspense)
        yield _gauge("outcomes_unknown", [((each.mode, each.operation), each.count) for each in signs.unknown])
        yield _gauge(
            "settlement_last_success_seconds",
            [((each.mode,), _unix(each.completed_at)) for each in signs.settlements if each.completed_at is not None],
        )
        yield _gauge("settlement_late_seconds", [((each.mode,), each.lateness) for each in signs.settlements])
        yield _gauge("notification_last_seconds", [((name,), _unix(at)) for name, at in signs.notifications.items()])
        yield _gauge("alarm_channel_failing_seconds", [((name,), age) for name, age in signs.alarm_channels.items()])
        compared = [(each.bank, each.compared_at) for each in signs.reconciliations]
        yield _gauge(
            "reconciliation_last_success_seconds", [((bank,), _unix(at)) for bank, at in compared if at is not None]
        )
        yield _gauge(
            "reconciliation_differences",
            [
                ((each.bank, difference), count)
                for each in signs.reconciliations
                for difference, count in each.differences.items()
            ],
        )
        yield _one("reconciliation_failed", signs.days_not_compared)
        yield _one("held", None if signs.held is None else float(signs.held))
        yield _one("unreadable_rows", signs.unreadable)
        yield _one("ledger_faults", signs.ledger_faults)


def _gauge(name: str, rows: Rows) -> Metric:
    metric = METRICS[f"cambist_{name}"]
    family = GaugeMetricFamily(metric.name, metric.meaning, labels=metric.labels)
    for labels, value in rows:
        family.add_metric(labels, value)
    return family


def _one(name: str, value: float | None) -> Metric:
    return _gauge(name, [] if value is None else [((), value)])


def _counter(name: str, counted: Tallies | HitCounter | Rows) -> Metric:
    metric = METRICS[f"cambist_{name}"]
    family = CounterMetricFamily(metric.name, metric.meaning, labels=metric.labels)
    for labels, count in counted.read() if isinstance(counted, Tallies | HitCounter) else counted:
        family.add_metric(labels, count)
    return family


def _histogram(name: str, durations: Durations) -> Metric:
    metric = METRICS[f"cambist_{name}"]
    family = HistogramMetricFamily(metric.name, metric.meaning, labels=metric.labels)
    for labels, buckets, total in durations.read():
        family.add_metric(labels, buckets, total)
    return family


def _unix(moment: datetime) -> float:
    return moment.timestamp()


def registry_of(telemetry: Telemetry, reader: Reader) -> CollectorRegistry:
    """Return a registry with our metrics and those of the process: memory, files, CPU."""
    registry = CollectorRegistry()
    registry.register(Exposition(telemetry, reader))
    prometheus_client.ProcessCollector(registry=registry)
    return registry


@contextmanager
def exposed(telemetry: Telemetry, reader: Reader, host: str, port: int) -> Iterator[int]:
    """Serve the metrics while the block runs, and yield the port. Raises: OSError if it cannot be bound."""
    server, thread = prometheus_client.start_http_server(port, host, registry_of(telemetry, reader))
    bound: int = server.server_port
    shown = f"[{host}]" if ":" in host else host
    log.info("metrics at http://%s:%d/metrics", shown, bound)
    try:
        yield bound
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
