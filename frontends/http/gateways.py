"""HTTP API of gateways, without business rules (docs/webhooks.md "Gateways"; docs/sandbox.md "The calls")."""

from typing import Annotated

import msgspec
from litestar.types import ASGIApp
from msgspec import Meta

from ...core.domain import shared_fields as shared
from ...core.domain.accounts.accounts import Caller
from ...core.domain.days import iso_or_none
from ...core.domain.gateways.gateways import GatewayReason, GatewayStatus
from ...core.usecases.gateways.gateways import GatewaySimulation, ShownGateway, list_gateways, simulate_gateway
from ...ports.bundle import Ports
from .edge.answers import answer
from .edge.operation import ApiRequest, Operation


class GatewayView(msgspec.Struct, frozen=True, kw_only=True):
    """One element of GET /gateways."""

    gateway_id: Annotated[str, Meta(description="Id of the gateway")]
    payment_method: Annotated[str | None, shared.PAYMENT_METHOD]
    status: Annotated[str, shared.STATUS, shared.among(GatewayStatus)]
    reason: Annotated[str | None, Meta(description="Reason of the status"), shared.among((*GatewayReason, None))]
    since: Annotated[str | None, Meta(description="Time of the last change of status; null: it never changed")]


def gateway_view(shown: ShownGateway) -> GatewayView:
    """Return a gateway as merchants see it."""
    return GatewayView(
        gateway_id=shown.gateway_id,
        payment_method=shown.payment_method,
        status=shown.status.value,
        reason=None if shown.reason is None else shown.reason.value,
        since=iso_or_none(shown.since),
    )


async def every(ports: Ports, caller: Caller, _: ApiRequest[None]) -> ASGIApp:
    return answer([gateway_view(each) for each in await list_gateways(ports, caller.mode, caller.account_id)])


async def simulate(ports: Ports, caller: Caller, request: ApiRequest[GatewaySimulation]) -> ASGIApp:
    return answer(gateway_view(await simulate_gateway(ports, caller, request.id, request.read())))


GATEWAYS = (
    Operation(
        "list_gateways",
        "get",
        "/api/v1/gateways",
        "Gateways",
        "List the payment gateways and their status",
        every,
        answer=list[GatewayView],
    ),
    Operation(
        "simulate_gateway",
        "post",
        "/api/v1/sandbox/gateways/{gateway_id}/simulate",
        "Sandbox",
        "Simulate the status of a gateway, for this account only",
        simulate,
        body=GatewaySimulation,
        answer=GatewayView,
        refusals={404: ("GATEWAY_NOT_FOUND", "NOT_FOUND")},
    ),
)
