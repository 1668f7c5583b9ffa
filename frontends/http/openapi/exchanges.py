"""The operations about exchanges."""

from ....core.domain.exchanges.orders import ExchangeOrder
from ....core.usecases.sandbox.exchange_orders import ExchangeWish
from ....core.usecases.sandbox.exchanges import ExchangeSimulation
from ..exchanges import ExchangesView, ExchangeView, NewExchangeView
from .model import API, PAGES, Operation, Query, Refusals

_NO_EXCHANGE: Refusals = {404: ("EXCHANGE_NOT_FOUND",)}

EXCHANGES = (
    Operation(
        "post",
        f"{API}/exchanges",
        "Exchanges",
        "Begin an exchange of a client's USDT to RUB",
        body=ExchangeOrder,
        answer=NewExchangeView,
        creates=True,
        refusals={
            400: ("INVALID_AMOUNT", "AMOUNT_TOO_LOW", "AMOUNT_TOO_HIGH", "FEATURE_NOT_ENABLED"),
            403: ("CLIENT_BLOCKED",),
            409: ("IDEMPOTENCY_TERMINAL", "EXCHANGE_IN_PROGRESS"),
            422: ("VALIDATION_ERROR", "CLIENT_NOT_REGISTERED"),
            502: ("RATE_INVALID",),
            503: ("FEATURE_DISABLED", "PROVIDER_UNAVAILABLE", "PROVIDER_NOT_CONFIGURED"),
        },
    ),
    Operation(
        "get",
        f"{API}/exchanges",
        "Exchanges",
        "Exchanges in both directions, the newest first",
        answer=ExchangesView,
        query=(*PAGES, Query("status", "An exchange status, in any case.")),
    ),
    Operation(
        "get",
        f"{API}/exchanges/{{exchange_id}}",
        "Exchanges",
        "An exchange",
        answer=ExchangeView,
        refusals=_NO_EXCHANGE,
    ),
    Operation(
        "post",
        f"{API}/exchanges/{{exchange_id}}/cancel",
        "Exchanges",
        "Call an exchange off before USDT were received",
        answer=ExchangeView,
        refusals={**_NO_EXCHANGE, 409: ("INVALID_STATE",), 503: ("PROVIDER_UNAVAILABLE",)},
    ),
    Operation(
        "post",
        f"{API}/sandbox/exchanges",
        "Sandbox",
        "Begin an exchange of RUB to USDT, as an operator would, or one that stays pending",
        body=ExchangeWish,
        answer=ExchangeView,
        status=201,
        refusals={
            400: ("INVALID_AMOUNT", "AMOUNT_TOO_LOW", "AMOUNT_TOO_HIGH", "FEATURE_NOT_ENABLED"),
            403: ("CLIENT_BLOCKED",),
            409: ("EXCHANGE_IN_PROGRESS",),
            422: ("VALIDATION_ERROR", "CLIENT_NOT_REGISTERED"),
            502: ("RATE_INVALID",),
            503: ("FEATURE_DISABLED", "PROVIDER_UNAVAILABLE", "PROVIDER_NOT_CONFIGURED"),
        },
    ),
    Operation(
        "post",
        f"{API}/sandbox/exchanges/{{exchange_id}}/simulate",
        "Sandbox",
        "Lead an exchange to an outcome, as its client, the chain and the bank would",
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
