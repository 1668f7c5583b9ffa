"""Exchanges over HTTP. No rule lives here (docs/exchanges.md "Exchanges"; docs/sandbox.md "The calls")."""

import msgspec
from litestar import Response, get, post
from litestar.params import FromPath

from ...core.domain.days import iso, iso_or_none
from ...core.domain.exchanges.exchanges import Exchange, shown_received
from ...core.domain.exchanges.orders import ExchangeOrder
from ...core.domain.masked import Masked
from ...core.usecases.exchanges.exchanges import (
    cancel_exchange,
    create_exchange,
    get_exchange,
    list_exchanges,
)
from ...core.usecases.paging import Page
from ...core.usecases.sandbox.exchange_orders import ExchangeWish, begin_simulated
from ...core.usecases.sandbox.exchanges import ExchangeSimulation, simulate_exchange
from ...core.usecases.sealed import open_exchange_phone
from ...ports.bundle import Ports
from .door.access import ApiRequest, require_test_mode
from .door.answers import answer, created
from .door.bodies import body_reader, page_of
from .door.routing import Router
from .views import Pagination, pagination


class NewExchangeView(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of POST /exchanges."""

    id: str
    status: str
    crypto_deposit_address: str | None
    network: str | None
    amount_usdt: str
    amount_rub: str
    rate: str
    expires_at: str
    external_id: str | None


class ExchangeView(Masked, frozen=True, kw_only=True):
    """The exchange object (docs/exchanges.md "Making one")."""

    _shown = ("id",)

    id: str
    status: str
    direction: str
    amount_usdt: str
    amount_usdt_received: str | None
    amount_rub: str
    rate: str
    crypto_deposit_address: str | None
    network: str | None
    client_phone: str
    expires_at: str
    completed_at: str | None
    external_id: str | None
    created_at: str


class ExchangesView(msgspec.Struct, frozen=True, kw_only=True):
    data: list[ExchangeView]
    pagination: Pagination


def new_exchange_view(exchange: Exchange) -> NewExchangeView:
    """What its maker is told."""
    return NewExchangeView(
        id=exchange.id,
        status=exchange.status.value,
        crypto_deposit_address=exchange.crypto_deposit_address,
        network=exchange.network,
        amount_usdt=str(exchange.amount_usdt),
        amount_rub=str(exchange.amount_rub),
        rate=exchange.rate,
        expires_at=iso(exchange.expires_at),
        external_id=exchange.external_id,
    )


def exchange_view(ports: Ports, exchange: Exchange) -> ExchangeView:
    """The exchange object of the interface, its phone in plain."""
    received = shown_received(exchange)
    return ExchangeView(
        id=exchange.id,
        status=exchange.status.value,
        direction=exchange.direction.value,
        amount_usdt=str(exchange.amount_usdt),
        amount_usdt_received=None if received is None else str(received),
        amount_rub=str(exchange.amount_rub),
        rate=exchange.rate,
        crypto_deposit_address=exchange.crypto_deposit_address,
        network=exchange.network,
        client_phone=open_exchange_phone(ports.vault, exchange),
        expires_at=iso(exchange.expires_at),
        completed_at=iso_or_none(exchange.completed_at),
        external_id=exchange.external_id,
        created_at=iso(exchange.created_at),
    )


def exchanges_view(ports: Ports, page: Page[Exchange]) -> ExchangesView:
    """A page of exchanges."""
    return ExchangesView(data=[exchange_view(ports, each) for each in page.records], pagination=pagination(page))


def exchanges_router(ports: Ports) -> Router:
    """POST /exchanges, GET /exchanges, GET /exchanges/{id}, POST /exchanges/{id}/cancel."""

    @post("/")
    async def create(request: ApiRequest) -> Response[bytes]:
        made = await create_exchange(
            ports, request.auth, request.headers.get("idempotency-key"), await body_reader(request, ExchangeOrder)
        )
        return created(new_exchange_view(made.resource), replayed=made.replayed)

    @get("/")
    async def page(request: ApiRequest) -> Response[bytes]:
        number, size = page_of(request.query_params)
        found = await list_exchanges(ports, request.auth, request.query_params.get("status"), number, size)
        return answer(exchanges_view(ports, found))

    @get("/{exchange_id:str}")
    async def one(request: ApiRequest, exchange_id: FromPath[str]) -> Response[bytes]:
        return answer(exchange_view(ports, await get_exchange(ports, request.auth, exchange_id)))

    @post("/{exchange_id:str}/cancel", status_code=200)
    async def cancel(request: ApiRequest, exchange_id: FromPath[str]) -> Response[bytes]:
        return answer(exchange_view(ports, await cancel_exchange(ports, request.auth, exchange_id)))

    return Router("/exchanges", route_handlers=[create, page, one, cancel])


def sandbox_exchanges_router(ports: Ports) -> Router:
    """POST /sandbox/exchanges, POST /sandbox/exchanges/{id}/simulate, for test keys only
    (docs/sandbox.md "The calls")."""

    @post("/")
    async def begin(request: ApiRequest) -> Response[bytes]:
        begun = await begin_simulated(ports, request.auth, await body_reader(request, ExchangeWish))
        return answer(exchange_view(ports, begun), status=201)

    @post("/{exchange_id:str}/simulate", status_code=200)
    async def simulate(request: ApiRequest, exchange_id: FromPath[str]) -> Response[bytes]:
        simulated = await simulate_exchange(
            ports, request.auth, exchange_id, await body_reader(request, ExchangeSimulation)
        )
        return answer(exchange_view(ports, simulated))

    return Router("/sandbox/exchanges", route_handlers=[begin, simulate], guards=[require_test_mode])
