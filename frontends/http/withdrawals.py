"""HTTP API of payouts and the discontinued manual withdrawal, without business rules (docs/settlement.md "Payouts")."""

from collections.abc import AsyncIterator, Sequence
from typing import Annotated

import msgspec
from litestar.types import ASGIApp
from msgspec import UNSET, Meta, UnsetType

from ...core.domain import shared_fields as shared
from ...core.domain.accounts.accounts import Caller, Mode
from ...core.domain.accounts.key_terms import Right
from ...core.domain.days import iso, iso_or_none
from ...core.domain.errors import Refusal
from ...core.domain.movements import MOVEMENT_KINDS, ObjectType
from ...core.domain.settlement.withdrawals import Withdrawal, shown_hash
from ...core.usecases.common.paging import MomentFilter, Page
from ...core.usecases.ledger.conversions import Conversion, conversions_of
from ...core.usecases.sandbox.withdrawals import WithdrawalSimulation, simulate_withdrawal
from ...core.usecases.settlement.payout_items import CarryKind, PayoutItem, all_payout_items, list_payout_items
from ...core.usecases.settlement.withdrawals import get_withdrawal, list_withdrawals
from ...ports.bundle import Ports
from .edge.answers import answer
from .edge.bodies import page_of
from .edge.operation import FORMAT, MADE, PAGES, ApiRequest, Operation, Refusals
from .views import Pagination, csv_answer, pagination, wants_csv


class WithdrawalView(msgspec.Struct, frozen=True, kw_only=True):
    """A payout: the fields of its event (docs/payloads.md "Payout") and a few more."""

    id: Annotated[str, shared.ID]
    withdrawal_id: Annotated[str, shared.WITHDRAWAL_ID]
    status: Annotated[str, shared.STATUS]
    amount_usdt: Annotated[str, shared.AMOUNT_USDT]
    wallet_address: Annotated[str, Meta(description="Address of your wallet")]
    tx_hash: Annotated[str | None, shared.TX_HASH]
    """Null until the payout is sent."""
    network: Annotated[str, shared.NETWORK]
    settlement_id: Annotated[str | None, Meta(description="Id of the settlement")]
    created_at: Annotated[str, shared.CREATED_AT]
    sent_at: Annotated[str | None, shared.SENT_AT]
    completed_at: Annotated[str | None, shared.COMPLETED_AT]
    """Time of the final status, successful or not."""
    sandbox: Annotated[bool | UnsetType, shared.SANDBOX] = UNSET


