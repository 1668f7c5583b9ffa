"""HTTP API of exchanges, without business rules (docs/exchanges.md "Exchanges"; docs/sandbox.md "The calls")."""

from typing import Annotated

import msgspec
from litestar.types import ASGIApp
from msgspec import Meta

from ...core.domain import shared_fields as shared
from ...core.domain.accounts.accounts import Caller
from ...core.domain.accounts.key_terms import Right
from ...core.domain.days import iso, iso_or_none
from ...core.domain.exchanges.exchanges import Exchange, ExchangeStatus, shown_received
from ...core.domain.exchanges.orders import ExchangeOrder
from ...core.domain.masked import Masked
from ...core.usecases.common.encrypted import deposit_address, open_exchange_phone
from ...core.usecases.common.paging import Page
from ...core.usecases.exchanges.creation import create_exchange
from ...core.usecases.exchanges.exchanges import ExchangeFilter, cancel_exchange, get_exchange, list_exchanges
from ...core.usecases.sandbox.exchange_orders import ExchangeWish, begin_simulated
from ...core.usecases.sandbox.exchanges import ExchangeSimulation, simulate_exchange
from ...ports.bundle import Ports
from .edge.answers import answer, made
from .edge.bodies import page_of
from .edge.operation import FOUND_BY, PAGES, ApiRequest, Operation, Query, Refusals
from .views import Pagination, pagination


