"""Merchants' settlement statements, line by line, and corrections."""

from typing import Any

from ....core.domain.settlement.settlement import Correction, Settlement, SettlementBatch, SettlementItem
from ....core.usecases.browse.ledger import list_corrections, list_statement_items, list_statements
from ....core.usecases.browse.timeline import Moment, read_timeline
from ....ports.bundle import Ports
from ..columns import Column, merchant, when
from .kinds import ACCOUNT, MODE, Filter, Kind, Part, Wish, by_id
from .wishes import wanted

_BATCH = Filter(name="batch", hint="a batch's id, such as live:2026-11-21")
_STATEMENT = Filter(name="statement", hint="a statement's id")


TOTALS = (
    when("started", lambda each: each.started_at),
    Column(title="mode", cell=lambda each: each.mode, width=4),
    Column(title="payments", cell=lambda each: each.payments, width=8, right=True),
    Column(title="amount RUB", cell=lambda each: each.amount, width=14, right=True),
    Column(title="credit USDT", cell=lambda each: each.credit, width=17, right=True),
    Column(title="merchant", cell=lambda each: each.account_id or "all", width=8, broad=16, names=True),
)
"""Columns that batches and statements share."""


def totals(each: Settlement | SettlementBatch) -> list[tuple[str, Any]]:
    """Return the facts that batches and statements share."""
    return [
        ("paid before", each.cutoff),
        ("market rate", each.rate_market),
        ("payments", each.payments),
        ("amount", f"{each.amount} RUB"),
        ("fee", f"{each.fee} USDT"),
        ("credit", f"{each.credit} USDT"),
        ("started", each.started_at),
        ("completed", each.completed_at),
    ]


async def _read(ports: Ports, wish: Wish, after: Settlement | None, limit: int) -> list[Settlement]:
    return await list_statements(ports, wanted(wish), wish.of("batch"), after, limit)


_get = by_id(Settlement)


def _facts(each: Settlement) -> list[tuple[str, Any]]:
    return [
        ("statement", each.id),
        ("account", each.account_id),
        ("mode", each.mode),
        ("batch", each.batch_id),
        ("lines", each.items),
        ("payout", each.withdrawal_id),
        *totals(each),
    ]


async def _timeline(ports: Ports, each: Settlement) -> list[Moment]:
    """Return the usual timeline with links to the batch and the payout."""
    found = await read_timeline(ports, each)
    found.append(Moment(at=each.started_at, source="object", text="its batch", of="batch", object_id=each.batch_id))
    if each.withdrawal_id is not None:
        at = each.completed_at or each.started_at
        found.append(Moment(at=at, source="object", text="its payout", of="withdrawal", object_id=each.withdrawal_id))
    return sorted(found, key=lambda moment: moment.at)


STATEMENTS = Kind(
    name="settlement",
    title="Statements",
    key="T",
    columns=(
        *TOTALS,
        Column(title="statement", cell=lambda each: each.id, width=40, wide=True),
    ),
    read=_read,
    get=_get,
    facts=_facts,
    filters=(MODE, ACCOUNT, _BATCH),
    timeline=_timeline,
    parts=(Part(title="Lines", key="l", of="line", by="statement"),),
)


async def _read_lines(ports: Ports, wish: Wish, after: SettlementItem | None, limit: int) -> list[SettlementItem]:
    statement = wish.of("statement")
    return [] if statement is None else await list_statement_items(ports, statement, after, limit)


_get_line = by_id(SettlementItem)


def _line_facts(each: SettlementItem) -> list[tuple[str, Any]]:
    return [
        ("kind", each.kind),
        ("payment", each.payment_id),
        ("shop", each.shop_id),
        ("amount", f"{each.amount} RUB"),
        ("markup", each.markup),
        ("fee", f"{each.fee} USDT"),
        ("credit", f"{each.credit} USDT"),
        ("statement", each.settlement_id),
    ]


async def _line_timeline(ports: Ports, each: SettlementItem) -> list[Moment]:
    """Return links to the statement and the payment of the line."""
    statement = await _get(ports, each.settlement_id)
    if statement is None:
        return []
    at = statement.completed_at or statement.started_at
    return [
        Moment(at=at, source="object", text="its payment", of="payment", object_id=each.payment_id),
        Moment(at=at, source="object", text="its statement", of="settlement", object_id=statement.id),
    ]


LINES = Kind(
    name="line",
    title="Lines of a statement",
    key="",
    columns=(
        Column(title="kind", cell=lambda each: each.kind, width=10),
        Column(title="amount RUB", cell=lambda each: each.amount, width=12, right=True),
        Column(title="fee USDT", cell=lambda each: each.fee, width=14, right=True),
        Column(title="credit USDT", cell=lambda each: each.credit, width=18, right=True),
        Column(title="markup", cell=lambda each: each.markup, width=8, right=True),
        Column(title="payment", cell=lambda each: each.payment_id, width=40, wide=True),
        Column(title="shop", cell=lambda each: each.shop_id, width=36, wide=True),
    ),
    read=_read_lines,
    get=_get_line,
    facts=_line_facts,
    filters=(_STATEMENT,),
    orders=("by payment",),
    timeline=_line_timeline,
)


async def _read_corrections(ports: Ports, wish: Wish, after: Correction | None, limit: int) -> list[Correction]:
    return await list_corrections(ports, wanted(wish), after, limit)


_get_correction = by_id(Correction)


def _correction_facts(each: Correction) -> list[tuple[str, Any]]:
    return [
        ("refund", each.id),
        ("payment", each.payment_id),
        ("amount", f"{each.amount} RUB"),
        ("since", each.since),
        ("statement", each.settlement_id or "waits for the next settlement"),
        ("mode", each.mode),
        ("account", each.account_id),
        ("shop", each.shop_id),
    ]


async def _correction_timeline(_ports: Ports, each: Correction) -> list[Moment]:
    """Return links to the refund, the payment, and the statement of the correction."""
    about = [("its refund", "refund", each.id), ("its payment", "payment", each.payment_id)]
    if each.settlement_id is not None:
        about.append(("its statement", "settlement", each.settlement_id))
    return [Moment(at=each.since, source="object", text=text, of=of, object_id=found) for text, of, found in about]


CORRECTIONS = Kind(
    name="correction",
    title="Corrections",
    key="C",
    columns=(
        when("since", lambda each: each.since),
        Column(title="amount RUB", cell=lambda each: each.amount, width=12, right=True),
        Column(title="mode", cell=lambda each: each.mode, width=4),
        Column(title="settled", cell=lambda each: each.settlement_id is not None, width=7),
        merchant(24, 16),
        Column(title="refund", cell=lambda each: each.id, width=40, wide=True),
        Column(title="payment", cell=lambda each: each.payment_id, width=40, wide=True),
    ),
    read=_read_corrections,
    get=_get_correction,
    facts=_correction_facts,
    timeline=_correction_timeline,
)
