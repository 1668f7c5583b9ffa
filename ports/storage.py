"""Storage: shelves of records, read at once and written in one step.

A unit is optimistic. It reads committed records, keeps its writes, and applies them at `commit()` all together, each
guarded by the version it was read at and by the unique rules. So no transaction and no lock is held across an await,
and a crash has only two outcomes. The use case that loses (Stale, Conflict) reads again and decides again.

A record is any frozen msgspec struct with `id: str` and `version: int` that the storage's catalogue declares.
"""

from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Any, Protocol, TypeVar, runtime_checkable

import msgspec

from .jobs import Job


class Record(Protocol):
    """What a shelf asks of a record: an id, and the version it was read at (0 for a new one)."""

    @property
    def id(self) -> str: ...
    @property
    def version(self) -> int: ...


R = TypeVar("R", bound=Record)
"""The record of a shelf; `Unit[Payment]` gives a `Shelf[Payment]`."""


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


class Shelf(Protocol[R]):
    """All records of one kind. Criteria are `field=value` (None matches null) or one of the criterion structs.

    Reads do not see the unit's own unwritten changes.
    """

    async def get(self, record_id: str, /) -> R | None:
        """The record, or None. Raises Unreadable."""
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
        """At most `limit` records that meet all criteria, by field `order`, after the first `offset` of them.

        `-field` is for descending. Ties go by id, in the same direction, so that one order is the other reversed.
        `quick`: the caller knows that an index leads to just these records, in their order, and that they are some
        hundred at most. A storage may then read them at once, where it would else keep others from waiting for them.
        `readable`: a record that cannot be read is left out, and the next takes its place. For work and lists of many
        objects, none of which shall keep the others waiting; never for what is summed up, or decides about money.
        Raises Unreadable for such a record else.
        """
        ...

    async def page(
        self, number: int, size: int, /, *, order: str = "-id", skip: int = 0, readable: bool = False, **criteria: Any
    ) -> list[R]:
        """Page `number` (from 1) of `size` records, after the first `skip`; empty past the end. `readable`: what cannot
        be read is left out, and its place stays empty."""
        ...

    async def total(self, **criteria: Any) -> int:
        """How many records meet all criteria."""
        ...

    async def sums(self, field: str, /, *, by: str, **criteria: Any) -> dict[Any, int]:
        """The sum of an integer field (money in its smallest part) over all records that meet the criteria, for each
        value of the field `by` that one of them has."""
        ...

    def add(self, record: R, /) -> R:
        """Write a new record. Commit raises Conflict when its id or another unique rule is taken."""
        ...

    def save(self, record: R, /) -> R:
        """Write a changed record, and return it as it will stand (version + 1).

        Commit raises Stale when the stored version is not the one that `record` carries.
        """
        ...

    def change(self, record: R, /, **changes: Any) -> R:
        """Save a record that differs in these fields from the stored one, which `record` is, and in no other.

        The same as `save`, for where it is done often: a storage may leave alone what did not change, indexes above
        all (SQLite writes the index of every column anew that a statement names).
        """
        ...

    def remove(self, record: R, /) -> None:
        """Take a record away. Commit raises Stale when it changed, sums included, or is gone."""
        ...

    def increase(self, record_id: str, field: str, by: int, /) -> None:
        """Add `by` to an integer field, without reading and without touching the version: sums that every request
        moves commute, and so never go stale. Commit raises Stale when there is no such record."""
        ...

    def accrue(self, *records: R) -> None:
        """Add each record's sums to those of the stored record of its id; where there is none, write it as it is.

        For counts that every request moves and whose rows come into being on the way: it commutes, needs no reading,
        and loses no race. All that a unit accrues is written after its other writes, in the order of ids: such rows
        are locked last and never crosswise, however many units move them at once.
        """
        ...


class Unit(Protocol):
    """One piece of work: reads now, writes at commit. Leaving the block without `commit()` writes nothing."""

    def __getitem__(self, kind: type[R], /) -> Shelf[R]: ...

    def commit(self, *, durable: bool = True) -> Coroutine[Any, Any, None]:
        """Apply all writes, in the order they were made, or none.

        When it returns, they are on disk. Jobs that were added or saved are kicked afterwards. A unit commits once.

        Not `durable`: when it returns, everybody who reads sees them, in other processes too, and they are on disk when
        the next durable unit is, whoever commits it. Until then a failure of the machine, or of the database's server,
        loses them, whole, and with them all units that were not durable after them; never one that a durable unit came
        after. A process that dies by itself loses nothing. For what somebody outside knows and is asked about again.

        Raises: Stale, Conflict; Unavailable when the storage did not answer (the outcome may then be unknown: read).
        """
        ...