class NewExchangeView(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of POST /exchanges."""

    id: Annotated[str, shared.ID]
    status: Annotated[str, shared.STATUS]
    crypto_deposit_address: Annotated[str | None, shared.CRYPTO_DEPOSIT_ADDRESS]
    network: Annotated[str | None, shared.NETWORK]
    amount_usdt: Annotated[str, shared.AMOUNT_USDT]
    amount_rub: Annotated[str, shared.AMOUNT_RUB]
    rate: Annotated[str, shared.RATE]
    expires_at: Annotated[str, shared.EXPIRES_AT]
    external_id: Annotated[str | None, shared.EXTERNAL_ID]


class ExchangeView(Masked, frozen=True, kw_only=True):
    """The exchange object (docs/exchanges.md "Making one")."""

    _shown = ("id",)

    id: Annotated[str, shared.ID]
    status: Annotated[str, Meta(description="Status; `completed`, `failed`, `expired` and `cancelled` are final")]
    direction: Annotated[str, Meta(description="`usdt_to_rub` or `rub_to_usdt`")]
    amount_usdt: Annotated[str, shared.AMOUNT_USDT]
    amount_usdt_received: Annotated[
        str | None, Meta(description="The amount that the client sent; null until a final status")
    ]
    amount_rub: Annotated[str, shared.AMOUNT_RUB]
    rate: Annotated[str, shared.RATE]
    crypto_deposit_address: Annotated[str | None, shared.CRYPTO_DEPOSIT_ADDRESS]
    network: Annotated[str | None, shared.NETWORK]
    client_phone: Annotated[str, shared.CLIENT_PHONE]
    expires_at: Annotated[str, shared.EXPIRES_AT]
    completed_at: Annotated[str | None, shared.COMPLETED_AT]
    external_id: Annotated[str | None, shared.EXTERNAL_ID]
    created_at: Annotated[str, shared.CREATED_AT]


class ExchangesView(msgspec.Struct, frozen=True, kw_only=True):
    data: Annotated[list[ExchangeView], shared.DATA]
    pagination: Annotated[Pagination, shared.PAGINATION]


def new_exchange_view(ports: Ports, exchange: Exchange) -> NewExchangeView:
    """Return the answer to a new exchange."""
    return NewExchangeView(
        id=exchange.id,
        status=exchange.status.value,
        crypto_deposit_address=deposit_address(ports.vault, exchange),
        network=exchange.network,
        amount_usdt=str(exchange.amount_usdt),
        amount_rub=str(exchange.amount_rub),
        rate=exchange.rate,
        expires_at=iso(exchange.expires_at),
        external_id=exchange.external_id,
    )


def exchange_view(ports: Ports, exchange: Exchange) -> ExchangeView:
    """Return the exchange object of the API, with the phone decrypted."""
    received = shown_received(exchange)
    return ExchangeView(
        id=exchange.id,
        status=exchange.status.value,
        direction=exchange.direction.value,
        amount_usdt=str(exchange.amount_usdt),
        amount_usdt_received=None if received is None else str(received),
        amount_rub=str(exchange.amount_rub),
        rate=exchange.rate,
        crypto_deposit_address=deposit_address(ports.vault, exchange),
        network=exchange.network,
        client_phone=open_exchange_phone(ports.vault, exchange),
        expires_at=iso(exchange.expires_at),
        completed_at=iso_or_none(exchange.completed_at),
        external_id=exchange.external_id,
        created_at=iso(exchange.created_at),
    )


def exchanges_view(ports: Ports, page: Page[Exchange]) -> ExchangesView:
    """Return a page of exchanges."""
    return ExchangesView(data=[exchange_view(ports, each) for each in page.records], pagination=pagination(page))


async def create(ports: Ports, caller: Caller, request: ApiRequest[ExchangeOrder]) -> ASGIApp:
    exchange = await create_exchange(ports, caller, request.key, request.read)
    return made(new_exchange_view(ports, exchange.resource), replayed=exchange.replayed)


async def page(ports: Ports, caller: Caller, request: ApiRequest[None]) -> ASGIApp:
    number, size = page_of(request.query)
    asked = request.asked(ExchangeFilter)
    return answer(exchanges_view(ports, await list_exchanges(ports, caller, asked, number, size)))


async def one(ports: Ports, caller: Caller, request: ApiRequest[None]) -> ASGIApp:
    return answer(exchange_view(ports, await get_exchange(ports, caller, request.id)))


async def cancel(ports: Ports, caller: Caller, request: ApiRequest[None]) -> ASGIApp:
    return answer(exchange_view(ports, await cancel_exchange(ports, caller, request.id)))


async def begin(ports: Ports, caller: Caller, request: ApiRequest[ExchangeWish]) -> ASGIApp:
    return answer(exchange_view(ports, await begin_simulated(ports, caller, request.read)), status=201)


async def simulate(ports: Ports, caller: Caller, request: ApiRequest[ExchangeSimulation]) -> ASGIApp:
    return answer(exchange_view(ports, await simulate_exchange(ports, caller, request.id, request.read)))


_NO_EXCHANGE: Refusals = {404: ("EXCHANGE_NOT_FOUND",)}
_BEGINNING: Refusals = {
    400: ("INVALID_AMOUNT", "AMOUNT_TOO_LOW", "AMOUNT_TOO_HIGH", "FEATURE_NOT_ENABLED"),
    403: ("CLIENT_BLOCKED",),
    409: ("EXCHANGE_IN_PROGRESS",),
    422: ("VALIDATION_ERROR", "CLIENT_NOT_REGISTERED"),
    502: ("RATE_INVALID",),
    503: ("FEATURE_DISABLED", "PROVIDER_UNAVAILABLE", "PROVIDER_NOT_CONFIGURED"),
}

EXCHANGES = (
    Operation(
        "create_exchange",
        "post",
        "/api/v1/exchanges",
        "Exchanges",
        "Create an exchange of a client's USDT to RUB",
        create,
        body=ExchangeOrder,
        answer=NewExchangeView,
        creates=True,
        refusals={**_BEGINNING, 409: ("IDEMPOTENCY_TERMINAL", "EXCHANGE_IN_PROGRESS")},
        right=Right.EXCHANGES,
    ),
    Operation(
        "list_exchanges",
        "get",
        "/api/v1/exchanges",
        "Exchanges",
        "List exchanges in both directions, newest first",
        page,
        answer=ExchangesView,
        query=(
            *PAGES,
            Query("status", "Only in this status; upper or lower case.", {"enum": [*ExchangeStatus]}),
            *FOUND_BY,
        ),
    ),
    Operation(
        "get_exchange",
        "get",
        "/api/v1/exchanges/{exchange_id}",
        "Exchanges",
        "Get an exchange",
        one,
        answer=ExchangeView,
        refusals=_NO_EXCHANGE,
    ),
    Operation(
        "cancel_exchange",
        "post",
        "/api/v1/exchanges/{exchange_id}/cancel",
        "Exchanges",
        "Cancel an exchange before USDT are received",
        cancel,
        answer=ExchangeView,
        refusals={**_NO_EXCHANGE, 409: ("INVALID_STATE",), 503: ("PROVIDER_UNAVAILABLE",)},
        right=Right.EXCHANGES,
    ),
    Operation(
        "begin_exchange",
        "post",
        "/api/v1/sandbox/exchanges",
        "Sandbox",
        "Create an exchange of RUB to USDT, as an operator does, or an exchange that stays pending",
        begin,
        body=ExchangeWish,
        answer=ExchangeView,
        status=201,
        refusals=_BEGINNING,
    ),
    Operation(
        "simulate_exchange",
        "post",
        "/api/v1/sandbox/exchanges/{exchange_id}/simulate",
        "Sandbox",
        "Simulate the outcome of an exchange, in place of its client, the chain and the bank",
        simulate,
        body=ExchangeSimulation,
        answer=ExchangeView,
        refusals={
            **_NO_EXCHANGE,
            400: ("INVALID_AMOUNT",),
            409: ("INVALID_STATE",),
            503: ("PROVIDER_UNAVAILABLE",),
        },
    ),
)
