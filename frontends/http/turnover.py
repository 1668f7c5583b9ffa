"""HTTP API of turnover, without business rules (docs/settlement.md "Turnover")."""

from typing import Annotated

import msgspec
from litestar.types import ASGIApp
from msgspec import Meta

from ...core.domain import shared_fields as shared
from ...core.domain.accounts.accounts import Caller
from ...core.usecases.payments.turnover import ShopDay, TurnoverReport, shops_turnover
from ...ports.bundle import Ports
from .edge.answers import answer
from .edge.operation import DAY, ApiRequest, Operation, Query


class ShopDayView(msgspec.Struct, frozen=True, kw_only=True):
    """Turnover of one shop on one day."""

    date: Annotated[str, Meta(description="Day in UTC")]
    shop_id: Annotated[str, shared.SHOP_ID]
    shop_name: Annotated[str | None, shared.SHOP_NAME]
    payments: Annotated[int, shared.PAYMENTS]
    amount_rub: Annotated[str, shared.AMOUNT_RUB]


class TurnoverSumView(msgspec.Struct, frozen=True, kw_only=True):
    payments: Annotated[int, shared.PAYMENTS]
    amount_rub: Annotated[str, shared.AMOUNT_RUB]


class TurnoverView(msgspec.Struct, frozen=True, kw_only=True):
    data: Annotated[list[ShopDayView], shared.DATA]
    total: Annotated[TurnoverSumView, Meta(description="Total over all pages")]


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
