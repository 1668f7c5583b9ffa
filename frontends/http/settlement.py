"""HTTP API of settlements, without business rules (docs/settlement.md "Reconciling")."""

from collections.abc import AsyncIterator, Iterable, Sequence
from decimal import Decimal

import msgspec
from litestar.types import ASGIApp
from msgspec import UNSET, UnsetType

from ...core.domain.accounts.accounts import Caller, Mode
from ...core.domain.days import iso, iso_or_none
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
from .views import Pagination, csv_answer, pagination, wants_csv


class SettlementView(msgspec.Struct, frozen=True, kw_only=True):
    """A statement (docs/settlement.md "Reconciling")."""

    id: str
    cutoff: str
    started_at: str
    completed_at: str | None
    rate_market: str
    payments: int
    amount_rub: str
    fee_usdt: str
    credit_usdt: str
    withdrawal_id: str | None
    sandbox: bool | UnsetType = UNSET


class ItemView(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a statement."""

    payment_id: str
    shop_id: str
    kind: str
    amount_rub: str
    rate_market: str
    rate_merchant: str
    fee_usdt: str
    credit_usdt: str
    refund_id: str | None


class SettlementsView(msgspec.Struct, frozen=True, kw_only=True):
    data: list[SettlementView]
    pagination: Pagination


class ItemsView(msgspec.Struct, frozen=True, kw_only=True):
    data: list[ItemView]
    pagination: Pagination


def settlement_view(settlement: Settlement) -> SettlementView:
    """Return the settlement object of the API."""
    return SettlementView(
        id=settlement.id,
        cutoff=iso(settlement.cutoff),
        started_at=iso(settlement.started_at),
        completed_at=iso_or_none(settlement.completed_at),
        rate_market=settlement.rate_market,
        payments=settlement.payments,
        amount_rub=str(settlement.amount),
        fee_usdt=str(settlement.fee),
        credit_usdt=str(settlement.credit),
        withdrawal_id=settlement.withdrawal_id,
        sandbox=True if settlement.mode is Mode.TEST else UNSET,
    )


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
