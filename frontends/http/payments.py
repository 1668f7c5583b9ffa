"""Payments over HTTP. No rule lives here (SPEC "Endpoints: Payments")."""

from litestar import Response, Router, get, post
from litestar.params import FromPath

from ...core.domain.orders import PaymentOrder
from ...core.usecases.payments import PaymentFilter, create_payment, get_payment, list_payments
from ...ports.bundle import Ports
from .access import ApiRequest
from .answers import answer, created
from .bodies import page_of, read_body
from .views import payment_view, payments_view


def payments_router(ports: Ports) -> Router:
    """POST /payments, GET /payments, GET /payments/{id}."""

    @post("/")
    async def create(request: ApiRequest) -> Response[bytes]:
        body = await request.body()
        made = await create_payment(
            ports,
            request.auth,
            request.headers.get("idempotency-key"),
            lambda: read_body(body, request.headers.get("content-type"), PaymentOrder),
        )
        return created(payment_view(ports, made.resource), replayed=made.replayed)

    @get("/")
    async def page(request: ApiRequest) -> Response[bytes]:
        query = request.query_params
        number, size = page_of(query)
        wanted = PaymentFilter(shop_id=query.get("shop_id"), status=query.get("status"))
        return answer(payments_view(ports, await list_payments(ports, request.auth, wanted, number, size)))

    @get("/{payment_id:str}")
    async def one(request: ApiRequest, payment_id: FromPath[str]) -> Response[bytes]:
        return answer(payment_view(ports, await get_payment(ports, request.auth, payment_id)))

    return Router("/payments", route_handlers=[create, page, one])
