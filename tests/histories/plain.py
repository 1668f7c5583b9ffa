"""A storage of its own making, as a package from elsewhere would bring one: written from the port alone
(ports/storage.py), over records as they are, with none of the tables, codecs and statements that ours share. What all
of ours do alike and wrong, it does not do. Slow, and of one process.

`open_plain` is what the entry point `plain` of `cambist.storages` names (places.py).
"""

import copy
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from enum import Enum
from functools import cache
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec

from cambist.adapters.storage.table.catalogue import Table
from cambist.core.domain.money import Rub, Usdt
from cambist.frontends.conformance.storage.kit import KIT_CATALOGUE
from cambist.ports.clock import Clock
from cambist.ports.faults import Conflict, Stale, Unavailable
from cambist.ports.jobs import Job
from cambist.ports.storage import AtLeast, AtMost, Below, Between, OneOf, Storage
from cambist.ports.tools import Kick, StorageTools

State = dict[type[Any], dict[str, Any]]
"""The records of each kind, by id."""
Change = Callable[[State], None]
replaced: Any = msgspec.structs.replace


async def open_plain(tools: StorageTools) -> Storage:
    """A storage for `database_url = "plain://anything"`."""
    return PlainStorage(tools.clock, tools.kick)


class PlainStorage:
    """Fills cambist.ports.Storage."""

    def __init__(self, clock: Clock, kick: Kick) -> None:
        self._clock = clock
        self._kick = kick
        self._state: State = {table.kind: {} for table in KIT_CATALOGUE}
        self._closed = False

    @property
    def by_own_clock(self) -> bool:
        return True

    def seen(self) -> State:
        """What is committed. Whoever commits puts another in its place."""
        if self._closed:
            raise Unavailable("closed")
        return self._state

    async def apply(self, changes: Sequence[Change], jobs: Sequence[Job]) -> None:
        """Make the changes in their order, or none."""
        state = {kind: dict(records) for kind, records in self.seen().items()}
        for change in changes:
            change(state)
        self._state = state
        if jobs:
            await self._kick(jobs)

    @asynccontextmanager
    async def unit(self) -> AsyncIterator["PlainUnit"]:
        unit = PlainUnit(self.seen, self.apply)
        yield unit
        unit.is_over = True

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator["PlainUnit"]:
        taken: list[State] = []

        def seen() -> State:
            if not taken:
                taken.append(self.seen())
            return taken[0]

        unit = PlainUnit(seen, self.apply)
        unit.is_over = True
        yield unit

    async def get(self, kind: type[Any], record_id: str, /) -> Any:
        return await PlainUnit(self.seen, self.apply)[kind].get(record_id)

    async def recent(self, kind: type[Any], record_id: str, /, *, within: float = 0.0) -> Any:
        return await self.get(kind, record_id)

    async def claim(
        self, limit: int, lease: float, *, kind: str | None = None, but_kind: str | None = None
    ) -> list[Job]:
        if lease <= 0 or (kind is not None and but_kind is not None):
            raise ValueError("a lease is longer than nothing; either one kind or all but one")
        now = self._clock.now()
        due = [job for job in self._free() if job.due <= now and _is_of(job, kind, but_kind)]
        taken = []
        for job in sorted(due, key=lambda job: (job.due, job.id))[:limit]:
            held = {"attempts": job.attempts + 1, "version": job.version + 1}
            taken.append(replaced(job, leased_until=now + timedelta(seconds=lease), **held))
        self._put(taken)
        return taken

    async def renew(self, jobs: Sequence[Job], lease: float) -> None:
        if lease <= 0:
            raise ValueError("a lease is longer than nothing")
        until = self._clock.now() + timedelta(seconds=lease)
        ours = [self.seen()[Job].get(job.id) for job in jobs if self._version(job.id) == job.version]
        self._put([replaced(job, leased_until=until) for job in ours if job and job.leased_until is not None])

    async def next_due(self) -> datetime | None:
        return min((job.due for job in self._free()), default=None)

    async def now(self) -> datetime:
        return self._clock.now()

    async def scan(
        self,
        kind: type[Any],
        *,
        batch: int = 1000,
        readable: bool = False,
        **criteria: Any,
    ) -> AsyncIterator[Sequence[Any]]:
        if batch < 1:
            raise ValueError("a batch holds one at least")
        after = ""
        while found := await PlainUnit(self.seen, self.apply)[kind].after(after, batch, criteria):
            yield found
            after = found[-1].id

    async def check(self) -> None:
        self.seen()

    async def close(self) -> None:
        self._closed = True

    def _free(self) -> list[Job]:
        now = self._clock.now()
        return [job for job in self.seen()[Job].values() if job.leased_until is None or job.leased_until <= now]

    def _version(self, job_id: str) -> int | None:
        known = self.seen()[Job].get(job_id)
        return None if known is None else known.version

    def _put(self, jobs: Sequence[Job]) -> None:
        self._state = {**self._state, Job: {**self._state[Job], **{job.id: job for job in jobs}}}


def _is_of(job: Job, kind: str | None, but_kind: str | None) -> bool:
    of, colon, _ = job.id.partition(":")
    return (kind is None or (colon != "" and of == kind)) and (but_kind is None or colon == "" or of != but_kind)


