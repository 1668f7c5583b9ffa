"""HTTP API of balance movements, without business rules (docs/settlement.md "Movements")."""

from collections.abc import AsyncIterator, Sequence
from typing import Annotated

import msgspec
from litestar.types import ASGIApp

from ...core.domain import shared_fields as shared
from ...core.domain.accounts.accounts import Caller
from ...core.domain.movements import MOVEMENT_KINDS, Balance, Movement, ObjectType
from ...core.usecases.ledger.conversions import conversions_of
from ...core.usecases.ledger.movements import MovementFilter, all_movements, list_movements
from ...ports.bundle import Ports
from .edge.answers import answer
from .edge.bodies import page_of
from .edge.operation import FORMAT, MADE, PAGES, ApiRequest, Operation, Query
from .records import MovementView, movement_view
from .views import Pagination, csv_answer, pagination, wants_csv


class MovementsView(msgspec.Struct, frozen=True, kw_only=True):
    data: Annotated[list[MovementView], shared.DATA]
    pagination: Annotated[Pagination, shared.PAGINATION]


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
