"""The storage in memory: for embedding without a database, for demos and for simulations.

It holds the same rows as the databases do and judges them by the same plain values, so that what passes here passes
there. All of it happens on one event loop; nothing is kept when the process ends.
"""

import asyncio
import heapq
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime
from typing import Any

from ....ports.clock import Clock
from ....ports.faults import Conflict, Stale, Unavailable
from ....ports.jobs import Job
from ....ports.storage import R, Snapshot, Unit
from ..table.catalogue import CATALOGUE, Table
from ..table.codec import Row, integer, microseconds, moment
from ..table.criteria import Condition, Query, Relation, conditions
from ..table.table_map import TableMap, TableMaps, keep, table_map_of
from ..table.unit import Kick, WorkUnit, kick_safely, lease_microseconds, lone_read, no_kick, refuse_both, snapshot_over
from ..table.writes import Accrue, Add, Increase, Pending, Remove, Save, Write, added

_TESTS: dict[Relation, Callable[[Any, Any], bool]] = {
    Relation.EQUAL: lambda value, asked: value is not None and value == asked,
    Relation.AT_MOST: lambda value, asked: value is not None and value <= asked,
    Relation.AT_LEAST: lambda value, asked: value is not None and value >= asked,
    Relation.BELOW: lambda value, asked: value is not None and value < asked,
    Relation.ONE_OF: lambda value, asked: value is not None and value in asked,
    Relation.NULL: lambda value, _: value is None,
    Relation.ONE_OF_OR_NULL: lambda value, asked: value is None or value in asked,
}

Rows = dict[str, Row]

_EVER = 2**63 - 1
"""No job is due later, in microseconds."""


class _Rows:
    """The rows of one table. A change while `shared` with a snapshot copies them first."""

    def __init__(self, mapped: TableMap[Any]) -> None:
        self.mapped = mapped
        self.rows: Rows = {}
        self.taken: list[dict[tuple[Any, ...], str]] = [{} for _ in mapped.rules]
        """For every unique rule, the keys that are taken, and by which record."""
        self.shared = False

    def put(self, record_id: str, row: Row | None) -> None:
        """Set a row, or take it away. Raises Conflict, and then nothing has changed."""
        old = self.rows.get(record_id)
        keys = [(rule.key(old) if old else None, rule.key(row) if row else None) for rule in self.mapped.rules]
        for rule, taken, (_, key) in zip(self.mapped.rules, self.taken, keys, strict=True):
            if key is not None and taken.get(key, record_id) != record_id:
                raise Conflict(rule.name)
        for taken, (before, key) in zip(self.taken, keys, strict=True):
            if before is not None:
                del taken[before]
            if key is not None:
                taken[key] = record_id
        if self.shared:
            self.rows, self.shared = dict(self.rows), False
        if row is None:
            del self.rows[record_id]
        else:
            self.rows[record_id] = row

    def at(self, record_id: str, version: int | None) -> Row:
        """The row, when it has this version (None: any). Raises Stale."""
        row = self.rows.get(record_id)
        if row is None or (version is not None and row[self.mapped.codec.index["version"]] != version):
            raise Stale(f"{self.mapped.name} {record_id} changed since it was read, or is gone")
        return row

    def apply(self, write: Write) -> None:
        """Carry out one write. Raises Conflict or Stale, and then nothing has changed."""
        match write:
            case Add(_, record_id, row):
                if record_id in self.rows:
                    raise Conflict(self.mapped.id_rule)
                self.put(record_id, row)
            case Save(_, record_id, version, row, _):
                stored = self.at(record_id, version)
                for index in self.mapped.fixed:
                    if stored[index] != row[index]:
                        raise TypeError(f"{self.mapped.name}.{self.mapped.codec.names[index]} is declared fixed")
                self.put(record_id, [stored[n] if n in self.mapped.sums else value for n, value in enumerate(row)])
            case Remove(_, record_id, version, sums):
                row = self.at(record_id, version)
                if sums != tuple(row[index] for index in self.mapped.sums_in_order):
                    raise Stale(f"{self.mapped.name} {record_id} changed since it was read")
                self.put(record_id, None)
            case Increase(_, record_id, field, by):
                index = self.mapped.codec.index[field]
                changed = list(self.at(record_id, None))
                changed[index] = integer(changed[index] + by)
                self.put(record_id, changed)
            case Accrue(_, record_id, row):
                present = self.rows.get(record_id)
                self.put(record_id, row if present is None else added(write, present))


