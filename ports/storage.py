"""Storage: repositories of records, read immediately and written in one step.

A unit of work is optimistic. It reads committed records, collects its writes, and applies them together at `commit()`.
Each write is guarded by the version that was read and by the unique rules. So no transaction and no lock is held across
an await, and a crash has only two outcomes. A use case that loses a race (Stale, Conflict) reads and decides again.

A record is any frozen msgspec struct with `id: str` and `version: int` that the storage's catalogue declares.
"""

from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Any, Protocol, TypeVar, runtime_checkable

import msgspec

from .jobs import Job


class Record(Protocol):
    """Fields that a repository requires of a record: an id, and the version at which it was read (0 for a new one)."""

    @property
    def id(self) -> str: ...
    @property
    def version(self) -> int: ...


R = TypeVar("R", bound=Record)
"""The record of a repository; `Unit[Payment]` gives a `Repository[Payment]`."""


class AtMost(msgspec.Struct, frozen=True):
    """Criterion: the field is not null and <= value."""

    value: Any


class AtLeast(msgspec.Struct, frozen=True):
    """Criterion: the field is not null and >= value."""

    value: Any


class Below(msgspec.Struct, frozen=True):
    """Criterion: the field is not null and < value."""

    value: Any


class OneOf(msgspec.Struct, frozen=True):
    """Criterion: the field equals one of the values."""

    values: tuple[Any, ...]


class Between(msgspec.Struct, frozen=True):
    """Criterion: low <= field < high; either end may be open (None)."""

    low: Any = None
    high: Any = None


class Repository(Protocol[R]):
    """All records of one kind. Criteria are `field=value` (None matches null) or one of the criterion structs.

    Reads do not see the unit's own uncommitted changes.
    """

    async def get(self, record_id: str, /) -> R | None:
        """Return the record, or None. Raises Unreadable."""
        ...

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
        """Return at most `limit` records that meet all criteria, ordered by the field `order`, after the first
        `offset`.

        `-field` means descending. Ties are broken by id in the same direction, so one order is exactly the reverse of
        the other. `quick`: the caller knows that an index leads to exactly these records, in their order, and that
        there are a few hundred at most. A storage may then read them in one go instead of yielding to other work.

        `readable`: skip a record that cannot be read; the next one fills the page. For work and lists of many objects,
        where one bad record must not block the others; never for sums or for decisions about money. Without it such a
        record raises Unreadable.
        """
        ...

    async def page(
        self, number: int, size: int, /, *, order: str = "-id", skip: int = 0, readable: bool = False, **criteria: Any
    ) -> list[R]:
        """Return page `number` (from 1) of `size` records, after the first `skip`; empty past the end. `readable`: omit
        records that cannot be read, without filling their positions."""
        ...

    async def total(self, **criteria: Any) -> int:
        """Return the number of records that meet all criteria."""
        ...

    async def sums(self, field: str, /, *, by: str, **criteria: Any) -> dict[Any, int]:
        """Return the sum of an integer field (money in its smallest unit) over all records that meet the criteria, for
        each value of the field `by` that occurs among them."""
        ...

    def add(self, record: R, /) -> R:
        """Write a new record. Commit raises Conflict when it violates the id or another unique rule."""
        ...

    def save(self, record: R, /) -> R:
        """Write a changed record, and return it as it will be stored (version + 1).

        Commit raises Stale when the stored version differs from that of `record`.
        """
        ...

    def change(self, record: R, /, **changes: Any) -> R:
        """Save only these fields of a record; `record` must otherwise equal the stored one.

        The effect is that of `save`. Use it on hot paths: a storage can skip unchanged columns and above all their
        indexes (SQLite rewrites the index of every column that a statement names).
        """
        ...

    def remove(self, record: R, /) -> None:
        """Delete a record. Commit raises Stale when it changed, sums included, or no longer exists."""
        ...

    def increase(self, record_id: str, field: str, by: int, /) -> None:
        """Add `by` to an integer field, without reading and without changing the version. Counters that every request
        updates commute, and so never go stale. Commit raises Stale when there is no such record."""
        ...

    def accrue(self, *records: R) -> None:
        """Add each record's sums to those of the stored record with its id; insert the record if there is none.

        For counters that every request updates and whose rows are created on first use: it commutes, needs no reading,
        and loses no race. A unit writes all accruals after its other writes, in the order of ids, so units that update
        the same rows lock them last and in one order, and never deadlock.
        """
        ...


