"""Movements of an account's balance, with the balance after each (docs/settlement.md "Movements")."""

from typing import Any

from ....core.domain.ledger import JournalEntry
from ....core.domain.movements import Movement
from ....core.usecases.browse.ledger import list_movements
from ....core.usecases.browse.search import kind_of_id
from ....core.usecases.browse.timeline import Moment
from ....ports.bundle import Ports
from ..columns import Column, when
from .kinds import ACCOUNT, MODE, Kind, Wish, by_id
from .wishes import wanted


async def _read(ports: Ports, wish: Wish, after: Movement | None, limit: int) -> list[Movement]:
    return await list_movements(ports, wanted(wish), after, limit)


def _mode(each: Movement) -> str:
    return each.id.split(":")[1]


def _facts(each: Movement) -> list[tuple[str, Any]]:
    return [
        ("number", each.number),
        ("kind", each.kind),
        ("object", each.object_id),
        ("at", each.at),
        ("available", f"{each.available} USDT"),
        ("reserved", f"{each.reserved} USDT"),
        ("pending", f"{each.pending} RUB"),
        ("available after", f"{each.available_after} USDT"),
        ("reserved after", f"{each.reserved_after} USDT"),
        ("pending after", f"{each.pending_after} RUB"),
        ("mode", _mode(each)),
        ("account", each.id.split(":")[0]),
    ]


async def _timeline(ports: Ports, each: Movement) -> list[Moment]:
    """Return the cause of the movement and its journal entry."""
    entry = await ports.storage.get(JournalEntry, each.entry_id)
    found = [Moment(at=each.at, source="object", text="by", of=kind_of_id(each.object_id), object_id=each.object_id)]
    if entry is not None:
        found.append(Moment(at=entry.at, source="ledger", text="its entry", of="entry", object_id=entry.id))
    return found


MOVEMENTS = Kind(
    name="movement",
    title="Movements",
    key="",
    columns=(
        when("at", lambda each: each.at),
        Column(title="kind", cell=lambda each: each.kind, width=18),
        Column(title="available", cell=lambda each: each.available, width=16, right=True),
        Column(title="reserved", cell=lambda each: each.reserved, width=15, wide=True, right=True),
        Column(title="pending", cell=lambda each: each.pending, width=13, right=True),
        Column(title="available after", cell=lambda each: each.available_after, width=16, wide=True, right=True),
        Column(title="pending after", cell=lambda each: each.pending_after, width=13, wide=True, right=True),
        Column(title="mode", cell=_mode, width=4),
        Column(title="by", cell=lambda each: each.object_id, width=26, wide=True, ends=True),
    ),
    read=_read,
    get=by_id(Movement),
    facts=_facts,
    filters=(MODE, ACCOUNT),
    orders=("newest",),
    timeline=_timeline,
)
