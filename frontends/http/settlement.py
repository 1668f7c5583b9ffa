"""Settlements over HTTP. No rule lives here (docs/settlement.md "Reconciling")."""

import csv
import io
from collections.abc import AsyncIterator, Iterable, Sequence
from decimal import Decimal

import msgspec
from litestar import Response, get, post
from litestar.params import FromPath
from litestar.response import Stream
from msgspec import UNSET, UnsetType

from ...core.domain.accounts.accounts import Mode
from ...core.domain.days import iso, iso_or_none
from ...core.domain.errors import shape_error
from ...core.domain.settlement.rates import merchant_rate
from ...core.domain.settlement.settlement import Settlement, SettlementItem
from ...core.usecases.paging import Page
from ...core.usecases.settlement.settlement import settle_own
from ...core.usecases.settlement.statements import (
    all_items,
    get_settlement,
    list_items,
    list_settlements,
)
from ...ports.bundle import Ports
from .door.access import ApiRequest, require_test_mode
from .door.answers import answer
from .door.bodies import page_of
from .door.routing import Router
from .views import Pagination, pagination

_FORMATS = ("json", "csv")


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


class SettlementsView(msgspec.Struct, frozen=True, kw_only=True):
    data: list[SettlementView]
    pagination: Pagination


class ItemsView(msgspec.Struct, frozen=True, kw_only=True):
    data: list[ItemView]
    pagination: Pagination


def settlement_view(settlement: Settlement) -> SettlementView:
    """The settlement object of the interface."""
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
    """A page of statements."""
    return SettlementsView(data=[settlement_view(each) for each in page.records], pagination=pagination(page))


def item_views(settlement: Settlement, items: Iterable[SettlementItem]) -> list[ItemView]:
    """The lines; a merchant's rate is worked out once for each markup."""
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
            )
        )
    return views


def items_view(settlement: Settlement, page: Page[SettlementItem]) -> ItemsView:
    """A page of lines."""
    return ItemsView(data=item_views(settlement, page.records), pagination=pagination(page))


async def _csv(settlement: Settlement, batches: AsyncIterator[Sequence[SettlementItem]]) -> AsyncIterator[str]:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(ItemView.__struct_fields__)
    async for batch in batches:
        writer.writerows(msgspec.structs.astuple(view) for view in item_views(settlement, batch))
        yield text.getvalue()
        text.seek(0)
        text.truncate()
    if rest := text.getvalue():
        yield rest


def settlements_router(ports: Ports) -> Router:
    """GET /settlements, GET /settlements/{id}, GET /settlements/{id}/items."""

    @get("/")
    async def page(request: ApiRequest) -> Response[bytes]:
        number, size = page_of(request.query_params)
        return answer(settlements_view(await list_settlements(ports, request.auth, number, size)))

    @get("/{settlement_id:str}")
    async def one(request: ApiRequest, settlement_id: FromPath[str]) -> Response[bytes]:
        return answer(settlement_view(await get_settlement(ports, request.auth, settlement_id)))

    @get("/{settlement_id:str}/items")
    async def items(request: ApiRequest, settlement_id: FromPath[str]) -> Response[bytes] | Stream:
        wanted = request.query_params.get("format", "json")
        if wanted not in _FORMATS:
            raise shape_error("format", f"must be one of: {', '.join(_FORMATS)}")
        # Of the file, which has no pages, too: what cannot be meant is not passed over in silence.
        number, size = page_of(request.query_params)
        if wanted == "csv":
            settlement, batches = await all_items(ports, request.auth, settlement_id)
            name = f'attachment; filename="{settlement.id}.csv"'
            return Stream(
                _csv(settlement, batches),
                media_type="text/csv",
                headers={"Content-Disposition": name},
            )
        return answer(items_view(*await list_items(ports, request.auth, settlement_id, number, size)))

    return Router("/settlements", route_handlers=[page, one, items])


def sandbox_settlements_router(ports: Ports) -> Router:
    """POST /sandbox/settlements, for test keys only (docs/sandbox.md "The calls")."""

    @post("/", status_code=200)
    async def settle(request: ApiRequest) -> Response[bytes]:
        return answer(settlement_view(await settle_own(ports, request.auth)))

    return Router("/sandbox/settlements", route_handlers=[settle], guards=[require_test_mode])
