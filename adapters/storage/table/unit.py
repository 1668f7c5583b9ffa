"""Units and repositories for every storage: a Reader serves the reads, and writes wait until commit.

Memory, SQLite and Postgres differ in their Reader, and in the way they apply a unit's writes. Every request creates
a dozen of these objects, so they are structs: a class with an `__init__` takes six times as long to create.
"""

import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from types import TracebackType
from typing import Any, Generic, Protocol, Self

import msgspec

from ....ports.jobs import Job
from ....ports.storage import R, Repository
from .codec import integer, is_possible, text
from .criteria import Condition, Query, Unread, conditions, query
from .table_map import TableMap, TableMaps, table_map_of
from .writes import Accrue, Add, Increase, Pending, Remove, Save

WakeUp = Callable[[Sequence[Job]], Awaitable[None]]
"""Function that receives committed jobs, to wake workers (Queue.wake_up)."""

_log = logging.getLogger("cambist.storage")


def lease_microseconds(lease: float) -> int:
    """Return a lease in microseconds. Raises ValueError if it would have ended already."""
    span = round(lease * 1_000_000)
    if span <= 0:
        raise ValueError("a lease is longer than nothing")
    return span


def refuse_both(kind: str | None, but_kind: str | None) -> None:
    """Raise ValueError if both `kind` and `but_kind` are given: a bug of the caller."""
    if kind is not None and but_kind is not None:
        raise ValueError("either one kind, or all but one")


class Reader(Protocol):
    """Reads of a storage, or of one snapshot of it."""

    async def get(self, mapped: TableMap[R], record_id: str) -> R | None: ...

    async def find(self, mapped: TableMap[R], asked: Query) -> list[R]: ...

    async def total(self, mapped: TableMap[R], asked: tuple[Condition, ...]) -> int: ...

    async def sums(self, mapped: TableMap[R], field: str, by: str, asked: tuple[Condition, ...]) -> dict[Any, int]: ...


class BoundRepository(msgspec.Struct, Generic[R], eq=False):
    """Repository (ports/storage.py) over a reader."""

    _table_map: TableMap[R]
    _reader: Reader
    _pending: Pending

    async def get(self, record_id: str, /) -> R | None:
        """Return the record; None also for an id that no record could have, because ids may come from clients."""
        return await self._reader.get(self._table_map, record_id) if is_possible(record_id) else None

    async def find(
        self,
        *,
        order: str = "id",
        limit: int = 1000,
        offset: int = 0,
        quick: bool = False,
        readable: bool = False,
        **criteria: Any,
    ) -> list[R]:
        """Return at most `limit` records that meet all criteria.

        Raises ValueError for a value that no record could have.
        """
        unread = Unread.NEXT if readable else Unread.RAISE
        asked = query(self._table_map.codec, criteria, order, limit, offset, quick=quick, unread=unread)
        return await self._reader.find(self._table_map, asked)

    async def page(
        self, number: int, size: int, /, *, order: str = "-id", skip: int = 0, readable: bool = False, **criteria: Any
    ) -> list[R]:
        """Return page `number` (from 1) of `size` records, after the first `skip`."""
        unread, offset = Unread.LEAVE_OUT if readable else Unread.RAISE, skip + (number - 1) * size
        asked = query(self._table_map.codec, criteria, order, size, offset, unread=unread)
        return await self._reader.find(self._table_map, asked)

    async def total(self, **criteria: Any) -> int:
        """Return how many records meet all criteria."""
        return await self._reader.total(self._table_map, conditions(self._table_map.codec, criteria))

    async def sums(self, field: str, /, *, by: str, **criteria: Any) -> dict[Any, int]:
        """Return the sums of a field for each value of another. Raises TypeError for a field that is not an integer."""
        codec = self._table_map.codec
        if not codec.column(field).summable:
            raise TypeError(f"{self._table_map.name}.{field} is no integer that can be added up")
        return await self._reader.sums(self._table_map, field, codec.column(by).name, conditions(codec, criteria))

    def add(self, record: R, /) -> R:
        """Write a new record. Raises ValueError for a value that cannot be stored."""
        self._pending.put(Add(self._table_map, record.id, self._table_map.codec.encode(record)))
        return self._written(record) if self._table_map.of_jobs else record

    def save(self, record: R, /) -> R:
        """Write a changed record. Raises ValueError for a value that cannot be stored."""
        return self.change(record)

    def change(self, record: R, /, **changes: Any) -> R:
        """Write a record with these fields changed. Raises ValueError for a value that cannot be stored."""
        if not changes or not set(changes) <= set(self._table_map.table.set_later):
            self._refuse_to_change()
        saved: R = msgspec.structs.replace(record, version=record.version + 1, **changes)  # type: ignore[type-var]  # see Codec
        row = self._table_map.codec.encode(saved)
        self._pending.put(Save(self._table_map, record.id, record.version, row, tuple(changes)))
        return self._written(saved) if self._table_map.of_jobs else saved

    def remove(self, record: R, /) -> None:
        """Delete a record.

        If its sums increased since it was read, the commit raises Stale, because the increase would be lost.
        """
        self._refuse_to_change()
        row = self._table_map.codec.encode(record) if self._table_map.sums else ()
        sums = tuple(row[key] for key in self._table_map.sums_in_order)
        self._pending.put(Remove(self._table_map, text(record.id), record.version, sums))

    def increase(self, record_id: str, field: str, by: int, /) -> None:
        """Add `by` to a field that the catalogue declares a sum. Money counts in its smallest unit.

        Raises TypeError for any other field, because a save would undo the increase. If the sum would exceed 64
        bits, commit raises ValueError.
        """
        if field not in self._table_map.table.sums:
            raise TypeError(f"{self._table_map.name}.{field} is not declared a sum in the catalogue")
        self._pending.put(Increase(self._table_map, text(record_id), field, integer(by)))

    def accrue(self, *records: R) -> None:
        """Add the records' sums to the stored ones.

        Raises TypeError for a table without sums, or with a unique rule, which could refuse a write that must never
        fail; ValueError for a value that cannot be stored. If a sum would exceed 64 bits, commit raises ValueError.
        """
        if not self._table_map.sums or self._table_map.rules:
            raise TypeError(f"{self._table_map.name} is not declared a table of sums in the catalogue")
        for record in records:
            self._pending.accrue(Accrue(self._table_map, record.id, self._table_map.codec.encode(record)))
            if self._table_map.of_jobs:
                self._written(record)

    def _refuse_to_change(self) -> None:
        if self._table_map.table.append_only:
            raise TypeError(f"{self._table_map.name} is declared append-only in the catalogue")

    def _written(self, record: R) -> R:
        if isinstance(record, Job):
            self._pending.jobs.append(record)
        return record


