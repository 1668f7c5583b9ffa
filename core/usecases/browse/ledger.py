"""Lists of the ledger, for operators: ledger accounts, journal, statements and their lines, corrections, the audit log.
A page starts after the last record of the page before, as in browse.py."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import AtLeast, Below, Between, OneOf
from ...domain.accounts.accounts import Mode
from ...domain.chains import ChainHead
from ...domain.ledger import (
    LEDGER,
    SERVICE,
    BalanceType,
    EntryKind,
    JournalEntry,
    LedgerAccount,
    entry_id,
)
from ...domain.movements import Movement
from ...domain.operators.audit import AuditEntry
from ...domain.refunds.suspense_returns import MOST_TRIES
from ...domain.settlement.settlement import Correction, Settlement, SettlementItem, item_ids
from ..accounts.accounts import storable
from ..ledger.listing import last_movement, list_fresh
from ..ledger.movements import MOST, Span
from ..ledger.watch import ledger_faults
from .browse import Wanted, all_owners, merged
from .leaves import Leaf, Way

_NEXT = timedelta(microseconds=1)
_ROWS = 1000
_LAST = "~"
"""Sorts after every owner's name."""


class BalanceTypeView(msgspec.Struct, frozen=True, kw_only=True):
    """A ledger account with its balance, summed over all the rows that store it."""

    id: str
    owner: str
    mode: Mode
    balance_type: BalanceType
    balance: int
    """In the smallest unit of its currency."""
    version: int = 0

    @property
    def account_id(self) -> str | None:
        """Id of the merchant's account. None for the service's own ledger accounts."""
        return None if self.owner == SERVICE else self.owner


class LedgerState(msgspec.Struct, frozen=True, kw_only=True):
    """State of the ledger as a whole."""

    id: str
    faults: tuple[str, ...]
    chained: int
    """Number of entries in the hash chain."""
    link: str
    version: int = 0


async def list_balance_types(
    ports: Ports, wanted: Wanted, after: BalanceTypeView | None, limit: int
) -> list[BalanceTypeView]:
    """Return ledger accounts by owner, mode and name. The service's own come after those of all merchants."""
    low, high = _span(wanted)
    if after is not None:
        low = f"{after.id};"
    criteria: dict[str, Any] = {}
    if wanted.mode is not None and wanted.account_id is None:
        criteria["mode"] = wanted.mode
    found: dict[str, BalanceTypeView] = {}
    async with ports.storage.snapshot() as seen:
        # Read one ledger account more than requested, so that all rows of the last one returned are read.
        while len(found) <= limit:
            rows = await seen[LedgerAccount].find(id=Between(low, high), limit=_ROWS, **criteria)
            for row in rows:
                balance_type_id = row.id.rpartition(":")[0]
                before = found[balance_type_id].balance if balance_type_id in found else 0
                found[balance_type_id] = BalanceTypeView(
                    id=balance_type_id,
                    owner=row.owner,
                    mode=row.mode,
                    balance_type=row.balance_type,
                    balance=before + row.balance,
                )
            if len(rows) < _ROWS:
                break
            low = f"{rows[-1].id}!"
    return [*found.values()][:limit]


def _span(wanted: Wanted) -> tuple[str, str]:
    if wanted.account_id is None:
        return "", _LAST
    owner = wanted.account_id if wanted.mode is None else f"{wanted.account_id}:{wanted.mode}"
    return f"{owner}:", f"{owner};"


async def get_balance_type(ports: Ports, balance_type_id: str) -> BalanceTypeView | None:
    """Return the ledger account with this id, which consists of owner, mode and name."""
    async with ports.storage.unit() as unit:
        rows = await unit[LedgerAccount].find(id=Between(f"{balance_type_id}:", f"{balance_type_id};"), limit=_ROWS)
    if not rows:
        return None
    return BalanceTypeView(
        id=balance_type_id,
        owner=rows[0].owner,
        mode=rows[0].mode,
        balance_type=rows[0].balance_type,
        balance=sum(row.balance for row in rows),
    )


async def ledger_state(ports: Ports) -> LedgerState:
    """Run the cheap check of the ledger and return its faults with the end of the hash chain."""
    faults = await ledger_faults(ports)
    head = await ports.storage.get(ChainHead, LEDGER.head_id)
    chained, link = (0, "") if head is None else (head.number, head.seal.hex())
    return LedgerState(id="", faults=faults, chained=chained, link=link)


async def list_entries(
    ports: Ports, kind: EntryKind | None, object_id: str | None, after: JournalEntry | None, limit: int
) -> Leaf[JournalEntry]:
    """Return journal entries, newest first: first the entries that are not yet in the chain, then the chain from its
    end. With a kind, the order is that of the object ids, descending. With an object, it is that of the entry ids,
    ascending."""
    async with ports.storage.unit() as unit:
        repository = unit[JournalEntry]
        if object_id is not None:
            kinds = EntryKind if kind is None else (kind,)
            found = await repository.find(id=OneOf(_ids(object_id, kinds)), order="id", readable=True)
            return Leaf([] if after is not None else found[:limit])
        if kind is not None:
            low, high = f"{kind}:", f"{kind}:{_LAST}"
            onward = Between(low, high if after is None else after.id)
            found = await repository.find(id=onward, order="-id", limit=limit, readable=True)
            return Leaf(found, ways=[Way(JournalEntry, {}, Between(low, high))])
        found = []
        if after is None or after.number is None:
            older = Between()
            if after is not None:
                same: dict[str, Any] = {"at": after.at, "id": Below(after.id)}
                found = await repository.find(**_UNCHAINED, **same, order="-at", limit=limit, readable=True)
                older = Between(None, after.at)
            left = limit - len(found)
            found += await repository.find(**_UNCHAINED, at=older, order="-at", limit=left, readable=True)
        if len(found) < limit:
            # The chain's numbers begin with 1.
            last = None if after is None else after.number
            numbers = Between(1, last)
            found += await repository.find(number=numbers, order="-number", limit=limit - len(found), readable=True)
        ways = [Way(JournalEntry, _UNCHAINED, by="account_id"), Way(JournalEntry, {"number": Between(1)})]
        return Leaf(found, ways=ways, by="number")