class _Reader:
    """Reads of the rows as `rows_of` gives them: those of now, or those of a snapshot."""

    def __init__(self, rows_of: Callable[[str], Rows]) -> None:
        self._rows_of = rows_of

    async def get(self, mapped: TableMap[R], record_id: str) -> R | None:
        row = self._rows_of(mapped.name).get(record_id)
        return None if row is None else mapped.codec.decode(row)

    async def find(self, mapped: TableMap[R], asked: Query) -> list[R]:
        index, number = mapped.codec.index[asked.order], mapped.codec.index["id"]
        rows = _matching(self._rows_of(mapped.name), mapped, asked.conditions)
        # A null is the largest value (criteria.py).
        rows.sort(
            key=lambda row: (row[index] is None, 0 if row[index] is None else row[index], row[number]),
            reverse=asked.descending,
        )
        return [mapped.codec.decode(row) for row in rows[asked.offset : asked.offset + asked.limit]]

    async def total(self, mapped: TableMap[R], asked: tuple[Condition, ...]) -> int:
        return len(_matching(self._rows_of(mapped.name), mapped, asked))

    async def sums(self, mapped: TableMap[R], field: str, by: str, asked: tuple[Condition, ...]) -> dict[Any, int]:
        index, group, value_of = mapped.codec.index[field], mapped.codec.index[by], mapped.codec.column(by).value_of
        found: dict[Any, int] = {}
        for row in _matching(self._rows_of(mapped.name), mapped, asked):
            found[row[group]] = found.get(row[group], 0) + row[index]
        return {value_of(plain): amount for plain, amount in found.items()}


def _matching(rows: Rows, mapped: TableMap[Any], asked: tuple[Condition, ...]) -> list[Row]:
    """The rows for which all conditions hold. Equality, which most ask for, calls nothing for a row."""
    found = list(rows.values())
    for each in asked:
        index, value, test = mapped.codec.index[each.field], each.value, _TESTS[each.relation]
        if each.relation is Relation.EQUAL:  # to a value; null has a relation of its own
            found = [row for row in found if row[index] == value]
        else:
            found = [row for row in found if test(row[index], value)]
    return found


