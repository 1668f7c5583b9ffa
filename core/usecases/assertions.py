"""Storage for use cases in production. At each commit it checks the written records against the rules of
domain/assertions.py. A unit of work that breaks a rule is not committed, whatever storage is below."""

import logging
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from types import TracebackType
from typing import Any, Self, cast

import msgspec

from ...ports.faults import Stale
from ...ports.forwarding import ForwardingRepository, ForwardingStorage
from ...ports.storage import Between, R, Repository, Storage, Unit
from ...ports.vault import Vault
from ..domain.assertions import Breach, Change, Written, breach_of, lowered
from ..domain.ledger import JournalEntry, LedgerAccount
from ..domain.payments.payments import Payment
from ..domain.payments.tallies import Tally
from ..domain.refunds.refunds import Refund
from ..domain.settlement.settlement import Settlement, SettlementItem
from ..domain.settlement.withdrawals import Withdrawal
from ..domain.webhooks.events import Event
from .common.encrypted import open_event_body

Told = Callable[[str], None]
"""Receives the name of the rule that a unit would have broken."""

log = logging.getLogger("cambist.assertions")


class AssertingStorage(ForwardingStorage):
    """A Storage (ports/storage.py) around another one. It refuses to commit impossible states."""

    def __init__(self, inner: Storage, told: Told, vault: Vault) -> None:
        super().__init__(inner)
        self._told = told
        self.body_of = partial(open_event_body, vault)

    def unit(self) -> AbstractAsyncContextManager[Unit]:
        return _Unit(self.inner.unit(), self)

    async def refuse(self, breach: Breach, written: Written) -> None:
        """Refuse a unit that breaks a rule. If another unit committed between two of its reads, the unit may have read
        an inconsistent state; its own commit would fail anyway, so raise Stale.

        Raises: Stale; Breach.
        """
        for object_id, change in written.changes.items():
            if change.is_new and change.after is None:
                continue
            present = await self.inner.get(type(change.after or change.before), object_id)
            if change.is_new is not (present is None) or (present is not None and present.version != change.version):
                raise Stale(f"{object_id} changed since it was read, or is gone") from None
        self._told(breach.rule)
        log.error("a unit is not committed, it would break a rule: %s", breach, stack_info=True)
        raise breach


class _Unit(msgspec.Struct, eq=False):
    """Forwards to a unit and records the writes that a rule needs. It is a struct whose `commit` returns the inner
    coroutine, because every request pays its cost."""

    _opening: AbstractAsyncContextManager[Unit]
    _storage: AssertingStorage
    _unit: Unit = msgspec.UNSET  # type: ignore[assignment]  # until it is entered
    _written: Written | None = None
    _seen: dict[str, Any] = {}

    async def __aenter__(self) -> Self:
        self._unit = await self._opening.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._opening.__aexit__(kind, fault, trace)

    def __getitem__(self, kind: type[R], /) -> Repository[R]:
        watching = _WATCHED.get(kind)
        if watching is None:
            return self._unit[kind]
        if self._written is None:
            self._written = Written(self._storage.body_of)
        return cast("Repository[R]", watching(self._unit[kind], self._written, self._seen))

    def commit(self, *, durable: bool = True) -> Coroutine[Any, Any, None]:
        """Commit as the inner unit does. Raises: Breach as well; then nothing is written."""
        if self._written is not None:
            if self._written.balances and lowered(self._written):
                return self._commit_lowering(self._written, durable=durable)
            breach = breach_of(self._written)
            if breach is not None:
                return self._storage.refuse(breach, self._written)
        return self._unit.commit(durable=durable)

    async def _commit_lowering(self, written: Written, *, durable: bool) -> None:
        """Commit a unit that lowers a ledger account which must not go below zero. Read the account's balance first."""
        for account in lowered(written):
            rows = await self._unit[LedgerAccount].find(id=Between(f"{account}:", f"{account};"), limit=_STRIPES)
            written.standing[account] = sum(row.balance for row in rows)
        breach = breach_of(written)
        if breach is not None:
            await self._storage.refuse(breach, written)
        await self._unit.commit(durable=durable)


