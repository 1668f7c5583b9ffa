"""HTTP API of the merchant's webhook endpoint: its state and a test event, without business rules (docs/webhooks.md
"Looking, and sending again")."""

from typing import Annotated

import msgspec
from litestar.types import ASGIApp
from msgspec import UNSET, Meta, UnsetType

from ...core.domain import shared_fields as shared
from ...core.domain.accounts.accounts import Caller, Mode
from ...core.domain.accounts.key_terms import Right
from ...core.domain.days import iso_or_none
from ...core.domain.webhooks.events import EventType
from ...core.usecases.webhooks.endpoint import EndpointReport, endpoint_state, send_test
from ...ports.bundle import Ports
from .edge.answers import answer
from .edge.operation import ApiRequest, Operation
from .endpoint_views import BreakerView, FailureView, TestView, breaker_view, failure_view, report_view


class BacklogView(msgspec.Struct, frozen=True, kw_only=True):
    held: Annotated[int, Meta(description="Number of events waiting until `webhook_url` and `webhook_secret` are set")]
    pending: Annotated[int, Meta(description="Number of events waiting for their next attempt")]
    failed: Annotated[int, Meta(description="Number of events given up; you can resend them")]


class EndpointView(msgspec.Struct, frozen=True, kw_only=True):
    url: Annotated[str | None, Meta(description="Your webhook_url")]
    secret_set: Annotated[bool, Meta(description="Whether a webhook secret is set")]
    event_types: Annotated[
        list[Annotated[str, shared.among(EventType)]] | None,
        Meta(description="Types of events sent to the endpoint; null: all"),
    ]
    header_names: Annotated[list[str], Meta(description="Names of your own headers; the values are not shown")]
    previous_secret_until: Annotated[str | None, Meta(description="Time until which the previous secret signs as well")]
    breaker: Annotated[BreakerView, Meta(description="State of the pause after too many failures in a row")]
    backlog: Annotated[BacklogView, Meta(description="Numbers of waiting and failed events")]
    last_success_at: Annotated[str | None, Meta(description="Time of the last 2xx answer")]
    last_failure: Annotated[FailureView | None, Meta(description="The last webhook without a 2xx answer")]
    sandbox: Annotated[bool | UnsetType, shared.SANDBOX] = UNSET


def endpoint_view(state: EndpointReport) -> EndpointView:
    """Return the state of the webhook endpoint."""
    account, breaker, wanted = state.account, state.breaker, state.account.settings.webhook_events
    return EndpointView(
        url=account.settings.webhook_url,
        secret_set=account.webhook_secret is not None,
        event_types=None if wanted is None else list(wanted),
        header_names=list(account.webhook_header_names or ()),
        previous_secret_until=iso_or_none(account.previous_secret_until),
        breaker=breaker_view(breaker),
        backlog=BacklogView(**{status.value: count for status, count in state.backlog.items()}),
        last_success_at=iso_or_none(breaker.last_success_at),
        last_failure=failure_view(breaker),
        sandbox=True if breaker.mode is Mode.TEST else UNSET,
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
        "Get the state of your webhook endpoint",
        state,
        answer=EndpointView,
    ),
    Operation(
        "test_webhook_endpoint",
        "post",
        "/api/v1/webhook-endpoint/test",
        "Events",
        "Send a test event to your webhook endpoint now",
        test,
        answer=TestView,
        refusals={409: ("INVALID_STATE",)},
        right=Right.WEBHOOKS,
    ),
)
