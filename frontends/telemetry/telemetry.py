"""Telemetry of a process: counters, and spans if tracing is on. Each event is recorded once, at its source: the HTTP
edge, the worker, and the provider adapters."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from ...ports.clock import Clock
from ...ports.faults import BulkheadFull, Forged, NotConfigured, NotSupported, OutcomeUnknown, Refused, Unavailable
from ...ports.jobs import Job
from ..layers.guard.guard import NotInTime
from ..layers.guard.values import InvalidAnswer
from .counters import Counters
from .tracing import Attributes, Tracing, ended

_FINE = frozenset({"done", "refused", "forged", "overtaken", "2xx", "not_possible"})
"""Outcomes that are not failures: a refusal is an answer."""


class Ending:
    """Outcome of a call, webhook or job, set before the block ends."""

    __slots__ = ("outcome",)

    def __init__(self) -> None:
        self.outcome: str | None = None


def outcome_of(fault: BaseException) -> str:
    """Return the outcome of a failed call as one word (ports/faults.py, and the cause set by the provider guard)."""
    if isinstance(fault.__cause__, NotInTime):
        return "timeout"
    if isinstance(fault.__cause__, InvalidAnswer):
        return "garbage"
    words = {
        Refused: "refused",
        Forged: "forged",
        OutcomeUnknown: "unknown",
        BulkheadFull: "full",
        Unavailable: "unavailable",
        NotConfigured: "not_possible",
        NotSupported: "not_possible",
        asyncio.CancelledError: "stopped",
    }
    return next((word for kind, word in words.items() if isinstance(fault, kind)), "error")


class Telemetry:
    """The counters of a process and its tracer."""

    def __init__(self, clock: Clock, tracing: Tracing | None = None) -> None:
        self.clock = clock
        self.counters = Counters()
        self.tracing = tracing

    @contextmanager
    def call(self, port: str, provider: str, operation: str) -> Iterator[None]:
        """Count and trace a provider call while the block runs."""
        begun = self.clock.monotonic()
        outcome = "done"
        attributes = {"cambist.port": port, "cambist.provider": provider, "cambist.operation": operation}
        with self._span(f"{port} {operation}", "client", attributes) as ending:
            try:
                yield
            except BaseException as fault:
                outcome = outcome_of(fault)
                raise
            finally:
                ending.outcome = outcome
                self.counters.calls.add(port, provider, operation, outcome)
                self.counters.call_seconds.add(self.clock.monotonic() - begun, port, provider, operation)

    @contextmanager
    def webhook(self, event: str | None, event_id: str | None) -> Iterator[Ending]:
        """Count and trace a webhook while the block runs; the caller sets its outcome."""
        begun = self.clock.monotonic()
        attributes = {"cambist.event.type": event, "cambist.event.id": event_id}
        with self._span("deliver", "client", attributes) as ending:
            try:
                yield ending
            except BaseException as fault:
                ending.outcome = "stopped" if isinstance(fault, asyncio.CancelledError) else "error"
                raise
            finally:
                self.counters.deliveries.add(ending.outcome or "error")
                self.counters.delivery_seconds.add(self.clock.monotonic() - begun)

    @contextmanager
    def job(self, job: Job) -> Iterator[Ending]:
        """Count and trace a job while the block runs; the caller sets its outcome."""
        counters = self.counters
        begun = self.clock.monotonic()
        counters.job_lateness.add(max((self.clock.now() - job.due).total_seconds(), 0.0), job.kind)
        counters.jobs_in_progress += 1
        attributes = {"cambist.job.kind": job.kind, "cambist.job.id": job.id, "cambist.object.id": job.argument}
        with self._span(f"job {job.kind}", "consumer", attributes) as ending:
            try:
                yield ending
            except BaseException as fault:
                ending.outcome = "stopped" if isinstance(fault, asyncio.CancelledError) else "failed"
                raise
            finally:
                counters.jobs_in_progress -= 1
                counters.jobs.add(job.kind, ending.outcome or "failed")
                counters.job_seconds.add(self.clock.monotonic() - begun, job.kind)

    @contextmanager
    def _span(self, name: str, kind: str, attributes: Attributes) -> Iterator[Ending]:
        ending = Ending()
        if self.tracing is None:
            yield ending
            return
        with self.tracing.span(name, kind, attributes) as span:
            try:
                yield ending
            finally:
                outcome = ending.outcome or "error"
                ended(span, {"cambist.outcome": outcome}, None if outcome in _FINE else outcome)
