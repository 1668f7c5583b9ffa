"""Comparison of merchants' statements with the journal: each line's money with the entry of its payment or refund, and
each statement with its lines (value_check.py)."""

from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence

import msgspec

from ....ports.storage import Between, OneOf, Snapshot
from ...domain.ledger import BalanceType, EntryKind, JournalEntry, entry_id
from ...domain.money import Rub
from ...domain.payments.payments import Payment
from ...domain.settlement.settlement import (
    ItemKind,
    Settlement,
    SettlementBatch,
    SettlementItem,
    item_ids,
    line_id,
    terms_of,
)
from .chain_check import BATCH
from .checkpoint import Scope
from .object_check import Fault

_SUMS = ("payments", "items", "amount", "fee", "credit")


class _Group(msgspec.Struct):
    """The lines that belong to one journal entry."""

    first: SettlementItem
    amount: int = 0
    fee: int = 0
    credit: int = 0

    @property
    def entry(self) -> str:
        item = self.first
        object_id = item.payment_id if item.kind is not ItemKind.CORRECTION else item.refund_id or ""
        return entry_id(EntryKind.SETTLEMENT, object_id)


async def statement_faults(seen: Snapshot, scope: Scope) -> AsyncIterator[Fault]:
    """Find statements and lines that the journal contradicts. Raises: Unreadable for an entry."""
    async for batch in scope.rows(seen, Settlement):
        for statement in batch:
            async for fault in _of_statement(seen, statement):
                yield fault
    async for fault in _unlisted(seen, scope):
        yield fault


async def _of_statement(seen: Snapshot, statement: Settlement) -> AsyncIterator[Fault]:
    sums: Counter[str] = Counter()
    span = item_ids(statement.id)
    after, past = span[0], 0
    group: _Group | None = None
    while items := await seen[SettlementItem].find(id=Between(after, span[1]), offset=past, limit=BATCH):
        after, past = items[-1].id, 1
        # Lines of one entry follow each other. The last group of a batch stays open, because its lines may continue in
        # the next batch.
        groups: list[_Group] = []
        for item in items:
            sums.update(
                items=1,
                payments=item.kind is ItemKind.PAYMENT,
                amount=item.amount.kopecks,
                fee=item.fee.units,
                credit=item.credit.units,
            )
            if group is None or not _belongs(group.first, item):
                if group is not None:
                    groups.append(group)
                group = _Group(item)
            group.amount += item.amount.kopecks
            group.fee += item.fee.units
            group.credit += item.credit.units
        for fault in await _of_groups(seen, statement, groups):
            yield fault
    for fault in await _of_groups(seen, statement, [] if group is None else [group]):
        yield fault
    kept = {
        "payments": statement.payments,
        "items": statement.items,
        "amount": statement.amount.kopecks,
        "fee": statement.fee.units,
        "credit": statement.credit.units,
    }
    for name in _SUMS:
        if kept[name] != sums[name]:
            yield statement.id, f"settlements.{name}", f"is {kept[name]}, but its lines make {sums[name]}"
    batch = await seen[SettlementBatch].get(statement.batch_id)
    if batch is not None and (batch.rate_market, batch.mode) != (statement.rate_market, statement.mode):
        yield statement.id, "settlements.rate_market", "or its mode is not that of its batch"


def _belongs(first: SettlementItem, item: SettlementItem) -> bool:
    """Return whether two lines belong to one entry. A payment's line and those of its refunds do; a correction stands
    alone."""
    is_apart = ItemKind.CORRECTION in (first.kind, item.kind)
    return not is_apart and first.payment_id == item.payment_id


async def _of_groups(seen: Snapshot, statement: Settlement, groups: Sequence[_Group]) -> list[Fault]:
    wanted = tuple(group.entry for group in groups)
    found = await seen[JournalEntry].find(id=OneOf(wanted), limit=len(wanted)) if wanted else []
    entries = {entry.id: entry for entry in found}
    faults = [_fault(statement, group, entries) for group in groups]
    return [fault for fault in faults if fault is not None]


def _fault(statement: Settlement, group: _Group, entries: Mapping[str, JournalEntry]) -> Fault | None:
    entry = entries.get(group.entry)
    booked: Counter[BalanceType] = Counter()
    if entry is not None:
        if (entry.account_id, entry.mode) != (statement.account_id, statement.mode):
            return statement.id, "settlements.account_id", f"or its mode is not that of {entry.id}"
        for posting in entry.postings:
            booked[posting.balance_type] += posting.amount
    item = group.first
    for name, kept, balance_type, sign in (
        ("amount", group.amount, BalanceType.PENDING, -1),
        ("fee", group.fee, BalanceType.FEES, 1),
        ("credit", group.credit, BalanceType.AVAILABLE, 1),
    ):
        units = booked[balance_type] * sign
        if kept != units:
            return item.id, f"settlement_items.{name}", f"is {kept} with its refunds, but {units} are booked"
    if not group.amount:
        return None
    try:
        worth = terms_of(statement.rate_market, item.markup).worth(Rub(group.amount))
    except (ValueError, ArithmeticError):
        return item.id, "settlement_items.markup", "or the statement's rate is impossible"
    if (worth.fee.units, worth.credit.units) != (group.fee, group.credit):
        return item.id, "settlement_items.markup", "or the statement's rate does not give what is booked"
    return None


async def _unlisted(seen: Snapshot, scope: Scope) -> AsyncIterator[Fault]:
    """Find settled payments whose statement or statement line is missing."""
    async for batch in scope.entries(seen, EntryKind.SETTLEMENT):
        named = tuple(entry.object_id for entry in batch)
        payments = await seen[Payment].find(id=OneOf(named), limit=len(named), readable=True)
        lines = {payment.id: line_id(payment.settlement_id or "", payment.id) for payment in payments}
        there = await _there(seen, SettlementItem, lines.values())
        statements = await _there(seen, Settlement, {payment.settlement_id or "" for payment in payments})
        for payment in payments:
            if lines[payment.id] not in there or payment.settlement_id not in statements:
                yield payment.id, "payments.settlement_id", "or its line of that statement, or the statement, is gone"


async def _there(seen: Snapshot, kind: type[Settlement | SettlementItem], ids: Iterable[str]) -> set[str]:
    """Return the ids of the existing records."""
    wanted = tuple(ids)
    found = await seen[kind].find(id=OneOf(wanted), limit=len(wanted), readable=True) if wanted else []
    return {record.id for record in found}
