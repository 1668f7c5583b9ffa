"""Gateways over HTTP (docs/webhooks.md "Gateways"; docs/sandbox.md "The calls"). No rule lives here."""

import msgspec
from litestar import Response, get, post
from litestar.params import FromPath

from ...core.domain.days import iso_or_none
from ...core.usecases.gateways.gateways import GatewaySimulation, ShownGateway, list_gateways, simulate_gateway
from ...ports.bundle import Ports
from .door.access import ApiRequest, require_test_mode
from .door.answers import answer
from .door.bodies import body_reader
from .door.routing import Router


class GatewayView(msgspec.Struct, frozen=True, kw_only=True):
    """One element of GET /gateways."""

    gateway_id: str
    payment_method: str | None
    status: str
    reason: str | None
    since: str | None
    """Null while it never changed."""


def gateway_view(shown: ShownGateway) -> GatewayView:
    """A gateway as merchants see it."""
    return GatewayView(
        gateway_id=shown.gateway_id,
        payment_method=shown.payment_method,
        status=shown.status.value,
        reason=None if shown.reason is None else shown.reason.value,
        since=iso_or_none(shown.since),
    )


def gateways_router(ports: Ports) -> Router:
    """GET /gateways."""

    @get("/")
    async def every(request: ApiRequest) -> Response[bytes]:
        caller = request.auth
        return answer([gateway_view(each) for each in await list_gateways(ports, caller.mode, caller.account_id)])

    return Router("/gateways", route_handlers=[every])


def sandbox_gateways_router(ports: Ports) -> Router:
    """POST /sandbox/gateways/{id}/simulate, for test keys only."""

    @post("/{gateway_id:str}/simulate", status_code=200)
    async def simulate(request: ApiRequest, gateway_id: FromPath[str]) -> Response[bytes]:
        wanted = (await body_reader(request, GatewaySimulation))()
        return answer(gateway_view(await simulate_gateway(ports, request.auth, gateway_id, wanted)))

    return Router("/sandbox/gateways", route_handlers=[simulate], guards=[require_test_mode])
