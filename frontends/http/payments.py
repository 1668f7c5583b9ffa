"""Payments over HTTP. No rule lives here (docs/payments.md "Taking one")."""

from litestar import Response, get, post
from litestar.params import FromPath

from ...core.domain.accounts.accounts import Caller
from ...core.domain.payments.orders import PaymentOrder
from ...core.usecases.payments.list import PaymentFilter, list_payments
from ...core.usecases.payments.payments import create_payment, get_payment, get_sbp_link
from ...ports.bundle import Ports
from .door.access import ApiRequest
from .door.answers import Answer, answer, encode, made
from .door.bodies import page_of, read_body
from .door.routing import Router
from .views import payment_view, payments_view


def payments_router(ports: Ports) -> Router:
    """POST /payments, GET /payments, GET /payments/{id}, GET /payments/{id}/sbp-link."""

    @post("/")
    async def create(request: ApiRequest) -> Response[bytes]:
        key, content_type = request.headers.get("idempotency-key"), request.headers.get("content-type")
        return (await create_one(ports, request.auth, key, content_type, await request.body())).of_framework()

    @get("/")
    async def page(request: ApiRequest) -> Response[bytes]:
        query = request.query_params
        number, size = page_of(query)
        asked = PaymentFilter(**{name: query.get(name) for name in PaymentFilter.__struct_fields__})
        return answer(payments_view(ports, await list_payments(ports, request.auth, asked, number, size)))

    @get("/{payment_id:str}")
    async def one(request: ApiRequest, payment_id: FromPath[str]) -> Response[bytes]:
        return (await read_one(ports, request.auth, payment_id)).of_framework()

    @get("/{payment_id:str}/sbp-link")
    async def sbp_link(request: ApiRequest, payment_id: FromPath[str]) -> Response[bytes]:
        return answer({"sbp_link": await get_sbp_link(ports, request.auth, payment_id)})

    return Router("/payments", route_handlers=[create, page, one, sbp_link])


async def create_one(ports: Ports, caller: Caller, key: str | None, content_type: str | None, body: bytes) -> Answer:
    """POST /payments. Raises: what `create_payment` raises."""
    payment = await create_payment(ports, caller, key, lambda: read_body(body, content_type, PaymentOrder))
    return made(payment_view(ports, payment.resource), replayed=payment.replayed)


async def read_one(ports: Ports, caller: Caller, payment_id: str) -> Answer:
    """GET /payments/{id}. Raises: what `get_payment` raises."""
    return Answer(encode(payment_view(ports, await get_payment(ports, caller, payment_id))))