class WithdrawalItemView(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a payout (docs/settlement.md "What a payout is made of")."""

    kind: Annotated[
        str,
        Meta(description="Kind of the movement, or `carried_in`, `carried_out`, `corrected`"),
        shared.among((*MOVEMENT_KINDS, *CarryKind)),
    ]
    amount_usdt: Annotated[str, Meta(description="Amount of the line; all lines add up to the payout's `amount_usdt`")]
    object_type: Annotated[
        str | None,
        Meta(description="`payment`, `refund`, `withdrawal` or `exchange`"),
        shared.among((*ObjectType, None)),
    ]
    object_id: Annotated[str | None, Meta(description="Id of the object that caused the movement")]
    converted_rub: Annotated[str | None, Meta(description="`converted_rub` of the movement")]
    rate: Annotated[str | None, Meta(description="`rate` of the movement")]
    settlement_id: Annotated[str | None, Meta(description="Id of the settlement whose statement has this line")]
    number: Annotated[
        int | None, Meta(description="Number of the movement; null for `carried_in`, `carried_out` and `corrected`")
    ]
    created_at: Annotated[str, Meta(description="Time of booking")]


class WithdrawalItemsView(msgspec.Struct, frozen=True, kw_only=True):
    data: Annotated[list[WithdrawalItemView], shared.DATA]
    pagination: Annotated[Pagination, shared.PAGINATION]


class WithdrawalsView(msgspec.Struct, frozen=True, kw_only=True):
    data: Annotated[list[WithdrawalView], shared.DATA]
    pagination: Annotated[Pagination, shared.PAGINATION]


def withdrawal_view(withdrawal: Withdrawal) -> WithdrawalView:
    """Return the withdrawal object of the API."""
    return WithdrawalView(
        id=withdrawal.id,
        withdrawal_id=withdrawal.id,
        status=withdrawal.status.value,
        amount_usdt=str(withdrawal.amount),
        wallet_address=withdrawal.wallet,
        tx_hash=shown_hash(withdrawal),
        network=withdrawal.network,
        settlement_id=withdrawal.settlement_id,
        created_at=iso(withdrawal.created_at),
        sent_at=iso_or_none(withdrawal.sent_at),
        completed_at=iso_or_none(withdrawal.completed_at),
        sandbox=True if withdrawal.mode is Mode.TEST else UNSET,
    )


def withdrawals_view(page: Page[Withdrawal]) -> WithdrawalsView:
    """Return a page of payouts."""
    return WithdrawalsView(data=[withdrawal_view(each) for each in page.records], pagination=pagination(page))


def _item_view(item: PayoutItem, conversion: Conversion | None) -> WithdrawalItemView:
    movement = item.movement
    return WithdrawalItemView(
        kind=item.kind.value,
        amount_usdt=str(item.amount),
        object_type=None if movement is None else movement.object_type.value,
        object_id=None if movement is None else movement.object_id,
        converted_rub=None if conversion is None else str(conversion.amount),
        rate=None if conversion is None else conversion.rate,
        settlement_id=None if conversion is None else conversion.settlement_id,
        number=None if movement is None else movement.number,
        created_at=iso(item.at),
    )


async def _item_views(ports: Ports, items: Sequence[PayoutItem]) -> list[WithdrawalItemView]:
    movements = [item.movement for item in items if item.movement is not None]
    found = await conversions_of(ports, movements)
    return [_item_view(item, None if item.movement is None else found.get(item.movement.number)) for item in items]


async def _rows(ports: Ports, batches: AsyncIterator[Sequence[PayoutItem]]) -> AsyncIterator[list[WithdrawalItemView]]:
    async for batch in batches:
        yield await _item_views(ports, batch)


async def page(ports: Ports, caller: Caller, request: ApiRequest[None]) -> ASGIApp:
    return answer(
        withdrawals_view(await list_withdrawals(ports, caller, request.asked(MomentFilter), *page_of(request.query)))
    )


async def one(ports: Ports, caller: Caller, request: ApiRequest[None]) -> ASGIApp:
    return answer(withdrawal_view(await get_withdrawal(ports, caller, request.id)))


async def items(ports: Ports, caller: Caller, request: ApiRequest[None]) -> ASGIApp:
    in_csv, (number, size) = wants_csv(request.query), page_of(request.query)
    if in_csv:
        withdrawal, batches = await all_payout_items(ports, caller, request.id)
        return csv_answer(withdrawal.id, WithdrawalItemView, _rows(ports, batches))
    found = await list_payout_items(ports, caller, request.id, number, size)
    return answer(WithdrawalItemsView(data=await _item_views(ports, found.records), pagination=pagination(found)))


async def withdraw(_: Ports, __: Caller, ___: ApiRequest[None]) -> ASGIApp:
    raise Refusal("WITHDRAWAL_DISCONTINUED", "Payouts are automatic after the daily settlement")


async def simulate(ports: Ports, caller: Caller, request: ApiRequest[WithdrawalSimulation]) -> ASGIApp:
    return answer(withdrawal_view(await simulate_withdrawal(ports, caller, request.id, request.read)))


_NO_WITHDRAWAL: Refusals = {404: ("WITHDRAWAL_NOT_FOUND",)}

WITHDRAWALS = (
    Operation(
        "list_withdrawals",
        "get",
        "/api/v1/withdrawals",
        "Money",
        "List payouts, newest first",
        page,
        answer=WithdrawalsView,
        query=(*PAGES, *MADE),
    ),
    Operation(
        "get_withdrawal",
        "get",
        "/api/v1/withdrawals/{withdrawal_id}",
        "Money",
        "Get a payout",
        one,
        answer=WithdrawalView,
        refusals=_NO_WITHDRAWAL,
    ),
    Operation(
        "list_withdrawal_items",
        "get",
        "/api/v1/withdrawals/{withdrawal_id}/items",
        "Money",
        "List the lines of a payout, which add up to its amount",
        items,
        answer=WithdrawalItemsView,
        also_as="text/csv",
        query=(*PAGES, FORMAT),
        refusals={**_NO_WITHDRAWAL, 503: ("PROVIDER_UNAVAILABLE",)},
    ),
    Operation(
        "create_withdrawal",
        "post",
        "/api/v1/withdrawals",
        "Money",
        "Discontinued: payouts are automatic",
        withdraw,
        refusals={410: ("WITHDRAWAL_DISCONTINUED",)},
        right=Right.READ,
    ),
    Operation(
        "simulate_withdrawal",
        "post",
        "/api/v1/sandbox/withdrawals/{withdrawal_id}/simulate",
        "Sandbox",
        "Simulate the outcome of a payout, in place of the network",
        simulate,
        body=WithdrawalSimulation,
        answer=WithdrawalView,
        refusals={**_NO_WITHDRAWAL, 409: ("INVALID_STATE",), 503: ("PROVIDER_UNAVAILABLE",)},
    ),
)
