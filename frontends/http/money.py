"""The balance and the rate (docs/settlement.md "The rate")."""

import msgspec
from litestar import Response, get

from ...core.domain.days import iso
from ...core.domain.settlement.rates import shown
from ...core.usecases.ledger.balance import Balance, read_balance
from ...core.usecases.settlement.rates import MerchantRates, merchant_rates
from ...ports.bundle import Ports
from .door.access import ApiRequest
from .door.answers import answer
from .door.routing import Router

PAIR = "RUB/USDT"
NOTE = "Informational: the credit is computed at full precision with the rate of the settlement."


class BalanceView(msgspec.Struct, frozen=True, kw_only=True):
    """See docs/settlement.md "The balance"."""

    available_usdt: str
    reserved_usdt: str
    pending_rub: str
    total_settled_usdt: str
    total_withdrawn_usdt: str
    updated_at: str


class RateView(msgspec.Struct, frozen=True, kw_only=True):
    """The rates, RUB for 1 USDT, with two decimals (docs/settlement.md "The rate")."""

    pair: str
    rate_market: str
    rate_merchant: str
    updated_at: str
    note: str


def balance_view(balance: Balance) -> BalanceView:
    """The balance object of the interface."""
    return BalanceView(
        available_usdt=str(balance.available),
        reserved_usdt=str(balance.reserved),
        pending_rub=str(balance.pending),
        total_settled_usdt=str(balance.settled),
        total_withdrawn_usdt=str(balance.withdrawn),
        updated_at=iso(balance.at),
    )


def rate_view(rates: MerchantRates) -> RateView:
    """The rate object of the interface."""
    return RateView(
        pair=PAIR,
        rate_market=shown(rates.market),
        rate_merchant=shown(rates.merchant),
        updated_at=iso(rates.updated_at),
        note=NOTE,
    )


def money_router(ports: Ports) -> Router:
    """GET /balance, GET /rates."""

    @get("/balance")
    async def balance(request: ApiRequest) -> Response[bytes]:
        return answer(balance_view(await read_balance(ports, request.auth)))

    @get("/rates")
    async def rates(request: ApiRequest) -> Response[bytes]:
        return answer(rate_view(await merchant_rates(ports, request.auth, request.query_params.get("shop_id"))))

    return Router("/", route_handlers=[balance, rates])
