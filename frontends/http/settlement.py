"""HTTP API of settlements, without business rules (docs/settlement.md "Reconciling")."""

from collections.abc import AsyncIterator, Iterable, Sequence
from decimal import Decimal
from typing import Annotated

import msgspec
from litestar.types import ASGIApp
from msgspec import Meta

from ...core.domain import shared_fields as shared
from ...core.domain.accounts.accounts import Caller
from ...core.domain.settlement.rates import merchant_rate
from ...core.domain.settlement.settlement import Settlement, SettlementItem
from ...core.usecases.common.paging import MomentFilter, Page
from ...core.usecases.settlement.settlement import settle_own
from ...core.usecases.settlement.statements import (
    all_items,
    get_settlement,
    list_items,
    list_settlements,
)
from ...ports.bundle import Ports
from .edge.answers import answer
from .edge.bodies import page_of
from .edge.operation import FORMAT, MADE, PAGES, ApiRequest, Operation, Refusals
from .records import SettlementView, settlement_view
from .views import Pagination, csv_answer, pagination, wants_csv


class ItemView(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a statement."""

    payment_id: Annotated[str, shared.PAYMENT_ID]
    shop_id: Annotated[str, shared.SHOP_ID]
    kind: Annotated[str, Meta(description="`payment`, `refund` or `correction`")]
    amount_rub: Annotated[str, shared.AMOUNT_RUB]
    rate_market: Annotated[str, shared.RATE_MARKET]
    rate_merchant: Annotated[str, Meta(description="RUB per USDT, with all fees and markup")]
    fee_usdt: Annotated[str, Meta(description="Fee of the service")]
    credit_usdt: Annotated[str, Meta(description="Increase of the balance, after the fee")]
    refund_id: Annotated[str | None, Meta(description="Id of the refund, on refunds and corrections")]


class SettlementsView(msgspec.Struct, frozen=True, kw_only=True):
    data: Annotated[list[SettlementView], shared.DATA]
    pagination: Annotated[Pagination, shared.PAGINATION]


class ItemsView(msgspec.Struct, frozen=True, kw_only=True):
    data: Annotated[list[ItemView], shared.DATA]
    pagination: Annotated[Pagination, shared.PAGINATION]


def settlements_view(page: Page[Settlement]) -> SettlementsView:
    """Return a page of statements."""
    return SettlementsView(data=[settlement_view(each) for each in page.records], pagination=pagination(page))


def item_views(settlement: Settlement, items: Iterable[SettlementItem]) -> list[ItemView]:
    """Return the lines. The merchant's rate is calculated once for each markup."""
    rates: dict[str, str] = {}
    market = Decimal(settlement.rate_market)
    views = []
    for item in items:
        if item.markup not in rates:
            rates[item.markup] = format(merchant_rate(market, item.markup), "f")
        views.append(
            ItemView(
                payment_id=item.payment_id,
                shop_id=item.shop_id,
                kind=item.kind.value,
                amount_rub=str(item.amount),
                rate_market=settlement.rate_market,
                rate_merchant=rates[item.markup],
                fee_usdt=str(item.fee),
                credit_usdt=str(item.credit),
                refund_id=item.refund_id,
            )
        )
    return views


def items_view(settlement: Settlement, page: Page[SettlementItem]) -> ItemsView:
    """Return a page of lines."""
    return ItemsView(data=item_views(settlement, page.records), pagination=pagination(page))


async def _rows(
    settlement: Settlement, batches: AsyncIterator[Sequence[SettlementItem]]
) -> AsyncIterator[list[ItemView]]:
    async for batch in batches:
        yield item_views(settlement, batch)


async def page(ports: Ports, caller: Caller, request: ApiRequest[None]) -> ASGIApp:
    return answer(
        settlements_view(await list_settlements(ports, caller, request.asked(MomentFilter), *page_of(request.query)))
    )


async def one(ports: Ports, caller: Caller, request: ApiRequest[None]) -> ASGIApp:
    return answer(settlement_view(await get_settlement(ports, caller, request.id)))


async def items(ports: Ports, caller: Caller, request: ApiRequest[None]) -> ASGIApp:
    query = request.query
    # Page parameters are checked for CSV too, although the file has no pages: an invalid value must not be ignored.
    in_csv, (number, size) = wants_csv(query), page_of(query)
    if in_csv:
        settlement, batches = await all_items(ports, caller, request.id)
        return csv_answer(settlement.id, ItemView, _rows(settlement, batches))
    return answer(items_view(*await list_items(ports, caller, request.id, number, size)))


async def settle(ports: Ports, caller: Caller, _: ApiRequest[None]) -> ASGIApp:
    return answer(settlement_view(await settle_own(ports, caller)))


_NO_SETTLEMENT: Refusals = {404: ("SETTLEMENT_NOT_FOUND",)}

SETTLEMENTS = (
    Operation(
        "list_settlements",
        "get",
        "/api/v1/settlements",
        "Money",
        "List settlements, newest first",
        page,
        answer=SettlementsView,
        query=(*PAGES, *MADE),
    ),
    Operation(
        "get_settlement",
        "get",
        "/api/v1/settlements/{settlement_id}",
        "Money",
        "Get a settlement",
        one,
        answer=SettlementView,
        refusals=_NO_SETTLEMENT,
    ),
    Operation(
        "list_settlement_items",
        "get",
        "/api/v1/settlements/{settlement_id}/items",
        "Money",
        "List the lines of a settlement, which add up to its credit",
        items,
        answer=ItemsView,
        also_as="text/csv",
        query=(*PAGES, FORMAT),
        refusals=_NO_SETTLEMENT,
    ),
    Operation(
        "settle_payments",
        "post",
        "/api/v1/sandbox/settlements",
        "Sandbox",
        "Settle the account's test payments now",
        settle,
        answer=SettlementView,
        refusals={404: ("NOT_FOUND",), 503: ("RATE_UNAVAILABLE",)},
    ),
)
