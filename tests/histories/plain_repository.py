"""The repositories and units of the storage plain.py."""

import copy
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from cambist.adapters.storage.table.catalogue import Table
from cambist.core.domain.money import Rub, Usdt
from cambist.frontends.conformance.storage.kit import KIT_CATALOGUE
from cambist.ports.faults import Conflict, Stale
from cambist.ports.jobs import Job
from tests.histories.plain_values import (
    bare_type,
    holds,
    plain_of,
    require_comparable,
    require_storable,
    require_value,
    values_asked,
)

State = dict[type[Any], dict[str, Any]]
"""The records of each kind, by id."""
Change = Callable[[State], None]
replaced: Any = msgspec.structs.replace


class PlainUnit:
    """A unit of work. A snapshot is a unit that is over from the beginning."""

    def __init__(self, seen: Callable[[], State], apply: Callable[..., Awaitable[None]]) -> None:
        self.is_over = False
        self.changes: list[Change] = []
        self.accruals: dict[tuple[str, str], tuple[Table, Any]] = {}
        self.jobs: list[Job] = []
        self.seen = seen
        self._apply = apply

    def __getitem__(self, kind: type[Any], /) -> "PlainRepository":
        for table in KIT_CATALOGUE:
            if table.kind is kind:
                return PlainRepository(table, self)
        raise TypeError(f"no {kind.__name__}")

    def put(self, change: Change) -> None:
        """Keep it for the commit."""
        if self.is_over:
            raise RuntimeError("the unit is over")
        self.changes.append(change)

    async def commit(self, *, durable: bool = True) -> None:
        if self.is_over:
            raise RuntimeError("the unit is over")
        self.is_over = True
        last = [_accrued(table, record) for _, (table, record) in sorted(self.accruals.items())]
        if self.changes or last:
            await self._apply([*self.changes, *last], self.jobs)