class Snapshot(Protocol):
    """Reads of several statements that must agree with one another. Its shelves refuse writes."""

    def __getitem__(self, kind: type[R], /) -> Shelf[R]: ...


class Storage(Protocol):
    """Where everything durable lives.

    What every request passes is declared as a function that returns a coroutine: one that only hands on to another
    storage is none of its own. An `async def` is such a function.
    """

    def unit(self) -> AbstractAsyncContextManager[Unit]:
        """A new unit of work."""
        ...

    def get(self, kind: type[R], record_id: str, /) -> Coroutine[Any, Any, R | None]:
        """The record as it stands, or None: a read that belongs to no unit. As a unit's shelf gives it."""
        ...

    def snapshot(self) -> AbstractAsyncContextManager[Snapshot]:
        """All reads inside see the storage as it was at the first of them."""
        ...

    def recent(self, kind: type[R], record_id: str, /, *, within: float = 0.0) -> Coroutine[Any, Any, R | None]:
        """The record as it stands, or as it stood at most `within` seconds ago for what other processes wrote; what
        this one wrote shows at once.

        For what every request asks and nobody changes for days; nothing that comes from here is saved again. A storage
        that hears of all changes answers from memory also where `within` is 0.
        """
        ...

    async def claim(
        self, limit: int, lease: float, *, kind: str | None = None, but_kind: str | None = None
    ) -> list[Job]:
        """Take at most `limit` due jobs for `lease` seconds, oldest due first; atomic for many workers.

        `kind`: only jobs of this kind, `but_kind`: none of it. It is told by the id, which begins with the kind and a
        colon, so that the way to them is short however many others are due.
        Due means `due <= now()` and no living lease, judged by the storage's clock. A claimed job is returned as it
        now stands: attempts and version one higher, `leased_until` set.
        """
        ...

    async def renew(self, jobs: Sequence[Job], lease: float) -> None:
        """Make the leases of claimed jobs last `lease` seconds from now, in one step.

        `jobs` are as they were claimed. One that changed since is left alone: it was saved by its own work, or another
        worker has it. No version moves, so renewing never makes a unit stale; whether a job is still ours is told by
        its version.
        """
        ...

    async def next_due(self) -> datetime | None:
        """When the earliest job that is not under a living lease is or was due; None when there is none."""
        ...

    async def now(self) -> datetime:
        """The storage's clock, by which leases and due times are judged."""
        ...

    def scan(
        self, kind: type[R], *, batch: int = 1000, readable: bool = False, **criteria: Any
    ) -> AsyncIterator[Sequence[R]]:
        """All records that meet the criteria, in id order, in batches, in flat memory. Not one consistent view.
        `readable`: but for those that cannot be read, as `Shelf.find` has it."""
        ...

    async def check(self) -> None:
        """Prove that the storage reads and writes (for health). Raises Unavailable with the cause."""
        ...

    async def close(self) -> None:
        """Finish what is being written and let go of every connection."""
        ...


@runtime_checkable
class Losable(Protocol):
    """A storage that can be taken away under the process without its calls failing. Not every one can."""

    def lost(self) -> str | None:
        """Why what is written now is not kept, for operators; None while it is. Once lost it stays so, and every other
        call raises Unavailable: only a new start can find what there is. Cheap: it may be asked often."""
        ...


@runtime_checkable
class Clocked(Protocol):
    """A storage that may judge due times and leases by the process' own clock. One that says nothing has another."""

    @property
    def by_own_clock(self) -> bool:
        """Whether it does: who sees that clock set back puts right what is due (core/usecases/clock_steps.py)."""
        ...


@runtime_checkable
class Queueing(Protocol):
    """A storage in which units that lose races can wait for one another. Not every one is."""

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Inside is one at a time, in the order of asking: whoever lost a race tries again here, so that of many that
        move one record each waits for its turn. Not to be entered again by whoever is inside."""
        ...
