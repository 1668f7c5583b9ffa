"""Differences between the banks' lists and our records, and marking them settled."""

from datetime import datetime
from typing import Any

import msgspec

from ....core.domain.money import Rub
from ....core.domain.reconciliation.reconciliation import Discrepancy
from ....core.usecases.browse.differences import browse_differences
from ....core.usecases.operators.reconciliation_items import told
from ....core.usecases.reconciliation.discrepancies import settle_difference
from ....ports.bundle import Ports
from ..columns import Column, merchant, when
from .kinds import ACCOUNT, Change, ConsoleAction, Doing, Filter, Kind, Wish, by_id, story
from .wishes import wanted

_CLOSED = "closed"


async def _read(ports: Ports, wish: Wish, after: Discrepancy | None, limit: int) -> list[Discrepancy]:
    asked = msgspec.structs.replace(wanted(wish), newest_first=wish.order == "newest")
    return await browse_differences(ports, asked, after, limit, closed=wish.of("state") == _CLOSED)


def _rub(kopecks: int | None) -> str | None:
    return None if kopecks is None else f"{Rub(kopecks)} RUB"


def _state(row: Discrepancy) -> str:
    if row.closed_at is None:
        return "open"
    return "settled by an operator" if row.settled else "gone at a later comparison"


def _facts(row: Discrepancy) -> list[tuple[str, Any]]:
    return [
        ("difference", told(row)),
        ("state", _state(row)),
        ("amount here", _rub(row.our_kopecks)),
        ("amount there", _rub(row.their_kopecks)),
        ("fee here", _rub(row.our_fee)),
        ("fee there", _rub(row.their_fee)),
        ("state here", row.our_standing),
        ("state there", row.their_standing),
        ("bank", row.bank),
        ("credentials of", row.owner or "the installation"),
        ("day", row.day),
        ("began", row.moment),
        ("operation", row.operation),
        ("bank's id", row.entry),
        (row.of or "object", row.object_id),
        ("account", row.account_id),
        ("found", row.found_at),
        ("closed", row.closed_at),
        ("id", row.id),
    ]


def _link(row: Discrepancy) -> tuple[datetime | None, str, str, str | None]:
    return row.moment, "what it is about", row.of or "", row.object_id


async def _settle(doing: Doing) -> str:
    await settle_difference(doing.ports, doing.record.id)
    return "Settled: it stays closed as long as it is found as it is. No money was moved."


DIFFERENCES = Kind(
    name="difference",
    title="Differences",
    key="D",
    columns=(
        when("found", lambda each: each.found_at),
        Column(title="differs", cell=lambda each: each.difference, width=7),
        Column(title="what", cell=lambda each: each.subject, width=7),
        Column(title="here", cell=lambda each: _rub(each.our_kopecks), width=13, right=True),
        Column(title="there", cell=lambda each: _rub(each.their_kopecks), width=13, right=True),
        merchant(11, 16),
        Column(title="day", cell=lambda each: each.day, width=10, wide=True),
        Column(title="bank", cell=lambda each: each.bank, width=14, wide=True),
        Column(title="of", cell=lambda each: each.object_id or each.entry, width=30, wide=True, ends=True),
    ),
    read=_read,
    get=by_id(Discrepancy),
    facts=_facts,
    filters=(Filter(name="state", choices=(_CLOSED,)), ACCOUNT),
    orders=("oldest", "newest"),
    timeline=story(_link),
    actions=(
        ConsoleAction(
            name="difference.settle",
            title="Settle",
            key="s",
            allowed=lambda row: row.closed_at is None,
            changes=lambda row: [Change("state", _state(row), "settled by an operator")],
            run=_settle,
        ),
    ),
)