class View(msgspec.Struct, eq=False):
    """Repositories over one reader. It is a Snapshot unless `pending` accepts writes."""

    _table_maps: TableMaps
    _reader: Reader
    _pending: Pending

    def __getitem__(self, kind: type[R], /) -> Repository[R]:
        """Return the repository of a record type. Raises TypeError for a type that the catalogue does not declare."""
        return BoundRepository(table_map_of(self._table_maps, kind), self._reader, self._pending)


_NO_WRITES = Pending(closed="a snapshot only reads")


def snapshot_over(table_maps: TableMaps, reader: Reader) -> View:
    """Return repositories that refuse every write."""
    return View(table_maps, reader, _NO_WRITES)


def lone_read(table_maps: TableMaps, reader: Reader, kind: type[R], record_id: str) -> Coroutine[Any, Any, R | None]:
    """Return a record by id, without a unit."""
    return BoundRepository(table_map_of(table_maps, kind), reader, _NO_WRITES).get(record_id)


class WorkUnit(View, eq=False):
    """Unit (ports/storage.py) that passes its writes to `apply` at commit. It is its own context manager."""

    _apply: Callable[[Pending], Coroutine[Any, Any, None]]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pending.closed = self._pending.closed or "the unit is over"

    def commit(self, *, durable: bool = True) -> Coroutine[Any, Any, None]:
        """Apply all writes or none. Raises RuntimeError if the unit was committed or left before."""
        if self._pending.closed:
            raise RuntimeError(self._pending.closed)
        self._pending.closed = "the unit was committed"
        self._pending.durable = durable
        if self._pending.writes or self._pending.accruals:
            return self._apply(self._pending)
        return _nothing()


async def _nothing() -> None:
    """Commit a unit that wrote nothing."""


async def wake_up_safely(wake_up: WakeUp, jobs: Sequence[Job]) -> None:
    """Wake workers for committed jobs.

    A wake-up that fails is only logged, because the commit stands and the sweep finds the jobs.
    """
    if not jobs:
        return
    try:
        await wake_up(jobs)
    except Exception:  # noqa: BLE001 - whatever a queue raises, the unit is on disk and its caller must learn so
        _log.exception("a wake-up failed; the jobs wait for the sweep")


async def no_wake_up(jobs: Sequence[Job], /) -> None:
    """Do nothing, because no worker waits for jobs."""
