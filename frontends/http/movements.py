"""HTTP API of balance movements, without business rules (docs/settlement.md "Movements")."""

from collections.abc import AsyncIterator, Sequence
from typing import Annotated

import msgspec
from litestar.types import ASGIApp
from msgspec import Meta

from ...core.domain import shared_fields as shared
from ...core.domain.accounts.accounts import Caller
from ...core.domain.days import iso
from ...core.domain.movements import MOVEMENT_KINDS, Balance, Movement, ObjectType
from ...core.usecases.ledger.conversions import Conversion, conversions_of
from ...core.usecases.ledger.movements import MovementFilter, all_movements, list_movements
from ...ports.bundle import Ports
from .edge.answers import answer
from .edge.bodies import page_of
from .edge.operation import FORMAT, MADE, PAGES, ApiRequest, Operation, Query
from .views import Pagination, csv_answer, pagination, wants_csv


class MovementView(msgspec.Struct, frozen=True, kw_only=True):
    """A movement (docs/settlement.md "Movements")."""

    id: Annotated[str, Meta(description="Unique id that never changes")]
    number: Annotated[int, Meta(description="Position in the list of all movements, from 1")]
    kind: Annotated[str, Meta(description="Kind of movement"), shared.among(MOVEMENT_KINDS)]
    object_type: Annotated[
        str, Meta(description="`payment`, `refund`, `withdrawal` or `exchange`"), shared.among(ObjectType)
    ]
    object_id: Annotated[str, Meta(description="Id of the object that caused the movement")]
    available_usdt: Annotated[str, Meta(description="Change of `available_usdt`")]
    reserved_usdt: Annotated[str, Meta(description="Change of `reserved_usdt`")]
    pending_rub: Annotated[str, Meta(description="Change of `pending_rub`")]
    converted_rub: Annotated[
        str | None, Meta(description="RUB converted to USDT, or RUB for which USDT were taken; null without conversion")
    ]
    rate: Annotated[str | None, Meta(description="RUB per USDT used for `converted_rub`; else null")]
    settlement_id: Annotated[str | None, Meta(description="Id of the settlement whose statement has this line")]
    balance_available_usdt: Annotated[str, Meta(description="`available_usdt` after the movement")]
    balance_reserved_usdt: Annotated[str, Meta(description="`reserved_usdt` after the movement")]
    balance_pending_rub: Annotated[str, Meta(description="`pending_rub` after the movement")]
    created_at: Annotated[str, Meta(description="Time of booking; never before that of the previous movement")]


class MovementsView(msgspec.Struct, frozen=True, kw_only=True):
    data: Annotated[list[MovementView], shared.DATA]
    pagination: Annotated[Pagination, shared.PAGINATION]


def movement_view(movement: Movement, conversion: Conversion | None) -> MovementView:
    """Return the movement object of the API."""
    return MovementView(
        id=movement.entry_id,
        number=movement.number,
        kind=movement.kind.value,
        object_type=movement.object_type.value,
        object_id=movement.object_id,
        available_usdt=str(movement.available),
        reserved_usdt=str(movement.reserved),
        pending_rub=str(movement.pending),
        converted_rub=None if conversion is None else str(conversion.amount),
        rate=None if conversion is None else conversion.rate,
        settlement_id=None if conversion is None else conversion.settlement_id,
        balance_available_usdt=str(movement.available_after),
        balance_reserved_usdt=str(movement.reserved_after),
        balance_pending_rub=str(movement.pending_after),
        created_at=iso(movement.at),
    )


async def _views(ports: Ports, movements: Sequence[Movement]) -> list[MovementView]:
    found = await conversions_of(ports, movements)
    return [movement_view(each, found.get(each.number)) for each in movements]


async def _rows(ports: Ports, batches: AsyncIterator[Sequence[Movement]]) -> AsyncIterator[list[MovementView]]:
    async for batch in batches:
        yield await _views(ports, batch)


async def page(ports: Ports, caller: Caller, request: ApiRequest[None]) -> ASGIApp:
    query = request.query
    in_csv, (number, size) = wants_csv(query), page_of(query)
    asked = request.asked(MovementFilter)
    if in_csv:
        return csv_answer("movements", MovementView, _rows(ports, await all_movements(ports, caller, asked)))
    found = await list_movements(ports, caller, asked, number, size)
    return answer(MovementsView(data=await _views(ports, found.records), pagination=pagination(found)))


MOVEMENTS = (
    Operation(
        "list_movements",
        "get",
        "/api/v1/balance/movements",
        "Money",
        "List every change of the balance and its cause, newest first",
        page,
        answer=MovementsView,
        also_as="text/csv",
        query=(
            *PAGES,
            Query("kind", "Exact match.", {"enum": [*MOVEMENT_KINDS]}),
            Query("object_type", "Only movements caused by objects of this type.", {"enum": [*ObjectType]}),
            Query("object_id", "Only movements caused by this object."),
            Query("balance", "Only movements that changed this part of the balance.", {"enum": [*Balance]}),
            *MADE,
            FORMAT,
        ),
        refusals={503: ("PROVIDER_UNAVAILABLE",)},
    ),
)
