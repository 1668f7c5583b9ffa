"""HTTP API of turnover, without business rules (docs/settlement.md "Turnover")."""

import msgspec
from litestar.types import ASGIApp

from ...core.domain.accounts.accounts import Caller
from ...core.usecases.payments.turnover import ShopDay, TurnoverReport, shops_turnover
from ...ports.bundle import Ports
from .edge.answers import answer
from .edge.operation import DAY, ApiRequest, Operation, Query


class ShopDayView(msgspec.Struct, frozen=True, kw_only=True):
    """Turnover of one shop on one day."""

    date: str
    shop_id: str
    shop_name: str | None
    payments: int
    amount_rub: str


class TurnoverSumView(msgspec.Struct, frozen=True, kw_only=True):
    payments: int
    amount_rub: str


class TurnoverView(msgspec.Struct, frozen=True, kw_only=True):
    data: list[ShopDayView]
    total: TurnoverSumView


def turnover_view(report: TurnoverReport) -> TurnoverView:
    """Return the turnover report of the API."""
    return TurnoverView(
        data=[_row(row) for row in report.rows],
        total=TurnoverSumView(payments=report.payments, amount_rub=str(report.amount)),
    )


def _row(row: ShopDay) -> ShopDayView:
    return ShopDayView(
        date=row.day,
        shop_id=row.shop_id,
        shop_name=row.shop_name,
        payments=row.payments,
        amount_rub=str(row.amount),
    )


async def turnover(ports: Ports, caller: Caller, request: ApiRequest[None]) -> ASGIApp:
    query = request.query
    return answer(turnover_view(await shops_turnover(ports, caller, query.get("from"), query.get("to"))))


TURNOVER = (
    Operation(
        "get_turnover",
        "get",
        "/api/v1/shops/turnover",
        "Money",
        "Get the turnover of each shop per day (UTC)",
        turnover,
        answer=TurnoverView,
        query=(Query("from", "The first day.", DAY), Query("to", "The last day.", DAY)),
    ),
)
