"""The operations about money: balance, rates, settlements, turnover, gateways."""

from ....core.usecases.sandbox.withdrawals import WithdrawalSimulation
from ..gateways import GatewayView
from ..money import BalanceView, RateView
from ..settlement import ItemsView, SettlementsView, SettlementView
from ..turnover import TurnoverView
from ..withdrawals import WithdrawalsView, WithdrawalView
from .model import API, DAY, PAGES, UUID, Operation, Query, Refusals

_NO_SETTLEMENT: Refusals = {404: ("SETTLEMENT_NOT_FOUND",)}

MONEY = (
    Operation("get", f"{API}/balance", "Money", "The balance", answer=BalanceView),
    Operation(
        "get",
        f"{API}/rates",
        "Money",
        "The rate of RUB/USDT, for calculators",
        answer=RateView,
        query=(Query("shop_id", "With the markup of this shop; without: of the default one.", UUID),),
        refusals={400: ("SHOP_NOT_FOUND",), 422: ("SHOP_MARKUP_NOT_SET",), 503: ("RATE_UNAVAILABLE",)},
    ),
    Operation(
        "get",
        f"{API}/shops/turnover",
        "Money",
        "What shops took per day (UTC)",
        answer=TurnoverView,
        query=(Query("from", "The first day.", DAY), Query("to", "The last day.", DAY)),
    ),
    Operation("get", f"{API}/withdrawals", "Money", "Payouts, the newest first", answer=WithdrawalsView, query=PAGES),
    Operation(
        "get",
        f"{API}/withdrawals/{{withdrawal_id}}",
        "Money",
        "A payout",
        answer=WithdrawalView,
        refusals={404: ("WITHDRAWAL_NOT_FOUND",)},
    ),
    Operation(
        "post",
        f"{API}/withdrawals",
        "Money",
        "Discontinued: payouts are automatic",
        refusals={410: ("WITHDRAWAL_DISCONTINUED",)},
    ),
    Operation(
        "get",
        f"{API}/settlements",
        "Money",
        "Settlements, the newest first",
        answer=SettlementsView,
        query=PAGES,
    ),
    Operation(
        "get",
        f"{API}/settlements/{{settlement_id}}",
        "Money",
        "A settlement",
        answer=SettlementView,
        refusals=_NO_SETTLEMENT,
    ),
    Operation(
        "get",
        f"{API}/settlements/{{settlement_id}}/items",
        "Money",
        "The lines of a settlement, which sum to its credit",
        answer=ItemsView,
        also_as="text/csv",
        query=(
            *PAGES,
            Query(
                "format", "`csv`: all lines in one file, without pages.", {"enum": ["json", "csv"], "default": "json"}
            ),
        ),
        refusals=_NO_SETTLEMENT,
    ),
    Operation(
        "post",
        f"{API}/sandbox/settlements",
        "Sandbox",
        "Settle the account's test payments now",
        answer=SettlementView,
        refusals={404: ("NOT_FOUND",), 503: ("RATE_UNAVAILABLE",)},
    ),
    Operation(
        "post",
        f"{API}/sandbox/withdrawals/{{withdrawal_id}}/simulate",
        "Sandbox",
        "Lead a payout to an outcome, as the network would",
        body=WithdrawalSimulation,
        answer=WithdrawalView,
        refusals={404: ("WITHDRAWAL_NOT_FOUND",), 409: ("INVALID_STATE",), 503: ("PROVIDER_UNAVAILABLE",)},
    ),
    Operation("get", f"{API}/gateways", "Gateways", "The payment gateways and how each is", answer=list[GatewayView]),
)
