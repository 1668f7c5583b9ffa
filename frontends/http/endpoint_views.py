"""Views of a webhook endpoint's breaker, last failure and test, for the account's own and for further endpoints."""

from typing import Annotated

import msgspec
from msgspec import Meta

from ...core.domain import shared_fields as shared
from ...core.domain.days import iso, iso_or_none
from ...core.domain.webhooks.breaker import Breaker
from ...core.usecases.webhooks.endpoint import TestReport


class BreakerView(msgspec.Struct, frozen=True, kw_only=True):
    """State of the breaker. While it is open, because the receiver failed too often in a row, events wait and one is
    sent at `next_probe_at`."""

    state: Annotated[str, Meta(description="`closed` or `open`")]
    failures: Annotated[int, Meta(description="Number of failures in a row")]
    opened_at: Annotated[str | None, Meta(description="Time at which the breaker opened; null while it is closed")]
    next_probe_at: Annotated[str | None, Meta(description="Time of the next attempt while the breaker is open")]


class FailureView(msgspec.Struct, frozen=True, kw_only=True):
    """The last failed webhook."""

    event_id: Annotated[str, Meta(description="Id of the event")]
    at: Annotated[str, Meta(description="Time of the failure")]
    answer: Annotated[str, shared.ANSWER]
    status: Annotated[int | None, shared.STATUS]
    note: Annotated[str, shared.NOTE]


class TestView(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a test webhook."""

    __test__ = False

    event_id: Annotated[str, Meta(description="Id of the event")]
    delivered: Annotated[bool, Meta(description="Whether the receiver answered 2xx")]
    sent_at: Annotated[str, shared.SENT_AT]
    answer: Annotated[str, shared.ANSWER]
    status: Annotated[int | None, shared.STATUS]
    note: Annotated[str, shared.NOTE]
    took_ms: Annotated[int, shared.TOOK_MS]


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