class PlainUnit:
    """A unit; one that is over from the beginning is a snapshot."""

    def __init__(self, seen: Callable[[], State], apply: Callable[..., Awaitable[None]]) -> None:
        self.is_over = False
        self.changes: list[Change] = []
        self.accruals: dict[tuple[str, str], tuple[Table, Any]] = {}
        self.jobs: list[Job] = []
        self.seen = seen
        self._apply = apply

    def __getitem__(self, kind: type[Any], /) -> "PlainShelf":
        for table in KIT_CATALOGUE:
            if table.kind is kind:
                return PlainShelf(table, self)
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


class PlainShelf:
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
        _comparable(self._table.kind, field)
        found = self._matching(criteria)

        def place(record: Any) -> tuple[Any, ...]:
            value = getattr(record, field)
            return value is None, 0 if value is None else _plain(value), record.id

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
        if _bare(self._table.kind, field) not in ((int, False), (Rub, False), (Usdt, False)):
            raise TypeError(f"{field} is no integer")
        _bare(self._table.kind, by)
        found: dict[Any, int] = {}
        for record in self._matching(criteria):
            group = getattr(record, by)
            found[group] = found.get(group, 0) + _plain(getattr(record, field))
        return found

    def add(self, record: Any, /) -> Any:
        _require_storable(record)
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
        _require_storable(saved)
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
            _require_storable(record)
            place = self._table.name, record.id
            known = self._unit.accruals.get(place)
            kept = copy.deepcopy(record) if known is None else _sum(self._table, known[1], record)
            self._unit.accruals[place] = self._table, kept
            self._written(record)

    def _all(self) -> dict[str, Any]:
        return self._unit.seen()[self._table.kind]

    def _matching(self, criteria: dict[str, Any]) -> list[Any]:
        for field, criterion in criteria.items():
            _comparable(self._table.kind, field)
            for value in _asked(criterion):
                _require_value(value)
        return [
            record
            for record in self._all().values()
            if all(_holds(criterion, getattr(record, field)) for field, criterion in criteria.items())
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
    added = {field: _plus(getattr(stored, field), _plain(getattr(record, field))) for field in table.sums}
    return replaced(stored, **added)


def _plus(value: Any, by: int) -> Any:
    total = _plain(value) + by
    _require_value(total)
    return total if isinstance(value, int) else type(value)(total)


def _key(rule: Any, record: Any) -> tuple[Any, ...] | None:
    key = tuple(getattr(record, field) for field in rule.fields)
    if None in key or any(getattr(record, field) != value for field, value in rule.where):
        return None
    return key


def _plain(value: Any) -> Any:
    if isinstance(value, Rub):
        return value.kopecks
    if isinstance(value, Usdt):
        return value.units
    return value.value if isinstance(value, Enum) else value


def _asked(criterion: Any) -> tuple[Any, ...]:
    match criterion:
        case AtMost(value) | AtLeast(value) | Below(value):
            return (value,)
        case OneOf(values):
            return values
        case Between(low, high):
            return (low, high)
        case _:
            return (criterion,)


def _holds(criterion: Any, value: Any) -> bool:
    if isinstance(criterion, OneOf):
        return any(_holds(each, value) for each in criterion.values)
    if criterion is None or criterion == Between():
        return value is None or criterion is not None
    if value is None:
        return False
    found = _plain(value)
    match criterion:
        case AtMost(most):
            return bool(found <= _plain(most))
        case AtLeast(least):
            return bool(found >= _plain(least))
        case Below(end):
            return bool(found < _plain(end))
        case Between(low, high):
            return (low is None or found >= _plain(low)) and (high is None or found < _plain(high))
        case _:
            return bool(found == _plain(criterion))


@cache
def _bare(kind: type[Any], field: str) -> tuple[Any, bool]:
    """The type of a field without null, and whether it may be null. Raises: TypeError, where there is none."""
    hint = get_type_hints(kind).get(field)
    if hint is None:
        raise TypeError(f"no field {field}")
    if get_origin(hint) in (Union, UnionType):
        parts = [part for part in get_args(hint) if part is not type(None)]
        return parts[0], len(parts) < len(get_args(hint))
    return hint, False


def _comparable(kind: type[Any], field: str) -> None:
    bare, _ = _bare(kind, field)
    is_structure = get_origin(bare) is not None or bare is dict or issubclass(bare, msgspec.Struct)
    if is_structure and bare not in (Rub, Usdt):
        raise TypeError(f"{field} holds a structure")


def _require_storable(record: Any) -> None:
    for field in record.__struct_fields__:
        _require_value(getattr(record, field))


def _require_value(value: Any) -> None:
    plain = _plain(value)
    if isinstance(plain, str):
        plain.encode()
        if "\0" in plain:
            raise ValueError("NUL")
    elif isinstance(plain, int) and not -(2**63) <= plain < 2**63:
        raise ValueError("beyond 64 bits")
    elif isinstance(plain, datetime):
        if plain.tzinfo is None:
            raise ValueError("no zone")
    elif isinstance(plain, (msgspec.Struct, dict, list, tuple)):
        msgspec.json.encode(plain)  # refuses half a surrogate pair, wherever it is