class _Watched(ForwardingRepository[Any], eq=False):
    """A repository whose writes are recorded."""

    _written: Written
    _seen: dict[str, Any]


class _Entries(_Watched, eq=False):
    def add(self, record: Any, /) -> Any:
        self._written.entries.append(record)
        return self.inner.add(record)

    def save(self, record: Any, /) -> Any:
        self._written.rewritten.append(record.id)
        return self.inner.save(record)

    def change(self, record: Any, /, **changes: Any) -> Any:
        if not changes.keys() <= _SET_LATER:
            self._written.rewritten.append(record.id)
        return self.inner.change(record, **changes)

    def remove(self, record: Any, /) -> None:
        self._written.rewritten.append(record.id)
        self.inner.remove(record)


class _Events(_Watched, eq=False):
    def add(self, record: Any, /) -> Any:
        self._written.events.append(record)
        return self.inner.add(record)


class _Lines(_Watched, eq=False):
    def add(self, record: Any, /) -> Any:
        self._written.lines.append(record)
        return self.inner.add(record)


class _Balances(_Watched, eq=False):
    def add(self, record: Any, /) -> Any:
        self._move(record.id, record.balance)
        return self.inner.add(record)

    def increase(self, record_id: str, field: str, by: int, /) -> None:
        self._move(record_id, by)
        self.inner.increase(record_id, field, by)

    def accrue(self, *records: Any) -> None:
        for record in records:
            self._move(record.id, record.balance)
        self.inner.accrue(*records)

    def _move(self, record_id: str, by: int) -> None:
        moved = self._written.balances
        moved[record_id] = moved.get(record_id, 0) + by


class _Tallies(_Watched, eq=False):
    def accrue(self, *records: Any) -> None:
        self._written.tallies.extend(records)
        self.inner.accrue(*records)


class _Statements(_Watched, eq=False):
    def increase(self, record_id: str, field: str, by: int, /) -> None:
        if field == "credit":
            self._written.credited += by
        self.inner.increase(record_id, field, by)


class _Objects(_Watched, eq=False):
    """Objects with a status. The records that the unit read give their state before the change."""

    async def get(self, record_id: str, /) -> Any:
        found = await self.inner.get(record_id)
        if found is not None:
            self._seen[found.id] = found
        return found

    async def find(self, **asked: Any) -> list[Any]:
        found = await self.inner.find(**asked)
        self._seen.update((each.id, each) for each in found)
        return found

    def add(self, record: Any, /) -> Any:
        self._written.changes[record.id] = Change(None, record, is_new=True)
        return self.inner.add(record)

    def save(self, record: Any, /) -> Any:
        self._note(record, self._seen.get(record.id), record.version)
        return self.inner.save(record)

    def change(self, record: Any, /, **changes: Any) -> Any:
        changed = self.inner.change(record, **changes)
        self._note(changed, record, record.version)
        return changed

    def remove(self, record: Any, /) -> None:
        known = self._written.changes.get(record.id)
        if known is None:
            known = self._written.changes[record.id] = Change(record, None, version=record.version)
        known.after = None
        self.inner.remove(record)

    def _note(self, after: Any, before: Any, version: int) -> None:
        known = self._written.changes.get(after.id)
        if known is None:
            self._written.changes[after.id] = Change(before, after, version=version)
        else:
            known.after = after


_STRIPES = 100
"""More rows than a running balance is spread over."""
_SET_LATER = frozenset(("number", "seal", "place"))
"""Fields of a journal entry that are set later, when it is chained and listed."""
_WATCHED: Mapping[type[Any], type[_Watched]] = {
    JournalEntry: _Entries,
    LedgerAccount: _Balances,
    Event: _Events,
    Tally: _Tallies,
    SettlementItem: _Lines,
    Settlement: _Statements,
    Payment: _Objects,
    Refund: _Objects,
    Withdrawal: _Objects,
}
