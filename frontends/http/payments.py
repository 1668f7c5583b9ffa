"""Payments over HTTP. No rule lives here (SPEC "Endpoints: Payments")."""

from litestar import Response, Router, get, post
from litestar.params import FromPath

from ...core.domain.orders import PaymentOrder
from ...core.usecases.payment_list import PaymentFilter, list_payments
from ...core.usecases.payments import create_payment, get_payment, get_sbp_link
from ...ports.bundle import Ports
from .access import ApiRequest
from .answers import answer, created
from .bodies import page_of, read_body
from .views import payment_view, payments_view


def payments_router(ports: Ports) -> Router:
    """POST /payments, GET /payments, GET /payments/{id}, GET /payments/{id}/sbp-link."""

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
        asked = PaymentFilter(**{name: query.get(name) for name in PaymentFilter.__struct_fields__})
        return answer(payments_view(ports, await list_payments(ports, request.auth, asked, number, size)))

    @get("/{payment_id:str}")
    async def one(request: ApiRequest, payment_id: FromPath[str]) -> Response[bytes]:
        return answer(payment_view(ports, await get_payment(ports, request.auth, payment_id)))

    @get("/{payment_id:str}/sbp-link")
    async def sbp_link(request: ApiRequest, payment_id: FromPath[str]) -> Response[bytes]:
        return answer({"sbp_link": await get_sbp_link(ports, request.auth, payment_id)})

    return Router("/payments", route_handlers=[create, page, one, sbp_link])
