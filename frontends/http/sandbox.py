"""The sandbox over HTTP, for test keys only (DECISIONS 8)."""

from litestar import Response, Router, post
from litestar.params import FromPath

from ...core.usecases.operations import Review, resolve_own_mismatch
from ...core.usecases.sandbox import PaymentSimulation, simulate
from ...ports.bundle import Ports
from .access import ApiRequest, require_test_mode
from .answers import answer
from .bodies import read_body
from .views import payment_view


def sandbox_router(ports: Ports) -> Router:
    """POST /sandbox/payments/{id}/simulate and /resolve."""

    @post("/payments/{payment_id:str}/simulate", status_code=200)
    async def simulate_payment(request: ApiRequest, payment_id: FromPath[str]) -> Response[bytes]:
        body = await request.body()
        wanted = read_body(body, request.headers.get("content-type"), PaymentSimulation)
        return answer(payment_view(ports, await simulate(ports, request.auth, payment_id, wanted)))

    @post("/payments/{payment_id:str}/resolve", status_code=200)
    async def resolve_payment(request: ApiRequest, payment_id: FromPath[str]) -> Response[bytes]:
        body = await request.body()
        wanted = read_body(body, request.headers.get("content-type"), Review)
        return answer(payment_view(ports, await resolve_own_mismatch(ports, request.auth, payment_id, wanted.outcome)))

    return Router("/sandbox", route_handlers=[simulate_payment, resolve_payment], guards=[require_test_mode])
