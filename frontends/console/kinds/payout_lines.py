"""Lines of a payout (docs/settlement.md "What a payout is made of")."""

from typing import Any

from ....core.usecases.browse.payout_lines import PayoutLine, get_payout_line, list_payout_lines
from ....core.usecases.browse.search import kind_of_id
from ....core.usecases.browse.timeline import Moment
from ....ports.bundle import Ports
from ..columns import Column, when
from .kinds import Filter, Kind, Wish

_PAYOUT = Filter(name="payout", hint="a payout's id")


async def _read(ports: Ports, wish: Wish, after: PayoutLine | None, limit: int) -> list[PayoutLine]:
    payout = wish.of("payout")
    return [] if payout is None else await list_payout_lines(ports, payout, after, limit)


def _object(each: PayoutLine) -> str | None:
    movement = each.item.movement
    return None if movement is None else movement.object_id


def _facts(each: PayoutLine) -> list[tuple[str, Any]]:
    movement = each.item.movement
    return [
        ("kind", each.item.kind),
        ("amount", f"{each.item.amount} USDT"),
        ("object", _object(each)),
        ("at", each.item.at),
        ("movement", None if movement is None else movement.number),
        ("payout", each.withdrawal_id),
    ]


async def _timeline(_ports: Ports, each: PayoutLine) -> list[Moment]:
    """Return the cause of the line, its movement, and the payout."""
    at, movement = each.item.at, each.item.movement
    told = [] if movement is None else [("by", kind_of_id(movement.object_id), movement.object_id)]
    told += [] if movement is None else [("its movement", "movement", movement.id)]
    told.append(("its payout", "withdrawal", each.withdrawal_id))
    return [Moment(at=at, source="object", text=text, of=of, object_id=found) for text, of, found in told]


PAYOUT_LINES = Kind(
    name="payout line",
    title="Lines of a payout",
    key="",
    columns=(
        when("at", lambda each: each.item.at),
        Column(title="kind", cell=lambda each: each.item.kind, width=18),
        Column(title="amount USDT", cell=lambda each: each.item.amount, width=18, right=True),
        Column(title="by", cell=_object, width=40, wide=True),
    ),
    read=_read,
    get=get_payout_line,
    facts=_facts,
    filters=(_PAYOUT,),
    orders=("oldest",),
    timeline=_timeline,
)
