"""Catalogue of all metrics: name, labels, meaning. The exposition uses it, and tests compare the table in
docs/operations.md, the dashboard and the alert rules with it."""

from collections.abc import Mapping

import msgspec


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """One Prometheus metric."""

    name: str
    """Name of the metric; for a counter without `_total`."""
    type: str
    """`counter`, `gauge` or `histogram`."""
    labels: tuple[str, ...] = ()
    meaning: str

    @property
    def series(self) -> tuple[str, ...]:
        """Names of its time series."""
        if self.type == "histogram":
            return f"{self.name}_bucket", f"{self.name}_count", f"{self.name}_sum"
        return (f"{self.name}_total",) if self.type == "counter" else (self.name,)


def _counter(name: str, labels: str, meaning: str) -> Metric:
    return Metric(name=f"cambist_{name}", type="counter", labels=tuple(labels.split()), meaning=meaning)


def _gauge(name: str, labels: str, meaning: str) -> Metric:
    return Metric(name=f"cambist_{name}", type="gauge", labels=tuple(labels.split()), meaning=meaning)


def _histogram(name: str, labels: str, meaning: str) -> Metric:
    return Metric(name=f"cambist_{name}", type="histogram", labels=tuple(labels.split()), meaning=meaning)


_OWN = (
    _gauge("build_info", "version python", "always 1; the labels name the versions"),
    _counter(
        "http_requests",
        "method route code",
        "requests, by the route as it is declared; `none`: no route (unknown path, rate limit, body too large, too "
        "much work at once), code `none`: the client went before the answer",
    ),
    _histogram("http_request_seconds", "route", "time until the answer begins"),
    _gauge("http_requests_in_progress", "", "requests being answered, streams of open payment windows included"),
    _counter(
        "connections_refused",
        "bound",
        "connections that were closed at once: `address`, too many were open from one address; `process`, too many in "
        "all",
    ),
    _counter(
        "limit_hits",
        "counter",
        "requests refused by a rate limit: `money:ip`, `money:key`, `general:ip`, `general:key`, "
        "`pages:ip` (hosted pages), `notifications:ip` (notifications of providers)",
    ),
    _counter(
        "requests_not_logged",
        "",
        "requests that are missing in merchants' [logs of requests](concepts.md#your-requests), because 10,000 already "
        "waited to be written",
    ),
    _counter(
        "jobs",
        "kind outcome",
        "jobs run; `failed` ones are retried after a pause, `overtaken` ones belonged to another worker by then, "
        "`stopped` ones were cut off by the end of the process",
    ),
    _histogram("job_seconds", "kind", "time that a job took"),
    _histogram("job_lateness_seconds", "kind", "time from when a job fell due until a worker began it"),
    _gauge("jobs_in_progress", "", "jobs under way in this process"),
    _counter(
        "provider_calls",
        "port provider operation outcome",
        "calls to banks, chains, the KYC verifier and rate sources: `done`, `refused` (for certain), `unknown` (it may "
        "have happened), `unavailable` (certainly not executed), `timeout` (no answer within 20 s), `full` (too "
        "many wait for it already), `garbage` (cannot be true), `not_possible` (not configured or supported), "
        "`forged` (a notification that the provider did not send), `error`",
    ),
    _histogram("provider_call_seconds", "port provider operation", "time that such a call took"),
    _counter(
        "notifications",
        "adapter outcome",
        "provider notifications: `heard`, `nothing` (concerns no operation of ours), `forged`, `failed` (the adapter "
        "or the storage raised an error), `late` (not within 8 s), `too_large`, `wrong_network`, `wrong_secret`, "
        "`limited` (too many from one address); adapter `none`: no adapter of that name receives notifications",
    ),
    _counter(
        "notification_operations",
        "adapter outcome",
        "operations that notifications named: `asked_about`, or `ignored` (cannot be ours, or too many)",
    ),
    _counter(
        "deliveries",
        "outcome",
        "webhooks posted to receivers: `2xx` to `5xx` by their answer, or `timeout`, `connection`, `tls`, `blocked`",
    ),
    _histogram("delivery_seconds", "", "time that a receiver took"),
    _counter(
        "assertions",
        "rule",
        "units of writes that were not committed, because they would have broken a rule of the books: `journal_entry`, "
        "`running_balance`, `payout`, `status`, `event_sequence`, `previous_status`, `refund`, `tally`, `statement`",
    ),
    _gauge("event_loop_lag_seconds", "", "largest delay of the event loop in the last interval"),
    _gauge(
        "clock_offset_seconds", "", "how far the database's clock is ahead of this machine's; below zero: behind it"
    ),
)

_SHARED = (
    _gauge("up", "part", "whether `storage` reads and writes, `meter` and `queue` reach their server (1 or 0)"),
    _gauge("signs_age_seconds", "", "age of the values below; they are read every 15 s"),
    _gauge("queue_age_seconds", "", "for how long the oldest unclaimed job has been due"),
    _gauge("jobs_due", "", "jobs that are due or under way"),
    _gauge("jobs_waiting", "kind", "jobs that are due and wait for a worker, of the 1000 longest due"),
    _gauge("jobs_waiting_seconds", "kind", "for how long the oldest of them has been due"),
    _gauge("breakers_open", "", "receivers that get no webhooks at present, because their answers failed"),
    _gauge("gateway_status", "gateway mode status", "1 for the status that the gateway has, 0 for the others"),
    _gauge("suspense_waiting", "", "sums of money that wait for an operator"),
    _gauge(
        "outcomes_unknown",
        "mode operation",
        "operations at banks with an unknown outcome: polled until it is known, or left to an operator; a "
        "payment or binding counts for 3 days, a charge until it is known",
    ),
    _gauge("settlement_last_success_seconds", "mode", "Unix time of the last completed settlement (within a week)"),
    _gauge("settlement_late_seconds", "mode", "for how long a settlement is overdue, or an open one has been running"),
    _gauge(
        "notification_last_seconds",
        "adapter",
        "Unix time of the last notification of a provider, to within a minute",
    ),
    _gauge("alarm_channel_failing_seconds", "channel", "for how long an alarm channel has been failing; 0: it works"),
    _gauge(
        "reconciliation_last_success_seconds",
        "bank",
        "Unix time of the last complete comparison of a day with the bank's list",
    ),
    _gauge("reconciliation_differences", "bank difference", "differences from the bank's lists that are open"),
    _gauge("reconciliation_failed", "", "days that could not be compared with a bank's list, and wait for it"),
    _gauge("held", "", "1 while the installation is held, so no live money is sent or settled: `cambist resume`"),
    _gauge("unreadable_rows", "", "rows that cannot be read: see `cambist unreadable list`"),
    _gauge("ledger_faults", "", "faults found by the check of the ledger: above 0, run `cambist ledger verify`"),
)

METRICS: Mapping[str, Metric] = {metric.name: metric for metric in (*_OWN, *_SHARED)}
"""All metrics in the order of the documentation."""

SHARED = frozenset(metric.name for metric in _SHARED)
"""Metrics read from the storage. Every process reports the same value: use `max`, never `sum`."""
