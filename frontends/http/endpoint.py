"""The merchant's receiver over HTTP: how it does, and a test of it (docs/webhooks.md "Looking, and sending again"). No
rule lives here."""

import msgspec
from litestar.types import ASGIApp
from msgspec import UNSET, UnsetType

from ...core.domain.accounts.accounts import Caller, Mode
from ...core.domain.days import iso, iso_or_none
from ...core.domain.webhooks.breaker import Breaker
from ...core.usecases.webhooks.endpoint import EndpointReport, TestReport, endpoint_state, send_test
from ...ports.bundle import Ports
from .door.answers import answer
from .door.operation import ApiRequest, Operation


class BreakerView(msgspec.Struct, frozen=True, kw_only=True):
    """Open: the receiver failed too often in a row; events wait, and one is sent at `next_probe_at`."""

    state: str
    failures: int
    opened_at: str | None
    next_probe_at: str | None


class FailureView(msgspec.Struct, frozen=True, kw_only=True):
    """The last webhook that was not answered well."""

    event_id: str
    at: str
    answer: str
    status: int | None
    note: str


class BacklogView(msgspec.Struct, frozen=True, kw_only=True):
    held: int
    pending: int
    failed: int


class EndpointView(msgspec.Struct, frozen=True, kw_only=True):
    url: str | None
    secret_set: bool
    previous_secret_until: str | None
    breaker: BreakerView
    backlog: BacklogView
    last_success_at: str | None
    last_failure: FailureView | None
    sandbox: bool | UnsetType = UNSET


class TestView(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a test webhook."""

    __test__ = False

    event_id: str
    delivered: bool
    sent_at: str
    answer: str
    status: int | None
    note: str
    took_ms: int


def endpoint_view(state: EndpointReport) -> EndpointView:
    """How the receiver does."""
    account, breaker = state.account, state.breaker
    return EndpointView(
        url=account.settings.webhook_url,
        secret_set=account.webhook_secret is not None,
        previous_secret_until=iso_or_none(account.previous_secret_until),
        breaker=BreakerView(
            state="open" if breaker.is_open else "closed",
            failures=breaker.failures,
            opened_at=iso_or_none(breaker.opened_at),
            next_probe_at=iso_or_none(breaker.next_probe_at),
        ),
        backlog=BacklogView(**{status.value: count for status, count in state.backlog.items()}),
        last_success_at=iso_or_none(breaker.last_success_at),
        last_failure=_failure_view(breaker),
        sandbox=True if breaker.mode is Mode.TEST else UNSET,
    )


def _failure_view(breaker: Breaker) -> FailureView | None:
    if breaker.last_failure_at is None:
        return None
    return FailureView(
        event_id=breaker.last_failed_event or "",
        at=iso(breaker.last_failure_at),
        answer=breaker.last_answer or "",
        status=breaker.last_status,
        note=breaker.last_note or "",
    )


def report_view(report: TestReport) -> TestView:
    """The result of a test webhook."""
    return TestView(
        event_id=report.event_id,
        delivered=report.delivered,
        sent_at=iso(report.sent_at),
        answer=report.result.answer.value,
        status=report.result.status,
        note=report.result.note,
        took_ms=report.result.took_ms,
    )


async def state(ports: Ports, caller: Caller, _: ApiRequest[None]) -> ASGIApp:
    return answer(endpoint_view(await endpoint_state(ports, caller)))


async def test(ports: Ports, caller: Caller, _: ApiRequest[None]) -> ASGIApp:
    return answer(report_view(await send_test(ports, caller)))


ENDPOINT = (
    Operation(
        "get_webhook_endpoint",
        "get",
        "/api/v1/webhook-endpoint",
        "Events",
        "How the receiver does",
        state,
        answer=EndpointView,
    ),
    Operation(
        "test_webhook_endpoint",
        "post",
        "/api/v1/webhook-endpoint/test",
        "Events",
        "Post a test event to the receiver now",
        test,
        answer=TestView,
        refusals={409: ("INVALID_STATE",)},
    ),
)
