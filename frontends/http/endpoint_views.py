"""Views of a webhook endpoint's breaker, last failure and test, for the account's own and for further endpoints."""

import msgspec

from ...core.domain.days import iso, iso_or_none
from ...core.domain.webhooks.breaker import Breaker
from ...core.usecases.webhooks.endpoint import TestReport


class BreakerView(msgspec.Struct, frozen=True, kw_only=True):
    """State of the breaker. While it is open, because the receiver failed too often in a row, events wait and one is
    sent at `next_probe_at`."""

    state: str
    failures: int
    opened_at: str | None
    next_probe_at: str | None


class FailureView(msgspec.Struct, frozen=True, kw_only=True):
    """The last failed webhook."""

    event_id: str
    at: str
    answer: str
    status: int | None
    note: str


class TestView(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a test webhook."""

    __test__ = False

    event_id: str
    delivered: bool
    sent_at: str
    answer: str
    status: int | None
    note: str
    took_ms: int


def breaker_view(breaker: Breaker) -> BreakerView:
    """Return the state of the breaker."""
    return BreakerView(
        state="open" if breaker.is_open else "closed",
        failures=breaker.failures,
        opened_at=iso_or_none(breaker.opened_at),
        next_probe_at=iso_or_none(breaker.next_probe_at),
    )


def failure_view(breaker: Breaker) -> FailureView | None:
    """Return the last failed webhook, if any."""
    if breaker.last_failure_at is None:
        return None
    return FailureView(
        event_id=(breaker.last_failed_event or "").partition("/")[0],
        at=iso(breaker.last_failure_at),
        answer=breaker.last_answer or "",
        status=breaker.last_status,
        note=breaker.last_note or "",
    )


def report_view(report: TestReport) -> TestView:
    """Return the result of a test webhook."""
    return TestView(
        event_id=report.event_id,
        delivered=report.delivered,
        sent_at=iso(report.sent_at),
        answer=report.result.answer.value,
        status=report.result.status,
        note=report.result.note,
        took_ms=report.result.took_ms,
    )