class Unit(Protocol):
    """One unit of work: reads immediately, writes at commit. Leaving the block without `commit()` writes nothing."""

    def __getitem__(self, kind: type[R], /) -> Repository[R]: ...

    def commit(self, *, durable: bool = True) -> Coroutine[Any, Any, None]:
        """Apply all writes, in the order they were made, or none.

        When it returns, the writes are on disk. Jobs that were added or saved then wake the workers. A unit commits
        once.

        With `durable=False`, when it returns, every reader sees the writes, in other processes too; they reach the disk
        with the next durable unit, whoever commits it. Until then a failure of the machine or of the database server
        loses the unit as a whole, together with all later units that were not durable; never one that a durable unit
        followed. A crash of the process alone loses nothing. Use it for data that a party outside also has, and that we
        will query again.

        Raises: Stale, Conflict; Unavailable when the storage did not answer (the outcome may then be unknown: read).
        """
        ...


class Snapshot(Protocol):
    """Reads of several statements that must agree with one another. Its repositories refuse writes."""

    def __getitem__(self, kind: type[R], /) -> Repository[R]: ...


class Storage(Protocol):
    """The port of all durable data.

    Methods on the path of every request are declared as functions that return a coroutine, so that a storage that only
    forwards adds no coroutine of its own. An `async def` is such a function.
    """

    def unit(self) -> AbstractAsyncContextManager[Unit]:
        """Return a new unit of work."""
        ...

    def get(self, kind: type[R], record_id: str, /) -> Coroutine[Any, Any, R | None]:
        """Return the present record, or None: a read outside of any unit, with the result of a unit's
        `Repository.get`."""
        ...

    def snapshot(self) -> AbstractAsyncContextManager[Snapshot]:
        """Return a consistent view: all reads inside see the storage as it was at the first of them."""
        ...

    def recent(self, kind: type[R], record_id: str, /, *, within: float = 0.0) -> Coroutine[Any, Any, R | None]:
        """Return the present record. Changes by other processes may be missing for up to `within` seconds; changes by
        this process are visible immediately.

        For records that every request reads and that change once in days; never save a record read here. A storage that
        is notified of all changes answers from memory even if `within` is 0.
        """
        ...

    async def claim(
        self, limit: int, lease: float, *, kind: str | None = None, but_kind: str | None = None
    ) -> list[Job]:
        """Lease at most `limit` due jobs for `lease` seconds, oldest due first; atomic for many workers.

        `kind` selects only jobs of this kind, `but_kind` excludes it. The id tells the kind, since it begins with the
        kind and a colon; so the search is short however many other jobs are due.

        Due means `due <= now()` and no living lease, judged by the storage's clock. Claimed jobs are returned in their
        new state: attempts and version one higher, `leased_until` set.
        """
        ...

    async def renew(self, jobs: Sequence[Job], lease: float) -> None:
        """Extend the leases of claimed jobs to `lease` seconds from now, in one step.

        `jobs` are the records that `claim` returned. A job that changed since is skipped: its own work saved it, or
        another worker claimed it. No version changes, so renewing never makes a unit stale; the version also tells a
        worker whether it still owns the job.
        """
        ...

    async def next_due(self) -> datetime | None:
        """Return when the earliest job without a living lease is or was due; None when there is none."""
        ...

    async def now(self) -> datetime:
        """Return the time of the storage's clock, which decides about leases and due times."""
        ...

    def scan(
        self, kind: type[R], *, batch: int = 1000, readable: bool = False, **criteria: Any
    ) -> AsyncIterator[Sequence[R]]:
        """Yield all records that meet the criteria, in id order, in batches, with constant memory. Not one consistent
        view. `readable`: skip records that cannot be read, as `Repository.find` does."""
        ...

    async def check(self) -> None:
        """Prove that the storage reads and writes (for health). Raises Unavailable with the cause."""
        ...

    async def close(self) -> None:
        """Finish pending writes and close every connection."""
        ...


@runtime_checkable
class Losable(Protocol):
    """A storage that can disappear under the process while its calls still succeed. Optional."""

    def lost(self) -> str | None:
        """Return why new writes would be lost, for operators; None while the storage is intact. A loss is permanent:
        every other call then raises Unavailable, and only a restart can recover. Cheap, so callers may check often."""
        ...


@runtime_checkable
class Located(Protocol):
    """A storage that knows which database its connections reach. Optional."""

    def location(self) -> str | None:
        """Return the location that the newest connection reached (`Beside.place`); None if it is unknown, and empty
        while this process has not found all of its commits there. Cheap, so callers may check often."""
        ...


@runtime_checkable
class Clocked(Protocol):
    """A storage that can tell whether it judges due times and leases by the process's own clock. Others use another
    clock."""

    @property
    def by_own_clock(self) -> bool:
        """Whether it uses the process's clock. If that clock is set back, the due times must be corrected
        (core/usecases/clock_steps.py)."""
        ...


@runtime_checkable
class Queueing(Protocol):
    """A storage in which units that lose races can queue for a fair lock. Optional."""

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Hold the fair lock: one task at a time, first come, first served. A unit that lost a race retries inside, so
        that many units that update one record proceed one after the other. Not reentrant."""
        ...