class PlainRepository:
    """The records of one kind."""

    def __init__(self, table: Table, unit: PlainUnit) -> None:
        self._table = table
        self._unit = unit

    async def get(self, record_id: str, /) -> Any:
        return copy.deepcopy(self._all().get(record_id))

    async def find(
        self,
        *,
        order: str = "id",
        limit: int = 1000,
        offset: int = 0,
        quick: bool = False,
        readable: bool = False,
        **criteria: Any,
    ) -> list[Any]:
        if limit < 0 or offset < 0:
            raise ValueError("a limit is zero or more, a page is counted from 1")
        field = order.removeprefix("-")
        require_comparable(self._table.kind, field)
        found = self._matching(criteria)

        def place(record: Any) -> tuple[Any, ...]:
            value = getattr(record, field)
            return value is None, 0 if value is None else plain_of(value), record.id

        found.sort(key=place, reverse=order != field)
        return copy.deepcopy(found[offset : offset + limit])

    async def page(self, number: int, size: int, /, *, order: str = "-id", **criteria: Any) -> list[Any]:
        return await self.find(order=order, limit=size, offset=(number - 1) * size, **criteria)

    async def after(self, last: str, limit: int, criteria: dict[str, Any]) -> list[Any]:
        """The next of a scan."""
        found = sorted((record for record in self._matching(criteria) if record.id > last), key=lambda each: each.id)
        return copy.deepcopy(found[:limit])

    async def total(self, **criteria: Any) -> int:
        return len(self._matching(criteria))

    async def sums(self, field: str, /, *, by: str, **criteria: Any) -> dict[Any, int]:
        if bare_type(self._table.kind, field) not in ((int, False), (Rub, False), (Usdt, False)):
            raise TypeError(f"{field} is no integer")
        bare_type(self._table.kind, by)
        found: dict[Any, int] = {}
        for record in self._matching(criteria):
            group = getattr(record, by)
            found[group] = found.get(group, 0) + plain_of(getattr(record, field))
        return found

    def add(self, record: Any, /) -> Any:
        require_storable(record)
        kept = copy.deepcopy(record)

        def change(state: State) -> None:
            if kept.id in state[self._table.kind]:
                raise Conflict(f"{self._table.name}_id")
            self._set(state, kept)

        self._unit.put(change)
        return self._written(record)

    def save(self, record: Any, /) -> Any:
        return self.change(record)

    def change(self, record: Any, /, **changes: Any) -> Any:
        if self._table.append_only and not (changes and set(changes) <= set(self._table.set_later)):
            raise TypeError("append-only")
        saved = replaced(record, version=record.version + 1, **changes)
        require_storable(saved)
        kept = copy.deepcopy(saved)

        def change(state: State) -> None:
            stored = self._stored(state, record.id, record.version)
            self._set(state, replaced(kept, **{field: getattr(stored, field) for field in self._table.sums}))

        self._unit.put(change)
        return self._written(saved)

    def remove(self, record: Any, /) -> None:
        if self._table.append_only:
            raise TypeError("append-only")

        def change(state: State) -> None:
            stored = self._stored(state, record.id, record.version)
            if any(getattr(stored, field) != getattr(record, field) for field in self._table.sums):
                raise Stale(record.id)
            del state[self._table.kind][record.id]

        self._unit.put(change)

    def increase(self, record_id: str, field: str, by: int, /) -> None:
        if field not in self._table.sums:
            raise TypeError(f"{field} is no sum")

        def change(state: State) -> None:
            stored = self._stored(state, record_id)
            self._set(state, replaced(stored, **{field: _plus(getattr(stored, field), by)}))

        self._unit.put(change)

    def accrue(self, *records: Any) -> None:
        if not self._table.sums or self._table.uniques:
            raise TypeError("no table of sums")
        for record in records:
            if self._unit.is_over:
                raise RuntimeError("the unit is over")
            require_storable(record)
            place = self._table.name, record.id
            known = self._unit.accruals.get(place)
            kept = copy.deepcopy(record) if known is None else _sum(self._table, known[1], record)
            self._unit.accruals[place] = self._table, kept
            self._written(record)

    def _all(self) -> dict[str, Any]:
        return self._unit.seen()[self._table.kind]

    def _matching(self, criteria: dict[str, Any]) -> list[Any]:
        for field, criterion in criteria.items():
            require_comparable(self._table.kind, field)
            for value in values_asked(criterion):
                require_value(value)
        return [
            record
            for record in self._all().values()
            if all(holds(criterion, getattr(record, field)) for field, criterion in criteria.items())
        ]

    def _stored(self, state: State, record_id: str, version: int | None = None) -> Any:
        stored = state[self._table.kind].get(record_id)
        if stored is None or version not in (None, stored.version):
            raise Stale(record_id)
        return stored

    def _set(self, state: State, record: Any) -> None:
        records = state[self._table.kind]
        for rule in self._table.uniques:
            key = _key(rule, record)
            if key is not None and any(_key(rule, other) == key for other in records.values() if other.id != record.id):
                raise Conflict(rule.name)
        records[record.id] = record

    def _written(self, record: Any) -> Any:
        if isinstance(record, Job):
            self._unit.jobs.append(record)
        return record


def _accrued(table: Table, record: Any) -> Change:
    def change(state: State) -> None:
        stored = state[table.kind].get(record.id)
        state[table.kind][record.id] = record if stored is None else _sum(table, stored, record)

    return change


def _sum(table: Table, stored: Any, record: Any) -> Any:
    added = {field: _plus(getattr(stored, field), plain_of(getattr(record, field))) for field in table.sums}
    return replaced(stored, **added)


def _plus(value: Any, by: int) -> Any:
    total = plain_of(value) + by
    require_value(total)
    return total if isinstance(value, int) else type(value)(total)


def _key(rule: Any, record: Any) -> tuple[Any, ...] | None:
    key = tuple(getattr(record, field) for field in rule.fields)
    if None in key or any(getattr(record, field) != value for field, value in rule.where):
        return None
    return key