class MemoryStorage:
    """A Storage (ports/storage.py) in memory. Leases and due times are judged by `clock`. Each claim looks at all jobs,
    which is little beside the work for some thousands of them."""

    def __init__(self, clock: Clock, kick: Kick = no_kick, *, catalogue: Iterable[Table] = CATALOGUE) -> None:
        self._clock = clock
        self._kick = kick
        self._table_maps: TableMaps = keep(catalogue)
        self._tables = {mapped.name: _Rows(mapped) for mapped in self._table_maps.values()}
        self._reader = _Reader(self._rows_of)
        self._jobs: TableMap[Job] = self._table_maps[Job]
        self._closed = False

    def unit(self) -> AbstractAsyncContextManager[Unit]:
        """A new unit of work."""
        return WorkUnit(self._table_maps, self._reader, Pending(), self._apply)

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Snapshot]:
        """Reads as of the first one: the tables are shared then, and whoever writes to one copies it first."""
        seen: dict[str, Rows] = {}

        def rows_of(name: str) -> Rows:
            self._refuse_when_closed()
            if not seen:
                for table in self._tables.values():
                    table.shared = True
                    seen[table.mapped.name] = table.rows
            return seen[name]

        yield snapshot_over(self._table_maps, _Reader(rows_of))

    def get(self, kind: type[R], record_id: str, /) -> Coroutine[Any, Any, R | None]:
        """The record as it stands."""
        return lone_read(self._table_maps, self._reader, kind, record_id)

    async def recent(self, kind: type[R], record_id: str, /, *, within: float = 0.0) -> R | None:  # noqa: ARG002
        """The record as it stands."""
        return await self._reader.get(table_map_of(self._table_maps, kind), record_id)

    @property
    def by_own_clock(self) -> bool:
        """As the port Clocked has it."""
        return True

    async def claim(
        self, limit: int, lease: float, *, kind: str | None = None, but_kind: str | None = None
    ) -> list[Job]:
        """Take due jobs, the oldest due first."""
        refuse_both(kind, but_kind)
        table, index = self._tables[self._jobs.name], self._jobs.codec.index
        self._refuse_when_closed()
        now, span = microseconds(self._clock.now()), lease_microseconds(lease)
        claimed: list[Job] = []
        for _, job_id in heapq.nsmallest(limit, self._free(now, now, kind, but_kind)):
            row = list(table.rows[job_id])
            row[index["attempts"]] += 1
            row[index["version"]] += 1
            row[index["leased_until"]] = now + span
            table.put(job_id, row)
            claimed.append(self._jobs.codec.decode(row))
        return claimed

    async def renew(self, jobs: Sequence[Job], lease: float) -> None:
        """Make leases last longer."""
        table, index = self._tables[self._jobs.name], self._jobs.codec.index
        self._refuse_when_closed()
        until = microseconds(self._clock.now()) + lease_microseconds(lease)
        for job in jobs:
            row = table.rows.get(job.id)
            if row is not None and row[index["version"]] == job.version and row[index["leased_until"]] is not None:
                mapped = list(row)
                mapped[index["leased_until"]] = until
                table.put(job.id, mapped)

    async def next_due(self) -> datetime | None:
        """When the earliest job without a living lease is due."""
        found = min(self._free(microseconds(self._clock.now()), _EVER), default=None)
        return None if found is None else moment(found[0])

    def _free(
        self, now: int, until: int, kind: str | None = None, but_kind: str | None = None
    ) -> list[tuple[int, str]]:
        """The jobs due until then that are under no living lease: when each is due, and its id, which begins with the
        kind. Asked for each claim of each worker, and most jobs are not due: that is looked at first."""
        due, lease = (self._jobs.codec.index[name] for name in ("due", "leased_until"))
        wanted, other = f"{kind}:", f"{but_kind}:"
        return [
            (row[due], job_id)
            for job_id, row in self._rows_of(self._jobs.name).items()
            if row[due] <= until
            and (row[lease] is None or row[lease] <= now)
            and (kind is None or job_id.startswith(wanted))
            and (but_kind is None or not job_id.startswith(other))
        ]

    async def now(self) -> datetime:
        """The clock given."""
        return self._clock.now()

    async def scan(
        self,
        kind: type[R],
        *,
        batch: int = 1000,
        readable: bool = False,  # noqa: ARG002 - all is, that was never written elsewhere
        **criteria: Any,
    ) -> AsyncIterator[Sequence[R]]:
        """All records that meet the criteria, in id order; one that goes or changes on the way is judged as it is
        when its batch comes."""
        if batch < 1:
            raise ValueError("a batch holds at least one record")
        mapped = table_map_of(self._table_maps, kind)
        asked = conditions(mapped.codec, criteria)
        ids = sorted(self._rows_of(mapped.name))
        found: list[R] = []
        for record_id in ids:
            row = self._rows_of(mapped.name).get(record_id)
            if row is not None and _matching({record_id: row}, mapped, asked):
                found.append(mapped.codec.decode(row))
            if len(found) == batch:
                yield found
                found = []
        if found:
            yield found

    async def check(self) -> None:
        """Memory always reads and writes, until it is closed."""
        self._refuse_when_closed()

    async def close(self) -> None:
        """Take no more work."""
        self._closed = True

    def _refuse_when_closed(self) -> None:
        if self._closed:
            raise Unavailable("the storage is closed")

    def _rows_of(self, name: str) -> Rows:
        self._refuse_when_closed()
        return self._tables[name].rows

    async def _apply(self, pending: Pending) -> None:
        # One turn for the others, as a real commit gives them: else no unit would ever lose a race in memory, and
        # use cases would be tried without the very thing that units are for.
        await asyncio.sleep(0)
        self._refuse_when_closed()
        undo: list[tuple[_Rows, str, Row | None]] = []
        try:
            for write in pending.all_writes():
                table = self._tables[write.mapped.name]
                before = table.rows.get(write.id)
                table.apply(write)
                undo.append((table, write.id, before))
        except BaseException:
            for table, record_id, before in reversed(undo):
                table.put(record_id, before)
            raise
        await kick_safely(self._kick, pending.jobs)
