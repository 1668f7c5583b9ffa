"""The sandbox over HTTP, for test keys only (docs/sandbox.md "The calls")."""

import msgspec
from litestar import Response, delete, post
from litestar.params import FromPath

from ...core.usecases.operators.review import Review, resolve_own_mismatch
from ...core.usecases.sandbox.data import forget_test_data
from ...core.usecases.sandbox.sandbox import PaymentSimulation, simulate
from ...ports.bundle import Ports
from .door.access import ApiRequest, require_test_mode
from .door.answers import answer
from .door.bodies import body_reader
from .door.routing import Router
from .views import payment_view


class ForgottenView(msgspec.Struct, frozen=True, kw_only=True):
    """What was forgotten: how many records of each kind. Not `complete`: call again, and it goes on."""

    removed: dict[str, int]
    complete: bool


def sandbox_router(ports: Ports) -> Router:
    """POST /sandbox/payments/{id}/simulate and /resolve, DELETE /sandbox/data."""

    @post("/payments/{payment_id:str}/simulate", status_code=200)
    async def simulate_payment(request: ApiRequest, payment_id: FromPath[str]) -> Response[bytes]:
        wanted = (await body_reader(request, PaymentSimulation))()
        return answer(payment_view(ports, await simulate(ports, request.auth, payment_id, wanted)))

    @post("/payments/{payment_id:str}/resolve", status_code=200)
    async def resolve_payment(request: ApiRequest, payment_id: FromPath[str]) -> Response[bytes]:
        wanted = (await body_reader(request, Review))()
        return answer(payment_view(ports, await resolve_own_mismatch(ports, request.auth, payment_id, wanted.outcome)))

    @delete("/data", status_code=200)
    async def forget(request: ApiRequest) -> Response[bytes]:
        forgotten = await forget_test_data(ports, request.auth)
        return answer(ForgottenView(removed=forgotten.removed, complete=forgotten.complete))

    handlers = [simulate_payment, resolve_payment, forget]
    return Router("/sandbox", route_handlers=handlers, guards=[require_test_mode])
