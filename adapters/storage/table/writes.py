"""What a unit writes: kept until its commit, which each storage applies in its own way."""

from typing import Any

import msgspec

from ....ports.jobs import Job
from .codec import Row, integer
from .table_map import TableMap


class Add(msgspec.Struct, frozen=True, gc=False):
    """A new record, as a row."""

    mapped: TableMap[Any]
    id: str
    row: Row


class Save(msgspec.Struct, frozen=True, gc=False):
    """A changed record, as a row that carries the new version; `version` is the one it replaces."""

    mapped: TableMap[Any]
    id: str
    version: int
    row: Row
    changed: tuple[str, ...] = ()
    """The only fields that changed, where that is known."""


class Remove(msgspec.Struct, frozen=True):
    """A record that goes. `sums` are what its sums were when it was read, in the order of the fields."""

    mapped: TableMap[Any]
    id: str
    version: int
    sums: tuple[int, ...] = ()


class Increase(msgspec.Struct, frozen=True):
    """A sum that moves."""

    mapped: TableMap[Any]
    id: str
    field: str
    by: int


class Accrue(msgspec.Struct, frozen=True):
    """A row whose sums are added to those of the stored one, or that is written as it is."""

    mapped: TableMap[Any]
    id: str
    row: Row


Write = Add | Save | Remove | Increase | Accrue


class Pending(msgspec.Struct, eq=False):
    """What a unit has written and not yet committed. One that is `closed` takes no more."""

    writes: list[Write] = []
    """All but what is accrued."""
    jobs: list[Job] = []
    accruals: dict[tuple[str, str], Accrue] = {}
    """By table and id: what is accrued twice is added up here."""
    durable: bool = True
    """It is on disk before its commit returns."""
    closed: str | None = None
    """Why nothing more may be written; None while it may."""

    __repr__ = object.__repr__  # a struct's own would show what is written, also through whatever holds this

    def put(self, write: Write) -> None:
        """Keep a write for commit. Raises RuntimeError when the unit is over or only reads: a slip of the caller."""
        if self.closed:
            raise RuntimeError(self.closed)
        self.writes.append(write)

    def accrue(self, accrual: Accrue) -> None:
        """Keep an accrual. Raises RuntimeError as `put` does."""
        if self.closed:
            raise RuntimeError(self.closed)
        key = accrual.mapped.name, accrual.id
        known = self.accruals.get(key)
        self.accruals[key] = accrual if known is None else Accrue(accrual.mapped, accrual.id, added(accrual, known.row))

    def all_writes(self) -> list[Write]:
        """The writes as they were made, then what was accrued, in the order of tables and ids."""
        if not self.accruals:
            return self.writes
        return [*self.writes, *(accrual for _, accrual in sorted(self.accruals.items()))]


def added(accrual: Accrue, to: Row) -> list[Any]:
    """The row `to`, with the sums of the accrual added. Raises ValueError beyond 64 bits."""
    return [integer(value + accrual.row[key]) if key in accrual.mapped.sums else value for key, value in enumerate(to)]
