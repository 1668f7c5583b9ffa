"""Turnover over HTTP. No rule lives here (docs/settlement.md "Turnover")."""

import msgspec
from litestar import Response, get

from ...core.usecases.payments.turnover import ShopDay, TurnoverReport, shops_turnover
from ...ports.bundle import Ports
from .door.access import ApiRequest
from .door.answers import answer
from .door.routing import Router


class ShopDayView(msgspec.Struct, frozen=True, kw_only=True):
    """What one shop took on one day."""

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
    """The report of the interface."""
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


def turnover_router(ports: Ports) -> Router:
    """GET /shops/turnover."""

    @get("/turnover")
    async def turnover(request: ApiRequest) -> Response[bytes]:
        query = request.query_params
        report = await shops_turnover(ports, request.auth, query.get("from"), query.get("to"))
        return answer(turnover_view(report))

    return Router("/shops", route_handlers=[turnover])
