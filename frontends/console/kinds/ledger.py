"""The ledger: accounts with balances, the journal, the state of the books, and their verification."""

from typing import Any

from ....core.domain.ledger import EntryKind, JournalEntry, currency_of
from ....core.usecases.browse.ledger import (
    BalanceTypeView,
    LedgerState,
    get_balance_type,
    ledger_state,
    list_balance_types,
    list_entries,
)
from ....core.usecases.browse.search import kind_of_id
from ....core.usecases.browse.timeline import Moment, amount, postings
from ....core.usecases.ledger.check import LedgerReport, verify_ledger
from ....ports.bundle import Ports
from ....ports.storage import Unit
from ..columns import Column, when
from .kinds import Change, ConsoleAction, Doing, Filter, Kind, Wish
from .wishes import wanted

_TOLD = 20
"""Maximum number of wrong balances listed."""


async def _read(ports: Ports, wish: Wish, after: BalanceTypeView | None, limit: int) -> list[BalanceTypeView]:
    return await list_balance_types(ports, wanted(wish), after, limit)


async def _get(ports: Ports, object_id: str) -> BalanceTypeView | LedgerState | None:
    """Return a ledger account, or without an id the state of all books, which alarms refer to."""
    return await get_balance_type(ports, object_id) if object_id else await ledger_state(ports)


def _facts(each: BalanceTypeView | LedgerState) -> list[tuple[str, Any]]:
    if isinstance(each, LedgerState):
        return [
            ("the books", "hold, as far as the quick check sees" if not each.faults else "do not hold"),
            *(("alarm", fault) for fault in each.faults),
            ("chained entries", each.chained),
            ("last link", each.link),
            ("proof", "Verify, on the list of balance types (L)"),
        ]
    return [
        ("owner", each.owner),
        ("mode", each.mode),
        ("balance_type", each.balance_type),
        ("balance", amount(each.balance, currency_of(each.balance_type))),
    ]


async def _no_timeline(_ports: Ports, _each: BalanceTypeView | LedgerState) -> list[Moment]:
    return []


async def _headline(ports: Ports) -> str:
    state = await ledger_state(ports)
    if state.faults:
        return f"ALARM: {'; '.join(state.faults)}"
    return f"no alarm: sums are zero, the newest of {state.chained} chained entries hold"


async def _verify(doing: Doing) -> str:
    report = await verify_ledger(doing.ports, progress=lambda count: doing.tell(f"{count} entries checked"))
    return _told(report)


def _told(report: LedgerReport) -> str:
    if report.holds:
        return f"The books hold: {report.entries} entries, {report.unsealed} of them not chained yet."
    lines = [f"The books do not hold; {report.entries} entries were checked."]
    bad = report.first_bad_entry
    if bad is not None:
        lines.append(f"First bad entry: {bad.number or '-'} {bad.id or ''} {bad.reason}")
    lines += [f"{each.id}: kept {each.kept}, counted {each.counted}" for each in report.bad_balances[:_TOLD]]
    return "\n".join(lines)


_VERIFY = ConsoleAction(
    name="ledger.verify",
    title="Verify",
    key="v",
    changes=lambda _: [
        Change("books", "as they are", "as they are: it reads only"),
        Change("proof", "-", "every balance, sum and link is computed anew"),
    ],
    run=_verify,
    reads=True,
    reason_needed=False,
    guarded=False,
)

LEDGER = Kind(
    name="ledger",
    title="Ledger",
    key="L",
    columns=(
        Column(title="owner", cell=lambda each: each.owner, width=26, broad=30, names=True),
        Column(title="mode", cell=lambda each: each.mode, width=4),
        Column(title="balance_type", cell=lambda each: each.balance_type, width=15),
        Column(
            title="balance",
            cell=lambda each: amount(each.balance, currency_of(each.balance_type)),
            width=24,
            right=True,
        ),
        Column(title="whose", cell=lambda each: each.owner, width=40, wide=True),
    ),
    read=_read,
    get=_get,
    facts=_facts,
    orders=("by owner",),
    timeline=_no_timeline,
    headline=_headline,
    list_actions=(_VERIFY,),
)


async def _read_entries(ports: Ports, wish: Wish, after: JournalEntry | None, limit: int) -> list[JournalEntry]:
    kind = wish.of("kind")
    return await list_entries(ports, None if kind is None else EntryKind(kind), wish.of("object"), after, limit)


async def _get_entry(ports: Ports, entry_id: str) -> JournalEntry | None:
    async with ports.storage.unit() as unit:
        return await _entry(unit, entry_id)


async def _entry(unit: Unit, entry_id: str) -> JournalEntry | None:
    return await unit[JournalEntry].get(entry_id)


def _entry_facts(each: JournalEntry) -> list[tuple[str, Any]]:
    return [
        ("kind", each.kind),
        ("object", each.object_id),
        ("revision", each.revision),
        ("at", each.at),
        ("mode", each.mode),
        ("account", each.account_id),
        *(
            (f"  {posting.balance_type}", amount(posting.amount, currency_of(posting.balance_type)))
            for posting in each.postings
        ),
        ("number in the chain", each.number or "not chained yet"),
        ("seal", None if each.seal is None else each.seal.hex()),
    ]


async def _entry_timeline(_ports: Ports, each: JournalEntry) -> list[Moment]:
    """Return the object that caused the entry."""
    of = kind_of_id(each.object_id)
    text = f"{each.kind}: {postings(each)}"
    return [Moment(at=each.at, source="ledger", text=text, detail=each.object_id, of=of, object_id=each.object_id)]


JOURNAL = Kind(
    name="entry",
    title="Journal",
    key="J",
    columns=(
        Column(title="number", cell=lambda each: each.number or "new", width=7, right=True),
        when("at", lambda each: each.at),
        Column(title="mode", cell=lambda each: each.mode, width=4),
        Column(title="kind", cell=lambda each: each.kind, width=19),
        Column(title="moves", cell=postings, width=23, broad=50),
        Column(title="object", cell=lambda each: each.object_id, width=40, wide=True),
    ),
    read=_read_entries,
    get=_get_entry,
    facts=_entry_facts,
    filters=(
        Filter(name="kind", choices=tuple(EntryKind)),
        Filter(name="object", hint="an object's id"),
    ),
    orders=("newest",),
    timeline=_entry_timeline,
    list_actions=(_VERIFY,),
)
