"""HTTP API of the balance and the rate (docs/settlement.md "The rate")."""

from typing import Annotated

import msgspec
from litestar.types import ASGIApp
from msgspec import Meta

from ...core.domain import shared_fields as shared
from ...core.domain.accounts.accounts import Caller
from ...core.domain.days import iso
from ...core.domain.settlement.rates import shown
from ...core.usecases.ledger.balance import read_balance
from ...core.usecases.settlement.rates import MerchantRates, merchant_rates
from ...ports.bundle import Ports
from .edge.answers import answer
from .edge.operation import UUID, ApiRequest, Operation, Query
from .records import BalanceView, balance_view

PAIR = "RUB/USDT"
NOTE = "Informational: the credit is computed at full precision with the rate of the settlement."


class RateView(msgspec.Struct, frozen=True, kw_only=True):
    """The rates, RUB for 1 USDT, with two decimals (docs/settlement.md "The rate")."""

    pair: Annotated[str, Meta(description="`RUB/USDT`")]
    rate_market: Annotated[str, shared.RATE_MARKET]
    rate_merchant: Annotated[str, Meta(description="RUB per USDT, with all fees and markup")]
    updated_at: Annotated[str, Meta(description="Time of the last change")]
    note: Annotated[str, shared.NOTE]


def rate_view(rates: MerchantRates) -> RateView:
    """Return the rate object of the API."""
    return RateView(
        pair=PAIR,
        rate_market=shown(rates.market),
        rate_merchant=shown(rates.merchant),
        updated_at=iso(rates.updated_at),
        note=NOTE,
    )


async def balance(ports: Ports, caller: Caller, _: ApiRequest[None]) -> ASGIApp:
    return answer(balance_view(await read_balance(ports, caller)))


async def rates(ports: Ports, caller: Caller, request: ApiRequest[None]) -> ASGIApp:
    return answer(rate_view(await merchant_rates(ports, caller, request.query.get("shop_id"))))


MONEY = (
    Operation("get_balance", "get", "/api/v1/balance", "Money", "Get the balance", balance, answer=BalanceView),
    Operation(
        "get_rates",
        "get",
        "/api/v1/rates",
        "Money",
        "Get the RUB/USDT rate, for calculators",
        rates,
        answer=RateView,
        query=(Query("shop_id", "Use the markup of this shop; of the default shop where absent.", UUID),),
        refusals={400: ("SHOP_NOT_FOUND",), 422: ("SHOP_MARKUP_NOT_SET",), 503: ("RATE_UNAVAILABLE",)},
    ),
)