_UNCHAINED: dict[str, Any] = {"number": None, "account_id": AtLeast("")}
"""Criteria for entries outside of the chain. The index of these begins with the account."""


def _ids(object_id: str, kinds: Iterable[EntryKind]) -> tuple[str, ...]:
    return tuple(entry_id(kind, object_id, number) for kind in kinds for number in range(1, MOST_TRIES + 2))


async def list_movements(ports: Ports, wanted: Wanted, after: Movement | None, limit: int) -> list[Movement]:
    """Return the movements of an account's balance, in one mode or both, newest first. Without an account the list is
    empty. Movements that are not listed yet are listed first."""
    owner = wanted.account_id
    if owner is None or not storable(owner):
        return []
    if after is None:
        for mode in wanted.modes:
            await list_fresh(ports, owner, mode, most=MOST)
    found: list[Movement] = []
    async with ports.storage.unit() as unit:
        for mode in wanted.modes:
            last = await last_movement(unit, owner, mode)
            end = 1 if last is None else last.number + 1
            span = Span(unit=unit, account_id=owner, mode=mode, low=1, high=end)
            marks = [] if after is None else [(after.at, after.id)]
            for number in (await span.first_where(marks, lambda each, mark: (each.at, each.id) >= mark)).values():
                end = number
            found += await span.of(max(end - limit, 1), end - 1)
    return sorted(found, key=lambda each: (each.at, each.id), reverse=True)[:limit]


async def list_statements(
    ports: Ports, wanted: Wanted, batch_id: str | None, after: Settlement | None, limit: int
) -> Leaf[Settlement]:
    """Return merchants' statements by the time they were begun. In live mode their ids do not rise with time
    (`causes.py`)."""
    asked: dict[str, Any] = {} if batch_id is None else {"batch_id": batch_id}
    async with ports.storage.unit() as unit:
        owners = [wanted.account_id] if wanted.account_id is not None else []
        if not owners and batch_id is None:
            owners = await all_owners(unit)
        if owners:
            keys = [{"account_id": owner, "mode": mode} for owner in owners for mode in wanted.modes]
            ways = [Way(Settlement, {**key, **asked}) for key in keys]
            return await merged(unit, ways, after, limit, by="started_at", newest_first=wanted.newest_first)
        if wanted.mode is not None:
            asked["mode"] = wanted.mode
        return await merged(unit, [Way(Settlement, asked)], after, limit, by="id", newest_first=wanted.newest_first)


async def list_statement_items(
    ports: Ports, statement_id: str, after: SettlementItem | None, limit: int
) -> Leaf[SettlementItem]:
    """Return the lines of a statement, in the order of its payments."""
    low, high = item_ids(statement_id)
    async with ports.storage.unit() as unit:
        span = Between(low if after is None else f"{after.id}!", high)
        found = await unit[SettlementItem].find(id=span, order="id", limit=limit, readable=True)
        return Leaf(found, ways=[Way(SettlementItem, {}, Between(low, high))])


async def list_corrections(ports: Ports, wanted: Wanted, after: Correction | None, limit: int) -> Leaf[Correction]:
    """Return the corrections: amounts refunded after their payment was settled. There are few."""
    wishes: dict[str, Any] = {"account_id": wanted.account_id, "mode": wanted.mode}
    way = Way(Correction, {name: value for name, value in wishes.items() if value is not None})
    async with ports.storage.unit() as unit:
        return await merged(unit, [way], after, limit, by="id", newest_first=wanted.newest_first)


class AuditWish(msgspec.Struct, frozen=True, kw_only=True):
    """Filter and order of a list of audit entries."""

    operator: str | None = None
    action: str | None = None
    object_id: str | None = None
    since: datetime | None = None
    """Inclusive."""
    until: datetime | None = None
    """Exclusive."""
    newest_first: bool = True


async def browse_audit(ports: Ports, wish: AuditWish, after: AuditEntry | None, limit: int) -> Leaf[AuditEntry]:
    """Return audit entries in the order of time."""
    named: dict[str, Any] = {"operator": wish.operator, "action": wish.action, "object_id": wish.object_id}
    criteria = {name: value for name, value in named.items() if value is not None}
    newest = wish.newest_first
    sign = "-" if newest else ""
    onward: dict[str, Any] = {}
    if after is not None:
        # `!` sorts before every character that an id contains.
        onward["id"] = Below(after.id) if newest else AtLeast(f"{after.id}!")
    span = None if wish.since is None and wish.until is None else Between(wish.since, wish.until)
    async with ports.storage.unit() as unit:
        repository = unit[AuditEntry]
        if span is None:
            found = await repository.find(order=f"{sign}id", limit=limit, readable=True, **criteria, **onward)
        elif after is None:
            found = await repository.find(at=span, order=f"{sign}at", limit=limit, readable=True, **criteria)
        else:
            found = await repository.find(
                at=after.at, order=f"{sign}id", limit=limit, readable=True, **criteria, **onward
            )
            if left := limit - len(found):
                rest = Between(span.low, after.at) if newest else Between(after.at + _NEXT, span.high)
                found += await repository.find(at=rest, order=f"{sign}at", limit=left, readable=True, **criteria)
    return Leaf(found, ways=[Way(AuditEntry, criteria, span)], by="id" if span is None else "at")
